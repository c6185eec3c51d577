#include "ops/op_dispatch.h"
#include "ops/rope/rope.h"
#include "ops/rope/rope_simd.h"

namespace samebits {

Status Rope(const CpuContext& context, const RopeArgs& args) {
  SB_RETURN_IF_ERROR(CheckRope(args));
  const auto kernel = SB_ISA_TABLE(RopeHead).For(context);
  const int64_t half = args.table->dim() / 2, size = DTypeBits(args.x.dtype) / 8;
  context.pool->Run(args.x.rows, (1 << 12) / (args.heads * half + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t)
      for (int64_t h = 0; h < args.heads; ++h)
        kernel(static_cast<uint8_t*>(args.x.data) + (t * args.x.stride + h * args.head_stride + args.offset) * size,
               args.x.dtype == DType::kBF16, args.table->Cos(args.positions[t]), args.table->Sin(args.positions[t]),
               half, args.layout == RopeLayout::kInterleaved);
  });
  return Ok();
}

}  // namespace samebits
