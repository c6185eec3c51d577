// Sixteen logical fp32 lanes: one AVX-512 register, two AVX2, four NEON, or a loop. Only for files named *_simd.cc,
// which are compiled once per instruction set (cmake/NumericFlags.cmake) and put everything in namespace
// samebits::SB_ISA. Lane order, every operation and every rounding are the same for all of them.
#pragma once

#if !defined(SB_ISA)
#error "numerics/simd.h is for *_simd.cc files, which are built once per instruction set"
#endif

#include <cstring>

#if defined(SB_ISA_AVX2) || defined(SB_ISA_AVX512)
#include <immintrin.h>
#elif defined(SB_ISA_NEON)
#include <arm_neon.h>
#endif

#include "numerics/format.h"
#include "numerics/hd.h"
#include "numerics/mathfn.h"
#include "numerics/sum.h"

namespace samebits {
namespace SB_ISA {

inline constexpr int kLanes = 16;

#if defined(SB_ISA_AVX512)
struct F32x16 {
  __m512 v;
};
struct I32x16 {
  __m512i v;
};
struct M16 {
  __mmask16 m;
};
#define SB_OP2(NAME, T, CALL) \
  SB_HD T NAME(T a, T b) { return {CALL(a.v, b.v)}; }
SB_OP2(Add, F32x16, _mm512_add_ps)
SB_OP2(Sub, F32x16, _mm512_sub_ps)
SB_OP2(Mul, F32x16, _mm512_mul_ps)
SB_OP2(Div, F32x16, _mm512_div_ps)
SB_OP2(Max, F32x16, _mm512_max_ps)
SB_OP2(Min, F32x16, _mm512_min_ps)
SB_OP2(AddI, I32x16, _mm512_add_epi32)
SB_OP2(SubI, I32x16, _mm512_sub_epi32)
SB_OP2(AndI, I32x16, _mm512_and_si512)
SB_OP2(OrI, I32x16, _mm512_or_si512)
#undef SB_OP2
SB_HD F32x16 Fma(F32x16 a, F32x16 b, F32x16 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
SB_HD F32x16 Sqrt(F32x16 a) { return {_mm512_sqrt_ps(a.v)}; }
SB_HD F32x16 AbsF(F32x16 a) { return {_mm512_abs_ps(a.v)}; }
SB_HD I32x16 Bits(F32x16 a) { return {_mm512_castps_si512(a.v)}; }
SB_HD F32x16 FromBits(I32x16 a) { return {_mm512_castsi512_ps(a.v)}; }
template <int k>
SB_HD I32x16 Shl(I32x16 a) {
  return {_mm512_slli_epi32(a.v, k)};
}
template <int k>
SB_HD I32x16 Shr(I32x16 a) {
  return {_mm512_srli_epi32(a.v, k)};
}
template <int k>
SB_HD I32x16 Sar(I32x16 a) {
  return {_mm512_srai_epi32(a.v, k)};
}
SB_HD M16 Lt(F32x16 a, F32x16 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
SB_HD M16 IsNan(F32x16 a) { return {_mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q)}; }
SB_HD F32x16 Select(M16 m, F32x16 yes, F32x16 no) { return {_mm512_mask_blend_ps(m.m, no.v, yes.v)}; }
SB_HD F32x16 Splat(float x) { return {_mm512_set1_ps(x)}; }
SB_HD I32x16 SplatI(uint32_t x) { return {_mm512_set1_epi32(static_cast<int>(x))}; }
SB_HD F32x16 Load(const float* p) { return {_mm512_loadu_ps(p)}; }
SB_HD void Store(float* p, F32x16 a) { _mm512_storeu_ps(p, a.v); }
SB_HD void StoreI(uint32_t* p, I32x16 a) { _mm512_storeu_si512(p, a.v); }
SB_HD F32x16 Load(const BF16* p) {
  const __m256i h = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16))};
}
// Sixteen bytes, zero-extended.
SB_HD I32x16 LoadBytes(const uint8_t* p) {
  return {_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
// The low 16 bits of each lane.
SB_HD void StoreLow16(uint16_t* p, I32x16 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(a.v));
}

#elif defined(SB_ISA_AVX2)
struct F32x16 {
  __m256 lo, hi;
};
struct I32x16 {
  __m256i lo, hi;
};
struct M16 {
  __m256 lo, hi;
};
#define SB_OP2(NAME, T, CALL) \
  SB_HD T NAME(T a, T b) { return {CALL(a.lo, b.lo), CALL(a.hi, b.hi)}; }
SB_OP2(Add, F32x16, _mm256_add_ps)
SB_OP2(Sub, F32x16, _mm256_sub_ps)
SB_OP2(Mul, F32x16, _mm256_mul_ps)
SB_OP2(Div, F32x16, _mm256_div_ps)
SB_OP2(Max, F32x16, _mm256_max_ps)
SB_OP2(Min, F32x16, _mm256_min_ps)
SB_OP2(AddI, I32x16, _mm256_add_epi32)
SB_OP2(SubI, I32x16, _mm256_sub_epi32)
SB_OP2(AndI, I32x16, _mm256_and_si256)
SB_OP2(OrI, I32x16, _mm256_or_si256)
#undef SB_OP2
SB_HD F32x16 Fma(F32x16 a, F32x16 b, F32x16 c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
SB_HD F32x16 Sqrt(F32x16 a) { return {_mm256_sqrt_ps(a.lo), _mm256_sqrt_ps(a.hi)}; }
SB_HD I32x16 Bits(F32x16 a) { return {_mm256_castps_si256(a.lo), _mm256_castps_si256(a.hi)}; }
SB_HD F32x16 FromBits(I32x16 a) { return {_mm256_castsi256_ps(a.lo), _mm256_castsi256_ps(a.hi)}; }
template <int k>
SB_HD I32x16 Shl(I32x16 a) {
  return {_mm256_slli_epi32(a.lo, k), _mm256_slli_epi32(a.hi, k)};
}
template <int k>
SB_HD I32x16 Shr(I32x16 a) {
  return {_mm256_srli_epi32(a.lo, k), _mm256_srli_epi32(a.hi, k)};
}
template <int k>
SB_HD I32x16 Sar(I32x16 a) {
  return {_mm256_srai_epi32(a.lo, k), _mm256_srai_epi32(a.hi, k)};
}
SB_HD M16 Lt(F32x16 a, F32x16 b) {
  return {_mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ)};
}
SB_HD M16 IsNan(F32x16 a) { return {_mm256_cmp_ps(a.lo, a.lo, _CMP_UNORD_Q), _mm256_cmp_ps(a.hi, a.hi, _CMP_UNORD_Q)}; }
SB_HD F32x16 Select(M16 m, F32x16 yes, F32x16 no) {
  return {_mm256_blendv_ps(no.lo, yes.lo, m.lo), _mm256_blendv_ps(no.hi, yes.hi, m.hi)};
}
SB_HD F32x16 Splat(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
SB_HD I32x16 SplatI(uint32_t x) {
  return {_mm256_set1_epi32(static_cast<int>(x)), _mm256_set1_epi32(static_cast<int>(x))};
}
SB_HD F32x16 AbsF(F32x16 a) { return FromBits(AndI(Bits(a), SplatI(0x7fffffffu))); }
SB_HD F32x16 Load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
SB_HD void Store(float* p, F32x16 a) {
  _mm256_storeu_ps(p, a.lo);
  _mm256_storeu_ps(p + 8, a.hi);
}
SB_HD void StoreI(uint32_t* p, I32x16 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a.lo);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 8), a.hi);
}
SB_HD F32x16 Load(const BF16* p) {
  const __m128i* h = reinterpret_cast<const __m128i*>(p);
  return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(h)), 16)),
          _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(h + 1)), 16))};
}
SB_HD I32x16 LoadBytes(const uint8_t* p) {
  const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return {_mm256_cvtepu8_epi32(b), _mm256_cvtepu8_epi32(_mm_srli_si128(b, 8))};
}
SB_HD void StoreLow16(uint16_t* p, I32x16 a) {
  const __m256i mask = _mm256_set1_epi32(0xffff);
  const __m256i packed = _mm256_packus_epi32(_mm256_and_si256(a.lo, mask), _mm256_and_si256(a.hi, mask));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(packed, 0xd8));
}

