#include "ops/hadamard/hadamard.h"
#include "ops/hadamard/hadamard_simd.h"
#include "ops/op_dispatch.h"

namespace samebits {

Status Hadamard(const CpuContext& context, const HadamardArgs& args) {
  SB_RETURN_IF_ERROR(CheckHadamard(args));
  const auto kernel = SB_ISA_TABLE(HadamardGroups).For(context);
  const int64_t size = DTypeBits(args.x.dtype) / 8;
  context.pool->Run(args.x.rows, (1 << 14) / (args.x.cols + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      kernel(static_cast<const uint8_t*>(args.x.data) + r * args.x.stride * size,
             static_cast<uint8_t*>(args.out.data) + r * args.out.stride * size, args.x.dtype == DType::kBF16, args.n,
             args.x.cols / args.n);
  });
  return Ok();
}

}  // namespace samebits
