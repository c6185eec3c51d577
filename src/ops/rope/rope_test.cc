#include "ops/rope/rope.h"

#include <cmath>

#include "ops/op_testing.h"

namespace samebits {
namespace {

YarnConfig Released() {
  YarnConfig c;
  c.factor = 40, c.mscale_all_dim = 1;
  return c;
}

TEST(Rope, ReleasedFrequencies) {
  const YarnRamp ramp = YarnRampOf(Released());
  EXPECT_EQ(ramp.low, 10);
  EXPECT_EQ(ramp.high, 23);
  const std::vector<float> g = RopeInverseFrequencies(Released());
  ASSERT_EQ(g.size(), 32u);
  const std::pair<size_t, double> known[] = {{0, 1},
                                             {1, 0.749894209},
                                             {9, 0.0749894209},
                                             {10, 0.0562341325},
                                             {11, 0.0390069266},
                                             {15, 0.00833450895},
                                             {16, 0.0055},
                                             {22, 1.77827941e-4},
                                             {23, 3.33380358e-5},
                                             {24, 2.5e-5},
                                             {31, 3.33380358e-6}};
  for (const auto& [i, value] : known) EXPECT_NEAR(g[i], value, value * 1e-6) << i;
  EXPECT_NEAR(YarnSoftmaxMultiplier(Released()), 1.87385421, 1e-6);
}

TEST(Rope, SinCosAreTheNearestFloats) {
  RandomInputs random(81);
  int off = 0;
  for (int i = 0; i < 20000; ++i) {
    const float angle = (i % 2 ? 200000.0f : 7.0f) * (2 * random.Uniform() - 1);
    float s, c;
    SinCos(angle, &s, &c);
    off += s != static_cast<float>(std::sin(double{angle}));
    off += c != static_cast<float>(std::cos(double{angle}));
  }
  EXPECT_LE(off, 2);  // a tie of the last fp64 bit may fall either way
}

TEST(Rope, EveryBackendEqualsTheReference) {
  RandomInputs random(82);
  for (const int dim : {2, 8, 16, 30, 32, 64}) {
    YarnConfig config = Released();
    config.dim = dim;
    const RopeTable table(config, 300);
    const int64_t tokens = 70, heads = 3, stride = dim + 9;
    std::vector<int32_t> positions;
    for (int64_t t = 0; t < tokens; ++t) positions.push_back(static_cast<int32_t>(random.Below(300)));
    const std::vector<BF16> x = random.NormalBF16(tokens * heads * stride);
    for (const RopeLayout layout : {RopeLayout::kInterleaved, RopeLayout::kHalfSplit}) {
      std::vector<BF16> expected = x;
      RopeArgs args{
          View<BF16>(expected.data(), tokens, heads * stride), heads, stride, 5, positions.data(), &table, layout};
      RopeRef(args);
      ForEachCpu([&](const CpuContext& context) {
        std::vector<BF16> out = x;
        args.x = View<BF16>(out.data(), tokens, heads * stride);
        ASSERT_TRUE(Rope(context, args).ok());
        EXPECT_TRUE(SameBytes(out, expected)) << dim;
      });
    }
  }
}

// Negative control: the two layouts are different functions, and position 0 changes nothing.
TEST(Rope, LayoutsAreToldApart) {
  YarnConfig config;
  config.dim = 8;
  const RopeTable table(config, 4);
  std::vector<float> a = {1, 2, 3, 4, 5, 6, 7, 8}, b = a, zero = a;
  const int32_t three = 3, none = 0;
  RopeRef({View<float>(a.data(), 1, 8), 1, 8, 0, &three, &table, RopeLayout::kInterleaved});
  RopeRef({View<float>(b.data(), 1, 8), 1, 8, 0, &three, &table, RopeLayout::kHalfSplit});
  RopeRef({View<float>(zero.data(), 1, 8), 1, 8, 0, &none, &table, RopeLayout::kHalfSplit});
  EXPECT_FALSE(SameBytes(a, b));
  EXPECT_TRUE(SameBytes(zero, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(Rope, PositionsOutsideTheTableAreNamed) {
  const RopeTable table(YarnConfig{.dim = 8}, 4);
  std::vector<float> x(8);
  const int32_t bad = 4;
  EXPECT_NE(
      CheckRope({View<float>(x.data(), 1, 8), 1, 8, 0, &bad, &table, RopeLayout::kHalfSplit}).text().find("position 4"),
      std::string::npos);
}

}  // namespace
}  // namespace samebits