#elif defined(SB_ISA_NEON)
struct F32x16 {
  float32x4_t q[4];
};
struct I32x16 {
  uint32x4_t q[4];
};
struct M16 {
  uint32x4_t q[4];
};
#define SB_QUADS(T, EXPR)                      \
  T r;                                         \
  for (int j = 0; j < 4; ++j) r.q[j] = (EXPR); \
  return r
#define SB_OP2(NAME, T, CALL) \
  SB_HD T NAME(T a, T b) { SB_QUADS(T, CALL(a.q[j], b.q[j])); }
SB_OP2(Add, F32x16, vaddq_f32)
SB_OP2(Sub, F32x16, vsubq_f32)
SB_OP2(Mul, F32x16, vmulq_f32)
SB_OP2(Div, F32x16, vdivq_f32)
SB_OP2(AddI, I32x16, vaddq_u32)
SB_OP2(SubI, I32x16, vsubq_u32)
SB_OP2(AndI, I32x16, vandq_u32)
SB_OP2(OrI, I32x16, vorrq_u32)
#undef SB_OP2
SB_HD F32x16 Fma(F32x16 a, F32x16 b, F32x16 c) { SB_QUADS(F32x16, vfmaq_f32(c.q[j], a.q[j], b.q[j])); }
SB_HD F32x16 Sqrt(F32x16 a) { SB_QUADS(F32x16, vsqrtq_f32(a.q[j])); }
SB_HD F32x16 AbsF(F32x16 a) { SB_QUADS(F32x16, vabsq_f32(a.q[j])); }
SB_HD I32x16 Bits(F32x16 a) { SB_QUADS(I32x16, vreinterpretq_u32_f32(a.q[j])); }
SB_HD F32x16 FromBits(I32x16 a) { SB_QUADS(F32x16, vreinterpretq_f32_u32(a.q[j])); }
template <int k>
SB_HD I32x16 Shl(I32x16 a) {
  SB_QUADS(I32x16, vshlq_n_u32(a.q[j], k));
}
template <int k>
SB_HD I32x16 Shr(I32x16 a) {
  SB_QUADS(I32x16, vshrq_n_u32(a.q[j], k));
}
template <int k>
SB_HD I32x16 Sar(I32x16 a) {
  SB_QUADS(I32x16, vreinterpretq_u32_s32(vshrq_n_s32(vreinterpretq_s32_u32(a.q[j]), k)));
}
SB_HD M16 Lt(F32x16 a, F32x16 b) { SB_QUADS(M16, vcltq_f32(a.q[j], b.q[j])); }
SB_HD M16 IsNan(F32x16 a) { SB_QUADS(M16, vmvnq_u32(vceqq_f32(a.q[j], a.q[j]))); }
SB_HD F32x16 Select(M16 m, F32x16 yes, F32x16 no) { SB_QUADS(F32x16, vbslq_f32(m.q[j], yes.q[j], no.q[j])); }
SB_HD F32x16 Splat(float x) { SB_QUADS(F32x16, vdupq_n_f32(x)); }
SB_HD I32x16 SplatI(uint32_t x) { SB_QUADS(I32x16, vdupq_n_u32(x)); }
SB_HD F32x16 Load(const float* p) { SB_QUADS(F32x16, vld1q_f32(p + 4 * j)); }
SB_HD void Store(float* p, F32x16 a) {
  for (int j = 0; j < 4; ++j) vst1q_f32(p + 4 * j, a.q[j]);
}
SB_HD void StoreI(uint32_t* p, I32x16 a) {
  for (int j = 0; j < 4; ++j) vst1q_u32(p + 4 * j, a.q[j]);
}
SB_HD F32x16 Load(const BF16* p) {
  SB_QUADS(F32x16, vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(reinterpret_cast<const uint16_t*>(p) + 4 * j), 16)));
}
SB_HD I32x16 LoadBytes(const uint8_t* p) {
  const uint8x16_t b = vld1q_u8(p);
  const uint16x8_t lo = vmovl_u8(vget_low_u8(b)), hi = vmovl_u8(vget_high_u8(b));
  return {{vmovl_u16(vget_low_u16(lo)), vmovl_u16(vget_high_u16(lo)), vmovl_u16(vget_low_u16(hi)),
           vmovl_u16(vget_high_u16(hi))}};
}
SB_HD void StoreLow16(uint16_t* p, I32x16 a) {
  for (int j = 0; j < 4; ++j) vst1_u16(p + 4 * j, vmovn_u32(a.q[j]));
}
#undef SB_QUADS

