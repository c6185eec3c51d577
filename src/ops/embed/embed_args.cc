#include "base/strings.h"
#include "ops/embed/embed.h"

namespace samebits {

Status CheckEmbed(const EmbedArgs& args) {
  const bool types =
      args.table.dtype == args.out.dtype || (args.table.dtype == DType::kBF16 && args.out.dtype == DType::kF32);
  if (!types)
    return Error(
        Format("embed: a %s table cannot fill %s rows", DTypeName(args.table.dtype), DTypeName(args.out.dtype)));
  if (args.table.cols != args.out.cols)
    return Error(Format("embed: table rows have %lld columns, the output %lld", static_cast<long long>(args.table.cols),
                        static_cast<long long>(args.out.cols)));
  for (int64_t t = 0; t < args.out.rows; ++t)
    if (args.ids[t] < 0 || args.ids[t] >= args.table.rows)
      return Error(Format("token id %d at place %lld is outside the vocabulary of %lld", args.ids[t],
                          static_cast<long long>(t), static_cast<long long>(args.table.rows)));
  return Ok();
}

}  // namespace samebits
