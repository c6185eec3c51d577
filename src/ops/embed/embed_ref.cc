#include "ops/embed/embed.h"

namespace samebits {

void EmbedRef(const EmbedArgs& args) {
  for (int64_t t = 0; t < args.out.rows; ++t)
    for (int64_t c = 0; c < args.out.cols; ++c) MatPut(args.out, t, c, MatAt(args.table, args.ids[t], c));
}

}  // namespace samebits
