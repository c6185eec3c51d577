#include "ops/hadamard/hadamard.h"

namespace samebits {

void HadamardRef(const HadamardArgs& args) {
  float x[1024];
  for (int64_t r = 0; r < args.x.rows; ++r)
    for (int64_t g = 0; g < args.x.cols; g += args.n) {
      for (int64_t i = 0; i < args.n; ++i) x[i] = MatAt(args.x, r, g + i);
      HadamardButterflies(x, args.n);
      for (int64_t i = 0; i < args.n; ++i) MatPut(args.out, r, g + i, Mul(x[i], HadamardScale(args.n)));
    }
}

}  // namespace samebits
