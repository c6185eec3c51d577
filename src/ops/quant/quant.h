// Activation quantisation to E4M3 in groups of 128 consecutive channels (a shorter row or last group is one group).
//
// Rule (spec 3.2): amax = max(max |x|, 1e-4); v = amax * (1/448) in fp32; scale = v, or the smallest power of two not
// below v (from the bit pattern); y = e4m3(clamp(x / scale, -448, 448)). The scale is rounded before it is used.
#pragma once

#include "ops/op.h"

namespace samebits {

inline constexpr int64_t kQuantGroup = 128;

SB_HD float QuantScale(float max_abs, bool power_of_two) {
  const float amax = max_abs > 1e-4f ? max_abs : 1e-4f;
  const float v = Mul(amax, 1.0f / 448.0f);
  return power_of_two ? ToF32(CeilToE8M0(v)) : v;
}
SB_HD E4M3 QuantValue(float x, float scale) { return RoundToE4M3(Div(x, scale)); }
// What the quantised value stands for, in the activation's own type (fp32 product, one rounding at the store).
SB_HD float DequantValue(E4M3 y, float scale) { return Mul(ToF32(y), scale); }

struct QuantArgs {
  ConstMat x;                // [rows, n] BF16 | F32
  bool power_of_two = true;  // scale_fmt "ue8m0"
  View<E4M3> values;         // [rows, n]; or none
  View<float> scales;        // [rows, ceil(n/128)]; or none
  Mat round_trip;            // [rows, n] BF16 | F32: values * scale, rounded once; or none; may alias x
};

Status CheckQuant(const QuantArgs& args);
void QuantRef(const QuantArgs& args);
Status Quant(const CpuContext& context, const QuantArgs& args);

}  // namespace samebits
