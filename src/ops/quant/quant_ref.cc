// The meaning of activation quantisation, group by group.

#include "ops/quant/quant.h"

namespace samebits {

void QuantRef(const QuantArgs& args) {
  for (int64_t r = 0; r < args.x.rows; ++r) {
    for (int64_t begin = 0; begin < args.x.cols; begin += kQuantGroup) {
      const int64_t end = begin + kQuantGroup < args.x.cols ? begin + kQuantGroup : args.x.cols;
      float max_abs = 0.0f;
      for (int64_t i = begin; i < end; ++i) {
        const float x = MatAt(args.x, r, i), a = x < 0 ? -x : x;
        if (a > max_abs) max_abs = a;
      }
      const float scale = QuantScale(max_abs, args.power_of_two);
      if (args.scales.data) args.scales.Row(r)[begin / kQuantGroup] = scale;
      for (int64_t i = begin; i < end; ++i) {
        const E4M3 y = QuantValue(MatAt(args.x, r, i), scale);
        if (args.values.data) args.values.Row(r)[i] = y;
        if (args.round_trip) MatPut(args.round_trip, r, i, DequantValue(y, scale));
      }
    }
  }
}

}  // namespace samebits
