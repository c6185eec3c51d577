#include "ops/elementwise/elementwise.h"

namespace samebits {

void SwigluRef(const SwigluArgs& args) {
  for (int64_t r = 0; r < args.out.rows; ++r)
    for (int64_t c = 0; c < args.out.cols; ++c)
      MatPut(args.out, r, c, SwigluValue(MatAt(args.gate, r, c), MatAt(args.up, r, c)));
}

void AddRef(const AddArgs& args) {
  for (int64_t r = 0; r < args.out.rows; ++r)
    for (int64_t c = 0; c < args.out.cols; ++c) MatPut(args.out, r, c, Add(MatAt(args.a, r, c), MatAt(args.b, r, c)));
}

}  // namespace samebits
