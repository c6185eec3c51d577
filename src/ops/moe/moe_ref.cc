#include "ops/moe/moe.h"

namespace samebits {

void CombineRef(const CombineArgs& args) {
  const int64_t k = args.weights.cols;
  for (int64_t t = 0; t < args.out.rows; ++t)
    for (int64_t c = 0; c < args.out.cols; ++c) {
      float y = 0.0f;
      for (int64_t j = 0; j < k; ++j)
        y = Fma(args.weights.Row(t)[j], MatAt(args.expert_out, args.row[t * k + j], c), y);
      if (args.shared) y = Add(y, MatAt(args.shared, t, c));
      MatPut(args.out, t, c, y);
    }
}

}  // namespace samebits