#else  // scalar
struct F32x16 {
  float v[16];
};
struct I32x16 {
  uint32_t v[16];
};
struct M16 {
  bool v[16];
};
#define SB_EACH(T, EXPR)                        \
  T r;                                          \
  for (int j = 0; j < 16; ++j) r.v[j] = (EXPR); \
  return r
SB_HD F32x16 Add(F32x16 a, F32x16 b) { SB_EACH(F32x16, a.v[j] + b.v[j]); }
SB_HD F32x16 Sub(F32x16 a, F32x16 b) { SB_EACH(F32x16, a.v[j] - b.v[j]); }
SB_HD F32x16 Mul(F32x16 a, F32x16 b) { SB_EACH(F32x16, a.v[j] * b.v[j]); }
SB_HD F32x16 Div(F32x16 a, F32x16 b) { SB_EACH(F32x16, a.v[j] / b.v[j]); }
SB_HD F32x16 Fma(F32x16 a, F32x16 b, F32x16 c) { SB_EACH(F32x16, __builtin_fmaf(a.v[j], b.v[j], c.v[j])); }
SB_HD F32x16 Sqrt(F32x16 a) { SB_EACH(F32x16, __builtin_sqrtf(a.v[j])); }
SB_HD F32x16 AbsF(F32x16 a) { SB_EACH(F32x16, __builtin_fabsf(a.v[j])); }
SB_HD I32x16 AddI(I32x16 a, I32x16 b) { SB_EACH(I32x16, a.v[j] + b.v[j]); }
SB_HD I32x16 SubI(I32x16 a, I32x16 b) { SB_EACH(I32x16, a.v[j] - b.v[j]); }
SB_HD I32x16 AndI(I32x16 a, I32x16 b) { SB_EACH(I32x16, a.v[j] & b.v[j]); }
SB_HD I32x16 OrI(I32x16 a, I32x16 b) { SB_EACH(I32x16, a.v[j] | b.v[j]); }
SB_HD I32x16 Bits(F32x16 a) { SB_EACH(I32x16, ::samebits::Bits(a.v[j])); }
SB_HD F32x16 FromBits(I32x16 a) { SB_EACH(F32x16, ::samebits::FromBits(a.v[j])); }
template <int k>
SB_HD I32x16 Shl(I32x16 a) {
  SB_EACH(I32x16, a.v[j] << k);
}
template <int k>
SB_HD I32x16 Shr(I32x16 a) {
  SB_EACH(I32x16, a.v[j] >> k);
}
template <int k>
SB_HD I32x16 Sar(I32x16 a) {
  SB_EACH(I32x16, ::samebits::Sar<k>(a.v[j]));
}
SB_HD M16 Lt(F32x16 a, F32x16 b) { SB_EACH(M16, a.v[j] < b.v[j]); }
SB_HD M16 IsNan(F32x16 a) { SB_EACH(M16, a.v[j] != a.v[j]); }
SB_HD F32x16 Select(M16 m, F32x16 yes, F32x16 no) { SB_EACH(F32x16, m.v[j] ? yes.v[j] : no.v[j]); }
SB_HD F32x16 Splat(float x) { SB_EACH(F32x16, x); }
SB_HD I32x16 SplatI(uint32_t x) { SB_EACH(I32x16, x); }
SB_HD F32x16 Load(const float* p) { SB_EACH(F32x16, p[j]); }
SB_HD void Store(float* p, F32x16 a) {
  for (int j = 0; j < 16; ++j) p[j] = a.v[j];
}
SB_HD void StoreI(uint32_t* p, I32x16 a) {
  for (int j = 0; j < 16; ++j) p[j] = a.v[j];
}
SB_HD F32x16 Load(const BF16* p) { SB_EACH(F32x16, ToF32(p[j])); }
SB_HD I32x16 LoadBytes(const uint8_t* p) { SB_EACH(I32x16, p[j]); }
SB_HD void StoreLow16(uint16_t* p, I32x16 a) {
  for (int j = 0; j < 16; ++j) p[j] = static_cast<uint16_t>(a.v[j]);
}
#undef SB_EACH
#endif

