#include "forensics/explain/gemm_case.h"

#include <algorithm>
#include <cstring>

#include "base/strings.h"
#include "ops/gemm/gemm.h"

namespace samebits {
namespace {

constexpr int64_t kMostProducts = int64_t{1} << 31;  // multiplications a re-run may take

Tensor Copy(const TensorRef& t) {
  Tensor copy(t.dtype, t.shape);
  std::memcpy(copy.raw(), t.data, t.bytes());
  return copy;
}

ConstMat Matrix(const Tensor& t) {
  ConstMat m;
  m.data = t.raw(), m.dtype = t.dtype(), m.rows = t.shape()[0], m.cols = m.stride = t.shape()[1];
  return m;
}

}  // namespace

std::optional<GemmCase> FindGemm(const ExplainInput& in) {
  const Companion *x = in.Find({"x", "input", "hidden", "a"}), *w = in.Find({"w", "weight", "b"});
  const Shape& out = in.origin.diff.item.shape;
  if (x == nullptr || w == nullptr || !x->same || !w->same || out.size() != 2) return std::nullopt;
  const Shape &xs = x->a.tensor.shape, &ws = w->a.tensor.shape;
  if (xs.size() != 2 || ws.size() != 2 || xs[0] != out[0] || ws[0] != out[1] || xs[1] != ws[1] || xs[1] == 0)
    return std::nullopt;
  if (xs[0] * ws[0] > kMostProducts / xs[1]) return std::nullopt;
  return GemmCase{Copy(x->a.tensor), Copy(w->a.tensor)};
}

std::optional<Tensor> RunGemm(const GemmCase& c, DType out, int64_t splits, bool bf16_partials, bool bf16_accumulator) {
  const int64_t k = c.x.shape()[1], n = c.w.shape()[0], rows = c.x.shape()[0];
  if (splits < 1 || k % splits != 0) return std::nullopt;
  const auto product = [&](int64_t begin, int64_t size, DType dtype, const GemmRule& rule) -> std::optional<Tensor> {
    Tensor result(dtype, {rows, n});
    const Result<PackedWeight> packed = PackedWeight::Pack(
        "w", c.w.dtype(), static_cast<const uint8_t*>(c.w.raw()) + begin * DTypeBits(c.w.dtype()) / 8, n, size, k);
    if (!packed.ok()) return std::nullopt;
    GemmArgs args;
    args.a = Matrix(c.x).Cols(begin, size);
    args.b = &*packed;
    args.out.data = result.raw(), args.out.dtype = dtype, args.out.rows = rows, args.out.cols = args.out.stride = n;
    if (!CheckGemm(args).ok()) return std::nullopt;
    GemmRef(args, rule);
    return result;
  };
  GemmRule rule;
  rule.bf16_accumulator_store = bf16_accumulator;
  if (!bf16_partials) {
    rule.splits = splits;
    return product(0, k, out, rule);
  }
  Tensor sum(out, {rows, n});
  std::vector<float> total(static_cast<size_t>(rows * n), 0.0f);
  for (int64_t s = 0; s < splits; ++s) {
    const std::optional<Tensor> part = product(s * (k / splits), k / splits, DType::kBF16, {});
    if (!part) return std::nullopt;
    const BF16* p = part->As<BF16>();
    for (size_t i = 0; i < total.size(); ++i) total[i] += ToF32(p[i]);
  }
  Mat m;
  m.data = sum.raw(), m.dtype = out, m.rows = 1, m.cols = m.stride = rows * n;
  if (out != DType::kBF16 && out != DType::kF32) return std::nullopt;
  for (size_t i = 0; i < total.size(); ++i) MatPut(m, 0, static_cast<int64_t>(i), total[i]);
  return sum;
}

std::vector<std::string> GemmEvidence(const ExplainInput& in) {
  std::vector<std::string> lines;
  const std::optional<GemmCase> c = FindGemm(in);
  if (!c) return lines;
  const DType out = in.origin.diff.item.dtype;
  for (const auto& [name, side] : {std::pair<const char*, const LoadedTensor*>{"A", &in.a}, {"B", &in.b}})
    for (const int64_t splits : {1, 2, 3, 4, 6, 8, 16, 32}) {
      const std::optional<Tensor> again = RunGemm(*c, out, splits, false, false);
      if (!again || !SameBits(again->ref(), side->tensor)) continue;
      lines.push_back(
          splits == 1 ? Format("re-run: our GEMM plan on the recorded x and w gives the bits of %s", name)
                      : Format("re-run: K split in %lld gives the bits of %s", static_cast<long long>(splits), name));
      break;
    }
  if (lines.empty()) lines.push_back("re-run: no plain cut of K in our reference gives the bits of either side");
  return lines;
}

}  // namespace samebits
