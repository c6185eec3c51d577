// For tests: the error of a mathfn.h function against fp64, and the bounds its comments state.
#pragma once

#include <cmath>

#include "numerics/numerics_probe.h"

namespace samebits {

// The function in fp64. libm's own error there is below 2^-52, 2^-28 of an fp32 ulp.
inline double MathFnExact(MathFn fn, double x) {
  switch (fn) {
    case MathFn::kExp:
      return std::exp(x);
    case MathFn::kLog:
      return std::log(x);
    case MathFn::kSigmoid:
      return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
    case MathFn::kSilu:
      return x >= 0 ? x / (1 + std::exp(-x)) : x * (std::exp(x) / (1 + std::exp(x)));
    case MathFn::kSoftplus:
      return (x > 0 ? x : 0) + std::log1p(std::exp(-std::fabs(x)));
    case MathFn::kRsqrt:
      return 1 / std::sqrt(x);
    default:
      return std::exp2(x);
  }
}

// |got - exact| in units of the last place of an fp32 of exact's size (2^-149 at least). NaN and infinities must agree:
// infinite if they do not.
inline double UlpsOff(float got, double exact) {
  if (std::isnan(exact)) return std::isnan(got) ? 0 : INFINITY;
  const float rounded = static_cast<float>(exact);
  if (std::isinf(got) || std::isinf(rounded)) return got == rounded ? 0 : INFINITY;
  int exponent = 0;
  std::frexp(exact, &exponent);
  return std::fabs(double{got} - exact) / std::ldexp(1.0, (exponent < -125 ? -125 : exponent) - 24);
}

struct MathFnBound {
  MathFn fn;
  float low, high;  // the inputs it holds for
  double ulps;
};
// The maxima over every fp32 input, as mathfn_long_test measures and mathfn.h states them.
inline constexpr MathFnBound kMathFnBounds[] = {
    {MathFn::kExp, -INFINITY, INFINITY, 0.98},       {MathFn::kLog, -INFINITY, INFINITY, 0.96},
    {MathFn::kSigmoid, -INFINITY, INFINITY, 2.5},    {MathFn::kSilu, -87.0f, INFINITY, 3.4},
    {MathFn::kSilu, -0x1.fffffep127f, -87.0f, 64.0}, {MathFn::kSoftplus, -INFINITY, INFINITY, 2.2},
    {MathFn::kRsqrt, 0x1p-149f, INFINITY, 1.5},      {MathFn::kExp2Fraction, -0.5f, 0.5f, 0.81},
};

}  // namespace samebits