#if defined(SB_ISA_NEON) || defined(SB_ISA_SCALAR)
// x86 rule for equal or unordered operands: the second.
SB_HD F32x16 Max(F32x16 a, F32x16 b) { return Select(Lt(b, a), a, b); }
SB_HD F32x16 Min(F32x16 a, F32x16 b) { return Select(Lt(a, b), a, b); }
#endif

// Rows shorter than a vector: absent lanes read as +0 and are not written.
SB_HD F32x16 LoadFirst(const float* p, int n) {
  float buffer[kLanes] = {};
  std::memcpy(buffer, p, static_cast<size_t>(n) * sizeof(float));
  return Load(buffer);
}
SB_HD F32x16 LoadFirst(const BF16* p, int n) {
  BF16 buffer[kLanes] = {};
  std::memcpy(buffer, p, static_cast<size_t>(n) * sizeof(BF16));
  return Load(buffer);
}
// RoundToBF16 of each lane.
SB_HD I32x16 RoundToBF16Bits(F32x16 a) {
  const I32x16 u = Bits(a);
  const I32x16 odd = AndI(Shr<16>(u), SplatI(1));
  const I32x16 rounded = Shr<16>(AddI(u, AddI(odd, SplatI(0x7fff))));
  return Bits(Select(IsNan(a), FromBits(SplatI(0x7fff)), FromBits(rounded)));
}
SB_HD void Store(BF16* p, F32x16 a) { StoreLow16(reinterpret_cast<uint16_t*>(p), RoundToBF16Bits(a)); }
SB_HD void StoreFirst(float* p, F32x16 a, int n) {
  float buffer[kLanes];
  Store(buffer, a);
  std::memcpy(p, buffer, static_cast<size_t>(n) * sizeof(float));
}
SB_HD void StoreFirst(BF16* p, F32x16 a, int n) {
  BF16 buffer[kLanes];
  Store(buffer, a);
  std::memcpy(p, buffer, static_cast<size_t>(n) * sizeof(BF16));
}

