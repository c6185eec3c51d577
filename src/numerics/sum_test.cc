#include "numerics/sum.h"

#include <gtest/gtest.h>

#include <cmath>

#include "numerics/numerics_probe.h"
#include "numerics/random_inputs.h"

namespace samebits {
namespace {

constexpr int64_t kSizes[] = {0,   1,    15,   16,   17,   63,   64,   65,   127,  128,  129,  192,  512,
                              513, 1023, 1024, 1025, 4095, 4096, 4097, 4160, 7168, 8191, 8192, 12345};

std::vector<float> Wide(int64_t n, uint64_t seed) {
  RandomInputs random(seed);
  std::vector<float> x = random.NormalF32(n);
  for (float& v : x) v = std::ldexp(v, static_cast<int>(random.Below(24)) - 12);
  return x;
}

// The row plan spelled out: who is added to whom, without a loop over lanes.
float SpelledRowSum(const std::vector<float>& x, int lanes = 64) {
  float total = 0;
  for (size_t c = 0; c < x.size(); c += 4096) {
    std::vector<float> lane(static_cast<size_t>(lanes), 0.0f);
    for (size_t i = c; i < std::min(c + 4096, x.size()); ++i) {
      float& l = lane[(i - c) % static_cast<size_t>(lanes)];
      l = l + x[i];
    }
    while (lane.size() > 1) {
      const size_t half = lane.size() / 2;
      for (size_t j = 0; j < half; ++j) lane[j] = lane[j] + lane[j + half];
      lane.resize(half);
    }
    total = total + lane[0];
  }
  return total;
}

float RowSumScalar(const std::vector<float>& x) {
  return RowPlanSum(static_cast<int64_t>(x.size()), [&](float acc, int64_t i) { return Add(acc, x[size_t(i)]); });
}

TEST(Sum, RowPlanIsAsSpelledOut) {
  for (const int64_t n : kSizes) {
    const std::vector<float> x = Wide(n, 100 + static_cast<uint64_t>(n));
    EXPECT_EQ(Bits(RowSumScalar(x)), Bits(SpelledRowSum(x))) << n;
  }
}

TEST(Sum, EveryInstructionSetWalksTheRowPlan) {
  for (const int64_t n : kSizes) {
    const std::vector<float> x = Wide(n, 200 + static_cast<uint64_t>(n));
    const float sum = RowSumScalar(x);
    const float squares = RowPlanSum(n, [&](float acc, int64_t i) { return Fma(x[size_t(i)], x[size_t(i)], acc); });
#define SB_CHECK_SUM(isa, space)                                              \
  if (IsaAvailable(isa)) {                                                    \
    EXPECT_EQ(Bits(space::RowSum(x.data(), n)), Bits(sum)) << n;              \
    EXPECT_EQ(Bits(space::RowSumOfSquares(x.data(), n)), Bits(squares)) << n; \
  }
    SB_FOR_EACH_ISA(SB_CHECK_SUM)
#undef SB_CHECK_SUM
  }
}

TEST(Sum, GemmPlanIsAsSpelledOut) {
  for (const int64_t n : kSizes) {
    const std::vector<float> a = Wide(n, 300 + static_cast<uint64_t>(n)), b = Wide(n, 400 + static_cast<uint64_t>(n));
    std::vector<float> segments;
    float block = 0.0f;
    for (int64_t k = 0; k < n; ++k) {
      if (k % 1024 == 0) segments.push_back(0.0f);
      if (k % 128 == 0) block = 0.0f;
      block = std::fma(a[size_t(k)], b[size_t(k)], block);
      if (k % 128 == 127 || k == n - 1) segments.back() += block;
    }
    float total = 0;
    for (const float s : segments) total += s;
    const float plan = GemmPlanSum(n, [&](float acc, int64_t k) { return Fma(a[size_t(k)], b[size_t(k)], acc); });
    EXPECT_EQ(Bits(plan), Bits(total)) << n;
  }
}

// |error| <= (additions on the longest path) * 2^-24 * sum of magnitudes.
TEST(Sum, ErrorAgainstFp64IsWithinTheBound) {
  for (const int64_t n : kSizes) {
    const std::vector<float> x = Wide(n, 500 + static_cast<uint64_t>(n));
    double exact = 0, magnitudes = 0;
    for (const float v : x) exact += double{v}, magnitudes += std::fabs(double{v});
    EXPECT_NEAR(double{RowSumScalar(x)}, exact, (64 + 6 + 4) * 0x1p-24 * magnitudes) << n;
  }
}

// Negative controls: half the lanes, or one chain, is another sum.
TEST(Sum, OtherOrdersAreCaught) {
  const std::vector<float> x = Wide(4097, 600);
  float chain = 0;
  for (const float v : x) chain += v;
  EXPECT_NE(Bits(RowSumScalar(x)), Bits(chain));
  EXPECT_NE(Bits(RowSumScalar(x)), Bits(SpelledRowSum(x, 32)));
}

// Only negative zeros: the plan starts at +0, and a missing element is absent.
TEST(Sum, ZerosSumToPlusZero) {
  for (const size_t n : {1u, 5u, 64u, 70u}) EXPECT_EQ(Bits(RowSumScalar(std::vector<float>(n, -0.0f))), 0u);
}

}  // namespace
}  // namespace samebits
