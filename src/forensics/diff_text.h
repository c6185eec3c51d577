// How a diff reads in a terminal and as JSON.
#pragma once

#include <string>
#include <vector>

#include "forensics/report/report_html.h"
#include "forensics/run_diff.h"

namespace samebits {

// "x name BF16 [2, 3] 5 of 6 differ, first [0, 1], max |a-b| 0.0039 (1 ulp)".
std::string DiffLine(const TensorDiff& diff);
// The window of +-n around the first mismatch.
std::vector<WindowRow> DiffWindow(const TensorDiff& diff, TensorSource& left, TensorSource& right, int64_t n);
std::string WindowText(const std::vector<WindowRow>& window);
// Everything about one differing tensor, indented.
std::string DiffDetails(const TensorDiff& diff, TensorSource& left, TensorSource& right, int64_t window,
                        bool histogram);
std::string DiffClosing(const DiffSums& sums, const PolicyTable& policies);
// One JSON object without a line break.
std::string DiffJson(const TensorDiff& diff, TensorSource& left, TensorSource& right, int64_t window);
std::string DiffSumsJson(const DiffSums& sums, const PolicyTable& policies);
// "0.00390625 = 1.00 x 2^-8": the distance in steps of a format of `mantissa` bits at magnitude 1.
std::string QuantumText(DType dtype, double distance);
std::string HistogramText(const int64_t* histogram);

}  // namespace samebits