// ToF32 of sixteen E4M3 that are not NaN, without passing through fp32 subnormals (slow on x86).
SB_HD F32x16 LoadE4M3(const E4M3* p) {
  const I32x16 byte = LoadBytes(reinterpret_cast<const uint8_t*>(p));
  const I32x16 magnitude = AndI(byte, SplatI(0x7f));
  const F32x16 steps = Sub(FromBits(OrI(magnitude, SplatI(0x4b000000))), Splat(0x1p23f));  // the magnitude as a number
  const F32x16 normal = FromBits(AddI(Shl<20>(magnitude), SplatI(120u << 23)));
  const F32x16 value = Select(Lt(steps, Splat(8.0f)), Mul(steps, Splat(0x1p-9f)), normal);
  return FromBits(OrI(Bits(value), Shl<24>(AndI(byte, SplatI(0x80)))));
}

// RoundToE4M3 of sixteen lanes, one byte each.
SB_HD void StoreE4M3(E4M3* p, F32x16 a, int count) {
  const F32x16 magnitude = AbsF(a);
  const I32x16 u = Bits(magnitude);
  const F32x16 steps = FromBits(SubI(Bits(Add(magnitude, Splat(0x1p14f))), Bits(Splat(0x1p14f))));
  const I32x16 rounded = Shr<20>(AddI(u, AddI(AndI(Shr<20>(u), SplatI(1)), SplatI(0x7ffffu))));
  F32x16 byte = Select(Lt(magnitude, Splat(0x1p-6f)), steps, FromBits(SubI(rounded, SplatI(120u << 3))));
  byte = Select(Lt(magnitude, Splat(464.0f)), byte, FromBits(SplatI(0x7e)));
  I32x16 bits = OrI(Bits(byte), AndI(Shr<24>(Bits(a)), SplatI(0x80)));
  bits = Bits(Select(IsNan(a), FromBits(SplatI(0x7f)), FromBits(bits)));
  uint32_t lane[kLanes];
  StoreI(lane, bits);
  for (int j = 0; j < count; ++j) p[j].bits = static_cast<uint8_t>(lane[j]);
}

