#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/elementwise_simd.h"
#include "ops/op_dispatch.h"

namespace samebits {
namespace {

void RunRows(const CpuContext& context, void (*kernel)(const PairRow&), const ConstMat& a, const ConstMat& b,
             const Mat& out) {
  auto row = [](const ConstMat& m, int64_t r) {
    return static_cast<const uint8_t*>(m.data) + r * m.stride * (DTypeBits(m.dtype) / 8);
  };
  context.pool->Run(out.rows, (1 << 14) / (out.cols + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      kernel(PairRow{row(a, r), row(b, r), const_cast<uint8_t*>(row(out, r)), a.dtype == DType::kBF16,
                     b.dtype == DType::kBF16, out.dtype == DType::kBF16, out.cols});
  });
}

}  // namespace

Status Swiglu(const CpuContext& context, const SwigluArgs& args) {
  SB_RETURN_IF_ERROR(CheckSwiglu(args));
  RunRows(context, SB_ISA_TABLE(SwigluRow).For(context), args.gate, args.up, args.out);
  return Ok();
}

Status AddRows(const CpuContext& context, const AddArgs& args) {
  SB_RETURN_IF_ERROR(CheckAdd(args));
  RunRows(context, SB_ISA_TABLE(AddRow).For(context), args.a, args.b, args.out);
  return Ok();
}

}  // namespace samebits
