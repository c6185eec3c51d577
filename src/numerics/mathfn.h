// exp, log, sigmoid and their kin from fp32 add, mul, fma, div and integers only: one source for host, device and SIMD
// (V = float or 16 lanes, see simd.h), so the bits are the same everywhere. Coefficients: tools/fit_coefficients.py.
// Accuracy (against fp64 over every fp32 input, mathfn_long_test): stated at each function.
#pragma once

#include "numerics/hd.h"

namespace samebits {

inline constexpr float kLog2e = 0x1.715476p+0f;
inline constexpr float kLn2Hi = 0x1.62e400p-1f;  // 15 bits: n * kLn2Hi is exact for |n| < 2^9
inline constexpr float kLn2Lo = 0x1.7f7d1cp-20f;
inline constexpr float kRoundMagic = 0x1.8p23f;  // adding it rounds |x| < 2^22 to an integer, nearest even
inline constexpr uint32_t kCanonicalNan = 0x7fc00000u;

// Nearest integer, ties to even; |x| < 2^22.
template <class V>
SB_HD V RoundToInt(V x) {
  const V magic = Set1<V>(kRoundMagic);
  return Sub(Add(x, magic), magic);
}

// x as a two's complement integer; x integral, |x| < 2^22.
template <class V>
SB_HD auto IntegralToInt(V x) {
  const V magic = Set1<V>(kRoundMagic);
  return SubI(Bits(Add(x, magic)), Set1I<V>(0x4b400000u));
}

// 2^n as a float for integers -126 <= n <= 127.
template <class V, class I>
SB_HD V Pow2(I n) {
  return FromBits(Shl<23>(AddI(n, Set1I<V>(127))));
}

// 2^f for |f| <= 1/2, in [0.7071, 1.4143]. Max error 0.81 ulp. The attention weight is this times an exact power of two.
template <class V>
SB_HD V Exp2Fraction(V f) {
  V p = Set1<V>(0x1.00a582p-16f);
  p = Fma(p, f, Set1<V>(0x1.444000p-13f));
  p = Fma(p, f, Set1<V>(0x1.5d879ep-10f));
  p = Fma(p, f, Set1<V>(0x1.3b2a1cp-7f));
  p = Fma(p, f, Set1<V>(0x1.c6b08ep-5f));
  p = Fma(p, f, Set1<V>(0x1.ebfbe0p-3f));
  p = Fma(p, f, Set1<V>(0x1.62e430p-1f));
  return Fma(p, f, Set1<V>(1.0f));
}

// e^x. Gradual underflow to +0 below -104, +inf above 88.73, NaN canonical. Max error 0.98 ulp.
template <class V>
SB_HD V Exp(V x) {
  V c = Select(Lt(x, Set1<V>(-104.0f)), Set1<V>(-104.0f), x);
  c = Select(Lt(Set1<V>(89.0f), c), Set1<V>(89.0f), c);
  c = Select(IsNan(x), Set1<V>(0.0f), c);
  const V n = RoundToInt(Mul(c, Set1<V>(kLog2e)));
  V r = Fma(n, Set1<V>(-kLn2Hi), c);
  r = Fma(n, Set1<V>(-kLn2Lo), r);
  V p = Set1<V>(0x1.6d110ap-10f);
  p = Fma(p, r, Set1<V>(0x1.120b6ep-7f));
  p = Fma(p, r, Set1<V>(0x1.55551ap-5f));
  p = Fma(p, r, Set1<V>(0x1.5554dcp-3f));
  p = Fma(p, r, Set1<V>(0.5f));
  p = Fma(p, r, Set1<V>(1.0f));
  p = Fma(p, r, Set1<V>(1.0f));
  // 2^n in two factors, so that n down to -151 reaches the subnormals with one rounding and n = 128 reaches infinity.
  const auto i = IntegralToInt(n);
  const auto half = Sar<1>(i);
  p = Mul(Mul(p, Pow2<V>(half)), Pow2<V>(SubI(i, half)));
  return Select(IsNan(x), FromBits(Set1I<V>(kCanonicalNan)), p);
}

// Natural logarithm. log(+-0) = -inf, log(x < 0) and log(NaN) canonical NaN, log(+inf) = +inf. Max error 0.96 ulp.
template <class V>
SB_HD V Log(V x) {
  const V tiny = Mul(x, Set1<V>(0x1p25f));
  const auto subnormal = Lt(x, Set1<V>(0x1p-126f));
  const V y = Select(subnormal, tiny, x);
  // y = m * 2^e with m in [sqrt(1/2), sqrt(2))
  const auto shifted = SubI(Bits(y), Set1I<V>(0x3f3504f3u));
  const auto e_int = Sar<23>(shifted);
  const V m = FromBits(SubI(Bits(y), Shl<23>(e_int)));
  V e = Sub(FromBits(AddI(e_int, Set1I<V>(0x4b400000u))), Set1<V>(kRoundMagic));
  e = Select(subnormal, Sub(e, Set1<V>(25.0f)), e);
  const V f = Sub(m, Set1<V>(1.0f));
  const V s = Div(f, Add(f, Set1<V>(2.0f)));
  const V z = Mul(s, s);
  V p = Set1<V>(0x1.ddced8p-3f);
  p = Fma(p, z, Set1<V>(0x1.245c44p-2f));
  p = Fma(p, z, Set1<V>(0x1.9999ecp-2f));
  p = Fma(p, z, Set1<V>(0x1.555556p-1f));
  // log(1+f) = f - s*f + s*z*P: f is exact, so cancellation stays small.
  const V tail = Fma(e, Set1<V>(kLn2Lo), Mul(s, Sub(Mul(z, p), f)));
  V result = Fma(e, Set1<V>(kLn2Hi), Add(f, tail));
  result = Select(Lt(Set1<V>(0x1.fffffep127f), x), x, result);
  result = Select(Lt(x, Set1<V>(0x1p-149f)), FromBits(Set1I<V>(0xff800000u)), result);
  const auto bad = Lt(x, Set1<V>(0.0f));
  result = Select(bad, FromBits(Set1I<V>(kCanonicalNan)), result);
  return Select(IsNan(x), FromBits(Set1I<V>(kCanonicalNan)), result);
}

// e^-|x|, in (0, 1]: what the three functions below are made of. e^-x itself would overflow from x = -88.73 on, where
// sigmoid and silu are still numbers.
template <class V>
SB_HD V ExpNegativeAbs(V x) {
  return Exp(Select(Lt(x, Set1<V>(0.0f)), x, Sub(Set1<V>(0.0f), x)));
}

// 1 / (1 + e^-x), for negative x as e^x / (1 + e^x). Max error 2.41 ulp.
template <class V>
SB_HD V Sigmoid(V x) {
  const V one = Set1<V>(1.0f), t = ExpNegativeAbs(x);
  return Div(Select(Lt(x, Set1<V>(0.0f)), t, one), Add(one, t));
}

// x / (1 + e^-x), for negative x as x e^x / (1 + e^x). Max error 3.35 ulp from x = -87 on; below, where e^x turns
// subnormal, 53 ulp of a result under 2^-118. -inf gives NaN.
template <class V>
SB_HD V Silu(V x) {
  const V t = ExpNegativeAbs(x);
  return Div(Select(Lt(x, Set1<V>(0.0f)), Mul(x, t), x), Add(Set1<V>(1.0f), t));
}

// log(1 + e^x) = max(x, 0) + log(1 + e^-|x|), the logarithm through 1 + t with t in (0, 1]. Max error 2.17 ulp.
template <class V>
SB_HD V Softplus(V x) {
  const V zero = Set1<V>(0.0f);
  const auto negative = Lt(x, zero);
  const V t = ExpNegativeAbs(x);
  // log1p(t): Log(u) corrected by the part of t that 1 + t rounds away.
  const V u = Add(Set1<V>(1.0f), t);
  const V lost = Sub(t, Sub(u, Set1<V>(1.0f)));
  const V log1p = Add(Log(u), Div(lost, u));
  return Add(Select(negative, zero, x), log1p);
}

// 1 / sqrt(x), both correctly rounded. Max error 1.5 ulp.
template <class V>
SB_HD V Rsqrt(V x) {
  return Div(Set1<V>(1.0f), Sqrt(x));
}

}  // namespace samebits
