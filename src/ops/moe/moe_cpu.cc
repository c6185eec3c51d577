#include <cstring>

#include "ops/moe/moe.h"
#include "ops/moe/moe_simd.h"
#include "ops/op_dispatch.h"

namespace samebits {
namespace {

const uint8_t* RowOf(const ConstMat& m, int64_t r) {
  return static_cast<const uint8_t*>(m.data) + r * m.stride * (DTypeBits(m.dtype) / 8);
}

}  // namespace

Status GatherRows(const CpuContext& context, const GatherRowsArgs& args) {
  if (args.x.dtype != args.out.dtype || args.x.cols != args.out.cols)
    return Error("gather: x and out must agree in dtype and columns");
  const size_t bytes = static_cast<size_t>(args.x.cols * (DTypeBits(args.x.dtype) / 8));
  context.pool->Run(args.out.rows, static_cast<int64_t>((size_t{1} << 16) / (bytes + 1) + 1),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t r = begin; r < end; ++r)
                        std::memcpy(const_cast<uint8_t*>(RowOf(args.out, r)), RowOf(args.x, args.token[r]), bytes);
                    });
  return Ok();
}

Status Combine(const CpuContext& context, const CombineArgs& args) {
  SB_RETURN_IF_ERROR(CheckCombine(args));
  const auto kernel = SB_ISA_TABLE(CombineToken).For(context);
  const int64_t k = args.weights.cols;
  context.pool->Run(args.out.rows, (1 << 14) / (args.out.cols * (k + 1) + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t)
      kernel(CombineRow{RowOf(args.expert_out, 0), args.expert_out.stride * (DTypeBits(args.expert_out.dtype) / 8),
                        args.expert_out.dtype == DType::kBF16, args.shared.dtype == DType::kBF16,
                        args.out.dtype == DType::kBF16, args.row + t * k, args.weights.Row(t), k,
                        args.shared ? RowOf(args.shared, t) : nullptr, const_cast<uint8_t*>(RowOf(args.out, t)),
                        args.out.cols});
  });
  return Ok();
}

}  // namespace samebits
