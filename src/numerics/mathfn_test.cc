#include "numerics/mathfn.h"

#include <gtest/gtest.h>

#include <vector>

#include "numerics/mathfn_testing.h"
#include "numerics/numerics_probe.h"

namespace samebits {
namespace {

const float kInf = FromBits(0x7f800000u), kNan = FromBits(0xffc12345u);

template <class Fn>
double WorstUlps(const MathFnBound& bound, uint32_t stride, const Fn& fn) {
  double worst = 0;
  for (uint64_t u = 0; u < (1ull << 32); u += stride) {
    const float x = FromBits(static_cast<uint32_t>(u));
    if (x >= bound.low && x <= bound.high) worst = std::max(worst, UlpsOff(fn(x), MathFnExact(bound.fn, double{x})));
  }
  return worst;
}

TEST(Mathfn, ErrorsAreWithinTheStatedBounds) {
  for (const MathFnBound& b : kMathFnBounds)
    EXPECT_LE(WorstUlps(b, 9973, [&](float x) { return MathFnScalar(b.fn, x); }), b.ulps) << MathFnName(b.fn);
}

TEST(Mathfn, BrokenFunctionsAreCaught) {
  // ln 2 without its low part.
  auto short_ln2 = [](float x) {
    const float n = RoundToInt(Mul(x, kLog2e));
    return static_cast<float>(std::exp(double{Fma(n, -kLn2Hi, x)}) * std::exp2(double{n}));
  };
  EXPECT_GT(WorstUlps({MathFn::kExp, -80.0f, 80.0f, 0}, 99991, short_ln2), 100.0);
  // e^-x overflows although silu(x) is a normal number.
  auto plain_silu = [](float x) { return Div(x, Add(1.0f, Exp(Sub(0.0f, x)))); };
  EXPECT_GT(WorstUlps({MathFn::kSilu, -100.0f, -87.0f, 0}, 1009, plain_silu), 1e6);
  // log(1 + t) without what 1 + t rounds away.
  auto plain_softplus = [](float x) { return Log(Add(1.0f, Exp(x))); };
  EXPECT_GT(WorstUlps({MathFn::kSoftplus, -20.0f, -10.0f, 0}, 1009, plain_softplus), 1e3);
}

TEST(Mathfn, SpecialInputs) {
  EXPECT_EQ(Bits(Exp(0.0f)), Bits(1.0f));
  EXPECT_EQ(Bits(Exp(-0.0f)), Bits(1.0f));
  EXPECT_EQ(Bits(Exp(kInf)), 0x7f800000u);
  EXPECT_EQ(Bits(Exp(-kInf)), 0u);
  EXPECT_EQ(Bits(Exp(88.8f)), 0x7f800000u);
  EXPECT_EQ(Bits(Exp(-103.9f)), 1u);  // the smallest subnormal
  EXPECT_EQ(Bits(Exp(-104.0f)), 0u);
  EXPECT_EQ(Bits(Exp(kNan)), kCanonicalNan);
  EXPECT_EQ(Bits(Log(1.0f)), 0u);
  EXPECT_EQ(Bits(Log(0.0f)), 0xff800000u);
  EXPECT_EQ(Bits(Log(-0.0f)), 0xff800000u);
  EXPECT_EQ(Bits(Log(-1.0f)), kCanonicalNan);
  EXPECT_EQ(Bits(Log(-kInf)), kCanonicalNan);
  EXPECT_EQ(Bits(Log(kInf)), 0x7f800000u);
  EXPECT_EQ(Bits(Log(kNan)), kCanonicalNan);
  EXPECT_EQ(Bits(Sigmoid(0.0f)), Bits(0.5f));
  EXPECT_EQ(Bits(Sigmoid(-kInf)), 0u);
  EXPECT_EQ(Bits(Sigmoid(kInf)), Bits(1.0f));
  EXPECT_NE(Bits(Sigmoid(-95.0f)), 0u);
  EXPECT_EQ(Bits(Silu(-0.0f)), 0x80000000u);
  EXPECT_EQ(Bits(Silu(kInf)), 0x7f800000u);
  EXPECT_LT(Silu(-90.0f), -0x1p-126f);
  EXPECT_EQ(Bits(Softplus(-kInf)), 0u);
  EXPECT_EQ(Bits(Softplus(kInf)), 0x7f800000u);
  EXPECT_EQ(Bits(Softplus(200.0f)), Bits(200.0f));
}

TEST(Mathfn, IntegersAndPowersAreExact) {
  const std::pair<float, float> rounded[] = {{0.5f, 0},  {1.5f, 2},   {2.5f, 2},
                                             {-0.5f, 0}, {-1.5f, -2}, {2097151.5f, 2097152}};
  for (const auto& [x, n] : rounded) EXPECT_EQ(static_cast<int>(RoundToInt(x)), static_cast<int>(n)) << x;
  for (int n = -(1 << 22) + 1; n < (1 << 22); n += 12345)
    EXPECT_EQ(static_cast<int32_t>(IntegralToInt(static_cast<float>(n))), n);
  for (int n = -126; n <= 127; ++n) EXPECT_EQ(Bits(Pow2<float>(static_cast<uint32_t>(n))), Bits(std::ldexp(1.0f, n)));
}

TEST(Mathfn, EveryInstructionSetGivesTheScalarBits) {
  std::vector<float> x, out;
  for (uint64_t u = 0; u < (1ull << 32); u += 65521) {
    const float v = FromBits(static_cast<uint32_t>(u));
    if (!IsNan(v)) x.push_back(v);
  }
  out.resize(x.size());
  for (int k = 0; k < static_cast<int>(MathFn::kCount); ++k) {
    const MathFn fn = static_cast<MathFn>(k);
    auto compare = [&](const char* isa) {
      for (size_t i = 0; i < x.size(); ++i) {
        const float expected = MathFnScalar(fn, x[i]);
        if (IsNan(expected) && IsNan(out[i])) continue;
        ASSERT_EQ(Bits(out[i]), Bits(expected)) << isa << " " << MathFnName(fn) << " of " << x[i];
      }
    };
#define SB_ONE(isa, space)                                                    \
  if (IsaAvailable(isa)) {                                                    \
    space::MathRow(fn, x.data(), out.data(), static_cast<int64_t>(x.size())); \
    compare(#space);                                                          \
  }
    SB_FOR_EACH_ISA(SB_ONE)
#undef SB_ONE
  }
}

// Recorded bits of exp and log, NaN inputs included. A new value here is a change of the contract: say why in
// doc/numerics_changes.md. All inputs: mathfn_long_test.
TEST(Mathfn, RecordedHashesOfASample) {
  const int64_t count = ((1ll << 32) + 60) / 61;
#define SB_ONE(isa, space)                                                                              \
  if (IsaAvailable(isa)) {                                                                              \
    EXPECT_EQ(space::MathHash(MathFn::kExp, 0, 61, count, kFnvStart), 0x61694265f02457d8ull) << #space; \
    EXPECT_EQ(space::MathHash(MathFn::kLog, 0, 61, count, kFnvStart), 0x21209f91c8a4c415ull) << #space; \
  }
  SB_FOR_EACH_ISA(SB_ONE)
#undef SB_ONE
}

}  // namespace
}  // namespace samebits
