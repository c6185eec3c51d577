// Number formats narrower than fp32, and every rounding into them. All exact conversions out; round to nearest even in.
//   BF16   1-8-7
//   E4M3   1-4-3, bias 7, finite form: no infinity, NaN 0x7f and 0xff, largest 448, smallest subnormal 2^-9
//   E8M0   2^(b-127); 255 is NaN; no zero, no sign
#pragma once

#include "numerics/hd.h"

namespace samebits {

struct BF16 {
  uint16_t bits;
};
struct E4M3 {
  uint8_t bits;
};
struct E8M0 {
  uint8_t bits;
};

SB_HD float ToF32(float x) { return x; }
SB_HD float ToF32(BF16 x) { return FromBits(static_cast<uint32_t>(x.bits) << 16); }

SB_HD float ToF32(E4M3 x) {
  const uint32_t sign = static_cast<uint32_t>(x.bits & 0x80) << 24, magnitude = x.bits & 0x7f;
  if (magnitude == 0x7f) return FromBits(sign | 0x7fc00000u);
  if (magnitude >= 8) return FromBits(sign | ((magnitude << 20) + (120u << 23)));  // rebias 7 -> 127
  return FromBits(sign | Bits(static_cast<float>(magnitude) * 0x1p-9f));           // subnormal or zero
}

SB_HD float ToF32(E8M0 x) {
  if (x.bits == 255) return FromBits(0x7fc00000u);
  return x.bits == 0 ? 0x1p-127f : FromBits(static_cast<uint32_t>(x.bits) << 23);
}

// fp32 -> bf16, nearest even. Every NaN becomes 0x7fff, as Hopper's cvt.rn.bf16.f32 gives.
SB_HD BF16 RoundToBF16(float x) {
  const uint32_t u = Bits(x);
  if ((u & 0x7fffffffu) > 0x7f800000u) return BF16{0x7fff};
  return BF16{static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16)};
}

// fp32 -> E4M3, nearest even, saturating at +-448 (also from infinity); the sign of zero is kept; NaN becomes 0x7f.
SB_HD E4M3 RoundToE4M3(float x) {
  const uint32_t u = Bits(x), sign = (u >> 24) & 0x80u, a = u & 0x7fffffffu;
  if (a > 0x7f800000u) return E4M3{0x7f};
  if (a >= 0x43e80000u) return E4M3{static_cast<uint8_t>(sign | 0x7e)};  // 464 and above; 464 itself ties to 448
  if (a < 0x3c800000u) {                                                 // below 2^-6: steps of 2^-9, the ulp of 2^14
    const uint32_t steps = Bits(FromBits(a) + 0x1p14f) - Bits(0x1p14f);
    return E4M3{static_cast<uint8_t>(sign | steps)};
  }
  const uint32_t rounded = (a + 0x7ffffu + ((a >> 20) & 1u)) >> 20;
  return E4M3{static_cast<uint8_t>(sign | (rounded - (120u << 3)))};
}

// The smallest power of two not below x, x > 0 and finite; clamped to 2^-127 .. 2^127.
SB_HD E8M0 CeilToE8M0(float x) {
  const uint32_t u = Bits(x);
  if (u <= 0x00400000u) return E8M0{0};
  const uint32_t e = (u >> 23) + ((u & 0x7fffffu) != 0 ? 1u : 0u);
  return E8M0{static_cast<uint8_t>(e > 254 ? 254 : e)};
}

// RoundTo<To>(x): x rounded once to To; fp32 is stored as it is.
template <class To>
SB_HD To RoundTo(float x);
template <>
SB_HD float RoundTo<float>(float x) {
  return x;
}
template <>
SB_HD BF16 RoundTo<BF16>(float x) {
  return RoundToBF16(x);
}

}  // namespace samebits
