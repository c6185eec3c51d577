// Builds a RunComparison from the results of a diff.
#pragma once

#include <map>
#include <string>

#include "forensics/diff_text.h"
#include "forensics/report/report_html.h"
#include "forensics/run_diff.h"

namespace samebits {

class RunReportBuilder {
 public:
  RunReportBuilder(std::string title, std::string left, std::string right);
  void Add(const TensorDiff& diff, TensorSource& a, TensorSource& b, int64_t window);
  RunComparison Finish(const DiffSums& sums, const PolicyTable& policies, int exit_code);

 private:
  RunComparison run_;
  std::string first_;  // the first differing tensor
  ReportTable table_;
};

CellStatus CellStatusOf(DiffVerdict verdict);

}  // namespace samebits
