#include "base/strings.h"
#include "ops/rope/rope.h"

namespace samebits {

Status CheckRope(const RopeArgs& args) {
  if (args.x.dtype != DType::kBF16 && args.x.dtype != DType::kF32)
    return Error(Format("rope: x is %s; BF16 and F32 are allowed", DTypeName(args.x.dtype)));
  if (args.table == nullptr) return Error("rope: no table given");
  const int64_t dim = args.table->dim();
  if (args.heads < 1 || args.head_stride < args.offset + dim ||
      (args.heads - 1) * args.head_stride + args.offset + dim > args.x.cols)
    return Error(Format("rope: %lld heads, %lld apart, with %lld rotated elements from %lld do not fit %lld columns",
                        static_cast<long long>(args.heads), static_cast<long long>(args.head_stride),
                        static_cast<long long>(dim), static_cast<long long>(args.offset),
                        static_cast<long long>(args.x.cols)));
  for (int64_t t = 0; t < args.x.rows; ++t)
    if (args.positions[t] < 0 || args.positions[t] >= args.table->positions())
      return Error(Format("rope: position %d is outside the table of %lld", args.positions[t],
                          static_cast<long long>(args.table->positions())));
  return Ok();
}

}  // namespace samebits
