// Functions marked SB_HD mean the same on host and device. They are always inlined: a copy compiled for AVX-512 must
// never be the one the linker keeps for a machine without it.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define SB_HD __host__ __device__ __forceinline__
#else
#define SB_HD inline __attribute__((always_inline))
#endif

namespace samebits {

// The float primitives of the contract (doc/numerics.md, ground rule 1), under the names the templates in mathfn.h and
// sum.h use. numerics/simd.h overloads each for 16 lanes.
SB_HD float Add(float a, float b) { return a + b; }
SB_HD float Sub(float a, float b) { return a - b; }
SB_HD float Mul(float a, float b) { return a * b; }
SB_HD float Div(float a, float b) { return a / b; }
SB_HD float Fma(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
  return __fmaf_rn(a, b, c);
#else
  return __builtin_fmaf(a, b, c);
#endif
}
SB_HD float Sqrt(float a) {
#if defined(__CUDA_ARCH__)
  return __fsqrt_rn(a);
#else
  return __builtin_sqrtf(a);
#endif
}
SB_HD uint32_t Bits(float a) { return __builtin_bit_cast(uint32_t, a); }
SB_HD float FromBits(uint32_t a) { return __builtin_bit_cast(float, a); }
SB_HD uint32_t AddI(uint32_t a, uint32_t b) { return a + b; }
SB_HD uint32_t SubI(uint32_t a, uint32_t b) { return a - b; }
SB_HD uint32_t AndI(uint32_t a, uint32_t b) { return a & b; }
SB_HD uint32_t OrI(uint32_t a, uint32_t b) { return a | b; }
template <int kBits>
SB_HD uint32_t Shl(uint32_t a) {
  return a << kBits;
}
template <int kBits>
SB_HD uint32_t Shr(uint32_t a) {
  return a >> kBits;
}
// Arithmetic shift of the two's complement value.
template <int kBits>
SB_HD uint32_t Sar(uint32_t a) {
  return static_cast<uint32_t>(static_cast<int32_t>(a) >> kBits);
}
SB_HD bool Lt(float a, float b) { return a < b; }
SB_HD bool IsNan(float a) { return a != a; }
SB_HD float Select(bool mask, float yes, float no) { return mask ? yes : no; }

// Set1<V>(x): x in every lane. For float, x itself.
template <class V>
struct Broadcast;
template <>
struct Broadcast<float> {
  using Int = uint32_t;
  static SB_HD float Of(float x) { return x; }
  static SB_HD uint32_t OfInt(uint32_t x) { return x; }
};
template <class V>
SB_HD V Set1(float x) {
  return Broadcast<V>::Of(x);
}
template <class V>
SB_HD typename Broadcast<V>::Int Set1I(uint32_t x) {
  return Broadcast<V>::OfInt(x);
}

}  // namespace samebits
