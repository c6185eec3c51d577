// Total orders on floats by their bits: the one top-k, sampling and argmax use, and ULP distance for comparisons.
#pragma once

#include "numerics/hd.h"

namespace samebits {

// Monotone in the value: larger float, larger key. -0 and +0 share a key. Meaningless for NaN, which is never selected:
// callers test IsNan first. -inf gives 0x007fffff, so 0 is below every number.
SB_HD uint32_t OrderKey(float x) {
  const uint32_t u = Bits(Add(x, 0.0f));  // -0 becomes +0 where a value becomes an ordering key
  return u ^ (Sar<31>(u) | 0x80000000u);
}

// The float with this key; +0 for the shared zero.
SB_HD float FromOrderKey(uint32_t key) { return FromBits((key & 0x80000000u) ? (key & 0x7fffffffu) : ~key); }

// Position of a value on the line of all floats of its format, for ULP distances: -0 and +0 at 0.
SB_HD int64_t OrderedBits32(uint32_t u) {
  return (u & 0x80000000u) ? -static_cast<int64_t>(u & 0x7fffffffu) : static_cast<int64_t>(u);
}
SB_HD int32_t OrderedBits16(uint16_t u) {
  return (u & 0x8000u) ? -static_cast<int32_t>(u & 0x7fffu) : static_cast<int32_t>(u);
}

}  // namespace samebits
