// REDUCTION_ORDER: the inputs are the same, and the outputs are apart by rounding: small against the magnitude of their
// row, of both signs, scattered. Where a product of two recorded matrices explains the output, the reference is re-run
// with other cuts of K and the other side's bits are looked for.
#include <algorithm>
#include <cmath>

#include "base/strings.h"
#include "forensics/diff_text.h"
#include "forensics/explain/explain.h"
#include "forensics/explain/gemm_case.h"

namespace samebits {

Result<std::optional<Finding>> TryReductionOrder(const ExplainInput& in) {
  const TensorDiff& d = in.origin.diff;
  const CompareStats& s = d.comparison.stats;
  if (!IsFloat(d.item.dtype) || d.verdict != DiffVerdict::kDivergent || in.a.tensor.data == nullptr ||
      s.nan_one_side > 0)
    return std::optional<Finding>();
  const TensorRef &a = in.a.tensor, &b = in.b.tensor;
  const int64_t cols = d.pattern.cols, rows = d.pattern.rows;
  const double epsilon = std::ldexp(1.0, -(d.item.dtype == DType::kBF16  ? 7
                                           : d.item.dtype == DType::kF16 ? 10
                                           : d.item.dtype == DType::kF32 ? 23
                                           : d.item.dtype == DType::kF64 ? 52
                                                                         : 3));
  // Against the largest magnitude of the row: where terms cancel, a rounding of the terms is many ulp of the result.
  double worst = 0;
  int64_t near = 0;
  for (int64_t r = 0; r < rows; ++r) {
    double largest = 0;
    for (int64_t c = 0; c < cols; ++c) largest = std::max(largest, std::fabs(ElementAsDouble(a, r * cols + c)));
    for (int64_t c = 0; c < cols && largest > 0; ++c) {
      const int64_t i = r * cols + c;
      const double m = std::fabs(ElementAsDouble(a, i) - ElementAsDouble(b, i));
      if (m == 0) continue;
      if (!std::isfinite(m)) return std::optional<Finding>();
      worst = std::max(worst, m / (largest * epsilon));
      near += UlpDistance(a, b, i) <= 2;
    }
  }
  const int64_t n = s.value_mismatches;
  // Sixteen steps at the row's magnitude: sums of some thousand terms in fp32 stay below; bf16 outputs stay near one.
  const double allowed = d.item.dtype == DType::kBF16 || d.item.dtype == DType::kF16 ? 4 : 64;
  const double lean = std::fabs(static_cast<double>(s.a_larger - s.b_larger));
  if (worst > allowed || (n >= 16 && lean > 6 * std::sqrt(static_cast<double>(n)))) return std::optional<Finding>();
  Finding f;
  f.verdict = "REDUCTION_ORDER";
  f.at = d.item.name;
  f.sentence =
      in.origin.inputs_recorded
          ? "the inputs are the same and the output differs by rounding alone: the additions ran in another order"
          : "the output differs by rounding alone, as when additions run in another order; the inputs were not "
            "recorded";
  f.evidence.push_back(
      Format("%lld of %lld elements differ, %lld of them by at most 2 ulp; the largest is %.3g steps at the magnitude "
             "of its row",
             static_cast<long long>(n), static_cast<long long>(s.elements), static_cast<long long>(near), worst));
  f.evidence.push_back(Format("signs are balanced: a is larger %lld times, b %lld times",
                              static_cast<long long>(s.a_larger), static_cast<long long>(s.b_larger)));
  f.evidence.push_back("where: " + d.pattern.text);
  if (s.max_rel > 0.01 && worst <= allowed)
    f.evidence.push_back(
        Format("the largest relative difference, %.4g, lies where terms cancel and says nothing there", s.max_rel));
  if (d.pattern.partition > 0)
    f.evidence.push_back(
        Format("partitions: part %lld of %lld has no mismatch, as when each rank owns one part of an all-reduce and "
               "starts its sum with itself",
               static_cast<long long>(d.pattern.clean_partition), static_cast<long long>(d.pattern.partition)));
  else if (d.pattern.rows_touched < rows)
    f.evidence.push_back(
        Format("only %lld of %lld rows are touched: the order depends on the row or on the number of rows in the batch",
               static_cast<long long>(d.pattern.rows_touched), static_cast<long long>(rows)));
  for (std::string& line : GemmEvidence(in)) f.evidence.push_back(std::move(line));
  for (const std::string& input : in.origin.same_inputs)
    f.evidence.push_back("input " + input + " is equal on both sides");
  f.refute =
      "a fixed order of additions in fp32 on both sides that still differs, or a repeat of one run that differs from "
      "itself by more";
  return std::optional<Finding>(std::move(f));
}

}  // namespace samebits
