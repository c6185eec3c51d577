#include "ops/rope/rope.h"

namespace samebits {

void RopeRef(const RopeArgs& args) {
  const int64_t half = args.table->dim() / 2;
  for (int64_t t = 0; t < args.x.rows; ++t)
    for (int64_t h = 0; h < args.heads; ++h)
      for (int64_t i = 0; i < half; ++i) {
        const int64_t start = h * args.head_stride + args.offset;
        const int64_t a = args.layout == RopeLayout::kInterleaved ? start + 2 * i : start + i;
        const int64_t b = args.layout == RopeLayout::kInterleaved ? a + 1 : a + half;
        float x, y;
        RopeRotate(MatAt(args.x, t, a), MatAt(args.x, t, b), args.table->Cos(args.positions[t])[i],
                   args.table->Sin(args.positions[t])[i], &x, &y);
        MatPut(args.x, t, a, x);
        MatPut(args.x, t, b, y);
      }
}

}  // namespace samebits
