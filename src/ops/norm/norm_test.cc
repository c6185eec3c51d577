#include "ops/norm/norm.h"

#include <cmath>

#include "numerics/sum.h"
#include "ops/op_testing.h"

namespace samebits {
namespace {

constexpr int64_t kSizes[] = {1, 15, 16, 63, 64, 65, 127, 128, 129, 192, 4095, 4096, 4097, 7168};

TEST(Norm, EveryBackendEqualsTheReference) {
  RandomInputs random(21);
  for (const int64_t n : kSizes) {
    const int64_t tokens = n < 200 ? 300 : 5;
    const std::vector<BF16> x = random.NormalBF16(tokens * n), residual = random.NormalBF16(tokens * n, 8.0f);
    const std::vector<float> w = random.NormalF32(n), b = random.NormalF32(n), xf = random.NormalF32(tokens * n);
    for (const bool rounded : {false, true}) {
      std::vector<BF16> out = Poisoned<BF16>(tokens * n), sum = Poisoned<BF16>(tokens * n);
      RmsNormArgs args;
      args.x = View<const BF16>(x.data(), tokens, n), args.residual = View<const BF16>(residual.data(), tokens, n);
      args.weight = w.data(), args.norm_of_rounded_sum = rounded;
      args.residual_out = View<BF16>(sum.data(), tokens, n), args.out = View<BF16>(out.data(), tokens, n);
      RmsNormRef(args);
      ForEachCpu([&](const CpuContext& context) {
        std::vector<BF16> out2 = Poisoned<BF16>(tokens * n), sum2 = Poisoned<BF16>(tokens * n);
        args.residual_out = View<BF16>(sum2.data(), tokens, n), args.out = View<BF16>(out2.data(), tokens, n);
        ASSERT_TRUE(RmsNorm(context, args).ok());
        EXPECT_TRUE(SameBytes(out2, out)) << "n " << n;
        EXPECT_TRUE(SameBytes(sum2, sum)) << "n " << n;
      });
    }
    std::vector<float> out = Poisoned<float>(tokens * n);
    LayerNormArgs layer;
    layer.x = View<const float>(xf.data(), tokens, n), layer.weight = w.data(), layer.bias = b.data();
    layer.out = View<float>(out.data(), tokens, n);
    LayerNormRef(layer);
    ForEachCpu([&](const CpuContext& context) {
      std::vector<float> out2 = Poisoned<float>(tokens * n);
      layer.out = View<float>(out2.data(), tokens, n);
      ASSERT_TRUE(LayerNorm(context, layer).ok());
      EXPECT_TRUE(SameBytes(out2, out)) << "n " << n;
    });
  }
}

// 1 + 64 + log2 additions deep, then five roundings.
TEST(Norm, ErrorAgainstFp64IsWithinTheBound) {
  RandomInputs random(22);
  const int64_t n = 7168;
  const std::vector<float> x = random.NormalF32(n), w(static_cast<size_t>(n), 1.0f);
  std::vector<float> out(static_cast<size_t>(n));
  RmsNormArgs args;
  args.x = View<const float>(x.data(), 1, n), args.weight = w.data(), args.out = View<float>(out.data(), 1, n);
  RmsNormRef(args);
  double sum = 0;
  for (const float v : x) sum += double{v} * double{v};
  const double inverse = 1 / std::sqrt(sum / static_cast<double>(n) + 1e-6);
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_NEAR(out[i], x[i] * inverse, std::fabs(x[i]) * (64 + 6 + 2 + 5) * 0x1p-24);
}

// Negative control: the V3 and V3.2 residual rules are told apart, and so is a plain ascending sum.
TEST(Norm, BrokenRulesAreCaught) {
  RandomInputs random(23);
  const int64_t n = 513, tokens = 16;
  const std::vector<BF16> x = random.NormalBF16(tokens * n), residual = random.NormalBF16(tokens * n, 8.0f);
  const std::vector<float> w = random.NormalF32(n);
  std::vector<BF16> a(static_cast<size_t>(tokens * n)), b = a, sum = a;
  RmsNormArgs args;
  args.x = View<const BF16>(x.data(), tokens, n), args.residual = View<const BF16>(residual.data(), tokens, n);
  args.weight = w.data(), args.residual_out = View<BF16>(sum.data(), tokens, n);
  args.out = View<BF16>(a.data(), tokens, n);
  RmsNormRef(args);
  args.norm_of_rounded_sum = true, args.out = View<BF16>(b.data(), tokens, n);
  RmsNormRef(args);
  EXPECT_FALSE(SameBytes(a, b));
  const std::vector<float> xs = random.NormalF32(n);
  float chain = 0;
  for (const float v : xs) chain = Fma(v, v, chain);
  const float plan = RowPlanSum(
      n, [&](float acc, int64_t i) { return Fma(xs[static_cast<size_t>(i)], xs[static_cast<size_t>(i)], acc); });
  EXPECT_NE(Bits(chain), Bits(plan));
}

TEST(Norm, WrongShapesAreRefusedByName) {
  std::vector<BF16> x(12);
  std::vector<float> w(4);
  RmsNormArgs args;
  args.x = View<const BF16>(x.data(), 3, 4), args.weight = w.data(), args.out = View<BF16>(x.data(), 3, 3, 4);
  EXPECT_NE(CheckRmsNorm(args).text().find("out is [3, 3], expected [3, 4]"), std::string::npos);
}

}  // namespace
}  // namespace samebits
