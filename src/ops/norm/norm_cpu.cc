#include <vector>

#include "ops/norm/norm.h"
#include "ops/norm/norm_simd.h"
#include "ops/op_dispatch.h"

namespace samebits {
namespace {

constexpr int64_t kMinElements = 1 << 14;  // per thread; below, waking one costs more than the row

RowPtr RowOf(const ConstMat& m, int64_t r) {
  if (!m) return {};
  const int64_t size = DTypeBits(m.dtype) / 8;
  return {const_cast<uint8_t*>(static_cast<const uint8_t*>(m.data)) + r * m.stride * size, m.dtype == DType::kBF16};
}

}  // namespace

Status RmsNorm(const CpuContext& context, const RmsNormArgs& args) {
  SB_RETURN_IF_ERROR(CheckRmsNorm(args));
  const auto kernel = SB_ISA_TABLE(RmsNormRow).For(context);
  context.pool->Run(args.x.rows, kMinElements / (args.x.cols + 1) + 1, [&](int64_t begin, int64_t end) {
    std::vector<float> scratch(static_cast<size_t>(args.x.cols));
    for (int64_t t = begin; t < end; ++t)
      kernel(NormRow{RowOf(args.x, t), RowOf(args.residual, t), RowOf(args.residual_out, t), RowOf(args.out, t),
                     args.weight, nullptr, scratch.data(), args.x.cols, args.eps, args.norm_of_rounded_sum});
  });
  return Ok();
}

Status LayerNorm(const CpuContext& context, const LayerNormArgs& args) {
  SB_RETURN_IF_ERROR(CheckLayerNorm(args));
  const auto kernel = SB_ISA_TABLE(LayerNormRow).For(context);
  context.pool->Run(args.x.rows, kMinElements / (args.x.cols + 1) + 1, [&](int64_t begin, int64_t end) {
    std::vector<float> scratch(static_cast<size_t>(args.x.cols));
    for (int64_t t = begin; t < end; ++t)
      kernel(NormRow{RowOf(args.x, t),
                     {},
                     {},
                     RowOf(args.out, t),
                     args.weight,
                     args.bias,
                     scratch.data(),
                     args.x.cols,
                     args.eps,
                     false});
  });
  return Ok();
}

}  // namespace samebits
