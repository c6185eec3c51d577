// Builds a RunComparison from the results of a diff.
#pragma once

#include <map>
#include <string>

#include "forensics/diff_text.h"
#include "forensics/explain/explain.h"
#include "forensics/report/report_html.h"
#include "forensics/run_diff.h"

namespace samebits {

class RunReportBuilder {
 public:
  RunReportBuilder(std::string title, std::string left, std::string right);
  void Add(const TensorDiff& diff, TensorSource& a, TensorSource& b, int64_t window);
  // Replaces the first difference by the origins and what explains them.
  void SetOrigins(const Located& located, const Explanation& explanation, TensorSource& a, TensorSource& b);
  RunComparison Finish(const DiffSums& sums, const PolicyTable& policies, int exit_code);

 private:
  RunComparison run_;
  std::string first_;     // the first differing tensor
  std::string headline_;  // the verdict sentence of an explanation
  ReportTable table_;
};

CellStatus CellStatusOf(DiffVerdict verdict);

}  // namespace samebits
