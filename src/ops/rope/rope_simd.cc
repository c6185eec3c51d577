#include "ops/rope/rope_simd.h"

#include "numerics/simd.h"
#include "numerics/simd_rows.h"
#include "ops/rope/rope.h"

namespace samebits {
namespace SB_ISA {

template <class T>
SB_HD void InterleavedHead(T* x, const float* cos, const float* sin, int64_t half) {
  for (int64_t i = 0; i < half; ++i) {
    float a, b;
    RopeRotate(ToF32(x[2 * i]), ToF32(x[2 * i + 1]), cos[i], sin[i], &a, &b);
    x[2 * i] = RoundTo<T>(a);
    x[2 * i + 1] = RoundTo<T>(b);
  }
}

void RopeHead(void* x, bool bf16, const float* cos, const float* sin, int64_t half, bool interleaved) {
  if (interleaved) {
    return bf16 ? InterleavedHead(static_cast<BF16*>(x), cos, sin, half)
                : InterleavedHead(static_cast<float*>(x), cos, sin, half);
  }
  ForLanes(half, [&](int64_t i, int c) {
    F32x16 a, b;
    RopeRotate(LoadAny(x, bf16, i, c), LoadAny(x, bf16, half + i, c), LoadAny(cos, false, i, c),
               LoadAny(sin, false, i, c), &a, &b);
    StoreAny(x, bf16, i, c, a);
    StoreAny(x, bf16, half + i, c, b);
  });
}

}  // namespace SB_ISA
}  // namespace samebits
