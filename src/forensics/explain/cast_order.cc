// CAST_ORDER: the value is rounded before the multiplication by the weight on one side and after it on the other.
// Proved on a recorded RMSNorm: our reference gives one side; rounding between its two multiplications gives the other.
#include <cmath>
#include <cstring>

#include "base/strings.h"
#include "forensics/explain/explain.h"
#include "ops/norm/norm.h"

namespace samebits {

Result<std::optional<Finding>> TryCastOrder(const ExplainInput& in) {
  const TensorDiff& d = in.origin.diff;
  if (in.a.tensor.data == nullptr || d.item.dtype != DType::kBF16 || d.verdict != DiffVerdict::kDivergent ||
      d.item.shape.size() != 2)
    return std::optional<Finding>();
  const Companion *x = in.Find({"x", "input", "hidden"}), *w = in.Find({"w", "weight"});
  const int64_t rows = d.item.shape[0], n = d.item.shape[1];
  if (x == nullptr || w == nullptr || !x->same || !w->same || x->item.shape != d.item.shape ||
      w->a.tensor.elements() != n)
    return std::optional<Finding>();
  if ((x->item.dtype != DType::kBF16 && x->item.dtype != DType::kF32) || !IsFloat(w->item.dtype))
    return std::optional<Finding>();
  Tensor input(x->item.dtype, d.item.shape), plain(DType::kF32, d.item.shape), late(DType::kBF16, d.item.shape),
      early(DType::kBF16, d.item.shape);
  std::memcpy(input.raw(), x->a.tensor.data, x->a.tensor.bytes());
  std::vector<float> weight(static_cast<size_t>(n)), ones(static_cast<size_t>(n), 1.0f);
  for (int64_t i = 0; i < n; ++i) weight[static_cast<size_t>(i)] = static_cast<float>(ElementAsDouble(w->a.tensor, i));
  RmsNormArgs args;
  args.x.data = input.raw(), args.x.dtype = input.dtype(), args.x.rows = rows, args.x.cols = args.x.stride = n;
  args.weight = ones.data();
  args.out = View<float>(plain.As<float>(), rows, n);
  if (!CheckRmsNorm(args).ok()) return std::optional<Finding>();
  RmsNormRef(args);
  for (int64_t i = 0; i < rows * n; ++i) {
    const float u = plain.As<float>()[i], g = weight[static_cast<size_t>(i % n)];
    late.As<BF16>()[i] = RoundToBF16(Mul(g, u));
    early.As<BF16>()[i] = RoundToBF16(Mul(g, ToF32(RoundToBF16(u))));
  }
  // Another engine's sum may end one fp32 step aside: almost all bits are proof enough.
  const auto match = [&](const Tensor& t, const TensorRef& side) {
    return 1 - static_cast<double>(CompareTensors(t.ref(), side).stats.bit_mismatches) /
                   static_cast<double>(std::max<int64_t>(1, rows * n));
  };
  const double la = match(late, in.a.tensor), lb = match(late, in.b.tensor), ea = match(early, in.a.tensor),
               eb = match(early, in.b.tensor);
  constexpr double kProof = 0.999;
  const bool b_early = la >= kProof && eb >= kProof, a_early = lb >= kProof && ea >= kProof;
  if (a_early == b_early) return std::optional<Finding>();
  Finding f;
  f.verdict = "CAST_ORDER";
  f.at = d.item.name;
  f.sentence = Format("%s rounds the normalised value to bf16 before it multiplies by the weight, %s after",
                      b_early ? "B" : "A", b_early ? "A" : "B");
  f.evidence.push_back(
      Format("re-run: RMSNorm with one rounding at the end gives %.4f %% of the bits of %s, with a rounding before the "
             "weight %.4f %% of %s",
             100 * (b_early ? la : lb), b_early ? "A" : "B", 100 * (b_early ? eb : ea), b_early ? "B" : "A"));
  f.evidence.push_back(Format("%lld of %lld elements differ, at most %llu ulp",
                              static_cast<long long>(d.comparison.stats.bit_mismatches),
                              static_cast<long long>(d.comparison.stats.elements),
                              static_cast<unsigned long long>(d.comparison.stats.max_ulp)));
  f.refute = "a weight of all ones on both sides with outputs that still differ";
  return std::optional<Finding>(std::move(f));
}

}  // namespace samebits
