#include "ops/op_dispatch.h"
#include "ops/quant/quant.h"
#include "ops/quant/quant_simd.h"

namespace samebits {

Status Quant(const CpuContext& context, const QuantArgs& args) {
  SB_RETURN_IF_ERROR(CheckQuant(args));
  const auto kernel = SB_ISA_TABLE(QuantizeRow).For(context);
  const int64_t size = DTypeBits(args.x.dtype) / 8, out_size = DTypeBits(args.round_trip.dtype) / 8;
  context.pool->Run(args.x.rows, (1 << 14) / (args.x.cols + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      kernel(QuantRow{static_cast<const uint8_t*>(args.x.data) + r * args.x.stride * size, args.x.dtype == DType::kBF16,
                      args.power_of_two, args.round_trip.dtype == DType::kBF16,
                      args.values.data ? args.values.Row(r) : nullptr, args.scales.data ? args.scales.Row(r) : nullptr,
                      args.round_trip
                          ? static_cast<uint8_t*>(args.round_trip.data) + r * args.round_trip.stride * out_size
                          : nullptr,
                      args.x.cols});
  });
  return Ok();
}

}  // namespace samebits
