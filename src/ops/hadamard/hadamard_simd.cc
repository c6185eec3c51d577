#include "ops/hadamard/hadamard_simd.h"

#include "numerics/simd.h"
#include "numerics/simd_rows.h"
#include "ops/hadamard/hadamard.h"

namespace samebits {
namespace SB_ISA {

void HadamardGroups(const void* x, void* out, bool bf16, int64_t n, int64_t groups) {
  alignas(64) float buffer[1024];
  for (int64_t g = 0; g < groups * n; g += n) {
    ForLanes(n, [&](int64_t i, int c) { StoreAny(buffer, false, i, c, LoadAny(x, bf16, g + i, c)); });
    // Strides below 16 stay inside a vector: plain code. From 16 on whole vectors meet: the same butterflies in lanes.
    HadamardButterflies(buffer, n < kLanes ? n : 1);
    if (n >= kLanes) {
      for (int64_t i = 0; i < n; i += kLanes) HadamardButterflies(buffer + i, kLanes);
      F32x16 v[1024 / kLanes];
      for (int64_t i = 0; i < n / kLanes; ++i) v[i] = Load(buffer + i * kLanes);
      HadamardButterflies(v, n / kLanes);
      for (int64_t i = 0; i < n / kLanes; ++i) Store(buffer + i * kLanes, v[i]);
    }
    ForLanes(n, [&](int64_t i, int c) {
      StoreAny(out, bf16, g + i, c, Mul(LoadAny(buffer, false, i, c), Splat(HadamardScale(n))));
    });
  }
}

}  // namespace SB_ISA
}  // namespace samebits