// Halving tree over 16 lanes: j takes j+8, then j+4, j+2, j+1 (the tail of the row plan in sum.h).
SB_HD float HalvingSum(F32x16 a) {
  float lane[kLanes];
  Store(lane, a);
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int j = 0; j < half; ++j) lane[j] = ::samebits::Add(lane[j], lane[j + half]);
  return lane[0];
}

// OrderKey of each lane, 0 for NaN: the high half of TopkKey.
SB_HD I32x16 OrderKeys(F32x16 a) {
  const F32x16 negative = FromBits(SubI(SplatI(0xffffffffu), Bits(a))),
               other = FromBits(OrI(Bits(a), SplatI(0x80000000u)));
  return Bits(Select(IsNan(a), FromBits(SplatI(0)), Select(Lt(a, Splat(0.0f)), negative, other)));
}

SB_HD float MaxOf(F32x16 a) {
  float lane[kLanes], most;
  Store(lane, a);
  most = lane[0];
  for (int j = 1; j < kLanes; ++j) most = lane[j] > most ? lane[j] : most;
  return most;
}

// RowPlanSum over vectors: step(acc, i, n) adds elements i .. i+n-1 (n <= 16) to 16 lanes; lanes past n must keep their
// value up to adding +0.
template <class Step>
SB_HD float RowPlanSumV(int64_t size, const Step& step) {
  float total = 0.0f;
  for (int64_t c = 0; c < size; c += kRowChunk) {
    const int64_t end = c + kRowChunk < size ? c + kRowChunk : size;
    F32x16 lane[4] = {Splat(0.0f), Splat(0.0f), Splat(0.0f), Splat(0.0f)};
    int64_t i = c;
    for (; i + kRowLanes <= end; i += kRowLanes)
      for (int j = 0; j < 4; ++j) lane[j] = step(lane[j], i + j * kLanes, kLanes);
    for (int j = 0; i < end; ++j, i += kLanes)
      lane[j] = step(lane[j], i, end - i < kLanes ? static_cast<int>(end - i) : kLanes);
    const F32x16 a = Add(lane[0], lane[2]), b = Add(lane[1], lane[3]);  // j + 32
    total = ::samebits::Add(total, HalvingSum(Add(a, b)));              // j + 16, then within 16 lanes
  }
  return total;
}

}  // namespace SB_ISA

template <>
struct Broadcast<SB_ISA::F32x16> {
  using Int = SB_ISA::I32x16;
  static SB_HD SB_ISA::F32x16 Of(float x) { return SB_ISA::Splat(x); }
  static SB_HD SB_ISA::I32x16 OfInt(uint32_t x) { return SB_ISA::SplatI(x); }
};

}  // namespace samebits
