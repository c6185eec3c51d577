// PARTIAL_PRECISION: partial sums were rounded to a narrow format before they were added. The error follows the size of
// the partials, not of the result. Proved by a re-run with rounded partials that gives the other side's bits.
#include "base/strings.h"
#include "forensics/explain/gemm_case.h"

namespace samebits {

Result<std::optional<Finding>> TryPartialPrecision(const ExplainInput& in) {
  const TensorDiff& d = in.origin.diff;
  if (in.a.tensor.data == nullptr || d.verdict != DiffVerdict::kDivergent || !IsFloat(d.item.dtype))
    return std::optional<Finding>();
  const std::optional<GemmCase> c = FindGemm(in);
  if (!c) return std::optional<Finding>();
  for (const auto& [name, side] : {std::pair<const char*, const LoadedTensor*>{"B", &in.b}, {"A", &in.a}})
    for (const int64_t splits : {2, 3, 4, 6, 8, 16, 32}) {
      const std::optional<Tensor> again = RunGemm(*c, d.item.dtype, splits, true, false);
      if (!again || !SameBits(again->ref(), side->tensor)) continue;
      Finding f;
      f.verdict = "PARTIAL_PRECISION";
      f.at = d.item.name;
      f.sentence = Format("%s added %lld partial sums that had been rounded to bf16 first", name,
                          static_cast<long long>(splits));
      f.evidence.push_back(Format("re-run: K split in %lld with bf16 partials gives the bits of %s exactly",
                                  static_cast<long long>(splits), name));
      f.evidence.push_back(Format("max |a-b| %.6g, max relative %.6g: far above one rounding where partials cancel",
                                  d.comparison.stats.max_abs, d.comparison.stats.max_rel));
      f.refute = "the same bits from partials kept in fp32";
      return std::optional<Finding>(std::move(f));
    }
  return std::optional<Finding>();
}

}  // namespace samebits
