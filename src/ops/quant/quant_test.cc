#include "ops/quant/quant.h"

#include "ops/op_testing.h"

namespace samebits {
namespace {

TEST(Quant, EveryBackendEqualsTheReference) {
  RandomInputs random(31);
  for (const int64_t n : {1, 15, 16, 32, 64, 127, 128, 129, 200, 512}) {
    const int64_t rows = 60, groups = (n + 127) / 128;
    std::vector<float> x = random.NormalF32(rows * n, 3.0f);
    for (size_t i = 0; i < x.size(); i += 5) x[i] *= 1e-4f;                            // subnormal codes
    for (int64_t i = 0; i < n; ++i) x[static_cast<size_t>(i)] = i % 2 ? -0.0f : 0.0f;  // an all-zero row, both signs
    x[static_cast<size_t>(n)] = 0x1p20f;
    std::vector<BF16> xb;
    for (const float v : x) xb.push_back(RoundToBF16(v));
    for (const bool power : {false, true})
      for (const bool bf16 : {false, true}) {
        auto run = [&](auto call) {
          std::vector<E4M3> values = Poisoned<E4M3>(rows * n);
          std::vector<float> scales = Poisoned<float>(rows * groups);
          std::vector<BF16> back = Poisoned<BF16>(rows * n);
          QuantArgs args;
          if (bf16) {
            args.x = View<const BF16>(xb.data(), rows, n);
          } else {
            args.x = View<const float>(x.data(), rows, n);
          }
          args.power_of_two = power;
          args.values = View<E4M3>(values.data(), rows, n), args.scales = View<float>(scales.data(), rows, groups);
          args.round_trip = View<BF16>(back.data(), rows, n);
          call(args);
          return std::make_tuple(values, scales, back);
        };
        const auto expected = run([](const QuantArgs& a) { QuantRef(a); });
        ForEachCpu([&](const CpuContext& context) {
          const auto got = run([&](const QuantArgs& a) { ASSERT_TRUE(Quant(context, a).ok()); });
          EXPECT_TRUE(SameBytes(std::get<0>(got), std::get<0>(expected))) << n;
          EXPECT_TRUE(SameBytes(std::get<1>(got), std::get<1>(expected))) << n;
          EXPECT_TRUE(SameBytes(std::get<2>(got), std::get<2>(expected))) << n;
        });
      }
  }
}

TEST(Quant, PowerOfTwoScalesComeFromTheBitPattern) {
  EXPECT_EQ(QuantScale(448.0f, true), 1.0f);
  EXPECT_EQ(QuantScale(FromBits(Bits(448.0f) + 1), true), 2.0f);
  EXPECT_EQ(QuantScale(0.0f, true), 0x1p-22f);  // 1e-4 / 448 rounded up
  EXPECT_EQ(Bits(QuantScale(3.0f, false)), Bits(3.0f * (1.0f / 448.0f)));
}

// Negative control: quantising with the raw scale and rounding the scale afterwards (a known fault) gives other bytes.
TEST(Quant, RoundingTheScaleAfterwardsIsCaught) {
  RandomInputs random(32);
  const std::vector<float> x = random.NormalF32(128);
  std::vector<E4M3> right(128), wrong(128);
  QuantArgs args;
  args.x = View<const float>(x.data(), 1, 128), args.values = View<E4M3>(right.data(), 1, 128);
  QuantRef(args);
  float most = 0;
  for (const float v : x) most = std::max(most, v < 0 ? -v : v);
  for (size_t i = 0; i < 128; ++i) wrong[i] = QuantValue(x[i], QuantScale(most, false));
  EXPECT_FALSE(SameBytes(right, wrong));
}

}  // namespace
}  // namespace samebits
