#include <cstring>

#include "ops/embed/embed.h"

namespace samebits {

Status Embed(const CpuContext&, const EmbedArgs& args) {
  SB_RETURN_IF_ERROR(CheckEmbed(args));
  if (args.table.dtype != args.out.dtype) return EmbedRef(args), Ok();
  const int64_t size = DTypeBits(args.out.dtype) / 8;
  for (int64_t t = 0; t < args.out.rows; ++t)
    std::memcpy(static_cast<uint8_t*>(args.out.data) + t * args.out.stride * size,
                static_cast<const uint8_t*>(args.table.data) + args.ids[t] * args.table.stride * size,
                static_cast<size_t>(args.out.cols * size));
  return Ok();
}

}  // namespace samebits
