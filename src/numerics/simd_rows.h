// Walking a row of bf16 or fp32 sixteen lanes at a time, the tail included. For *_simd.cc files only.
#pragma once

#include "numerics/simd.h"

namespace samebits {
namespace SB_ISA {

// Calls body(i, count) for i = 0, 16, 32, ...; count is 16 except in the tail.
template <class Body>
SB_HD void ForLanes(int64_t n, const Body& body) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) body(i, kLanes);
  if (i < n) body(i, static_cast<int>(n - i));
}

// Elements i .. i+count-1 of a row of bf16 or fp32; lanes past count are +0.
SB_HD F32x16 LoadAny(const void* row, bool bf16, int64_t i, int count) {
  if (bf16) {
    const BF16* p = static_cast<const BF16*>(row) + i;
    return count == kLanes ? Load(p) : LoadFirst(p, count);
  }
  const float* p = static_cast<const float*>(row) + i;
  return count == kLanes ? Load(p) : LoadFirst(p, count);
}
// Stores with the one rounding of the row's dtype.
SB_HD void StoreAny(void* row, bool bf16, int64_t i, int count, F32x16 v) {
  if (bf16) {
    BF16* p = static_cast<BF16*>(row) + i;
    return count == kLanes ? Store(p, v) : StoreFirst(p, v, count);
  }
  float* p = static_cast<float*>(row) + i;
  return count == kLanes ? Store(p, v) : StoreFirst(p, v, count);
}

}  // namespace SB_ISA
}  // namespace samebits
