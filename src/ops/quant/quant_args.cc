#include "base/strings.h"
#include "ops/quant/quant.h"

namespace samebits {

Status CheckQuant(const QuantArgs& args) {
  if (args.x.dtype != DType::kBF16 && args.x.dtype != DType::kF32)
    return Error(Format("quant: x is %s; BF16 and F32 are allowed", DTypeName(args.x.dtype)));
  const int64_t groups = (args.x.cols + kQuantGroup - 1) / kQuantGroup;
  if (args.values.data && (args.values.rows != args.x.rows || args.values.cols != args.x.cols))
    return Error("quant: values must have the shape of x");
  if (args.scales.data && (args.scales.rows != args.x.rows || args.scales.cols != groups))
    return Error(Format("quant: scales must be [%lld, %lld]", static_cast<long long>(args.x.rows),
                        static_cast<long long>(groups)));
  if (args.round_trip && (args.round_trip.rows != args.x.rows || args.round_trip.cols != args.x.cols))
    return Error("quant: round_trip must have the shape of x");
  return Ok();
}

}  // namespace samebits
