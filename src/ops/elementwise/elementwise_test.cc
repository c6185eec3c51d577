#include "ops/elementwise/elementwise.h"

#include <cmath>

#include "ops/op_testing.h"

namespace samebits {
namespace {

TEST(Elementwise, EveryBackendEqualsTheReference) {
  RandomInputs random(51);
  for (const int64_t n : {1, 15, 16, 17, 48, 129, 2048}) {
    const int64_t rows = 40;
    const std::vector<BF16> a = random.NormalBF16(rows * n, 6.0f), b = random.NormalBF16(rows * n);
    const std::vector<float> af = random.NormalF32(rows * n, 30.0f), bf = random.NormalF32(rows * n);
    std::vector<BF16> swiglu = Poisoned<BF16>(rows * n), sum = swiglu;
    std::vector<float> swiglu32 = Poisoned<float>(rows * n);
    const auto A = View<const BF16>(a.data(), rows, n), B = View<const BF16>(b.data(), rows, n);
    SwigluRef({A, B, View<BF16>(swiglu.data(), rows, n)});
    AddRef({A, B, View<BF16>(sum.data(), rows, n)});
    SwigluRef({View<const float>(af.data(), rows, n), View<const float>(bf.data(), rows, n),
               View<float>(swiglu32.data(), rows, n)});
    ForEachCpu([&](const CpuContext& context) {
      std::vector<BF16> o1 = Poisoned<BF16>(rows * n), o2 = o1;
      std::vector<float> o3 = Poisoned<float>(rows * n);
      ASSERT_TRUE(Swiglu(context, {A, B, View<BF16>(o1.data(), rows, n)}).ok());
      ASSERT_TRUE(AddRows(context, {A, B, View<BF16>(o2.data(), rows, n)}).ok());
      ASSERT_TRUE(Swiglu(context, {View<const float>(af.data(), rows, n), View<const float>(bf.data(), rows, n),
                                   View<float>(o3.data(), rows, n)})
                      .ok());
      EXPECT_TRUE(SameBytes(o1, swiglu));
      EXPECT_TRUE(SameBytes(o2, sum));
      EXPECT_TRUE(SameBytes(o3, swiglu32));
    });
  }
}

// exp is good to 1 ulp; the sum, the division and the product add half an ulp each.
TEST(Elementwise, SwigluErrorAgainstFp64) {
  for (float g = -80.0f; g < 80.0f; g += 0.37f) {
    const double exact = double{g} / (1 + std::exp(-double{g})) * 1.5;
    EXPECT_NEAR(SwigluValue(g, 1.5f), exact, std::fabs(exact) * 4 * 0x1p-23 + 1e-38) << g;
  }
}

// Below -88.73 e^-x overflows, but the product is still a normal number.
TEST(Elementwise, FarNegativeGatesKeepTheirValue) {
  for (const float g : {-88.5f, -89.0f, -90.0f, -91.0f}) {
    const double exact = double{g} * std::exp(double{g}) * 1024.0;
    EXPECT_NEAR(SwigluValue(g, 1024.0f), exact, std::fabs(exact) * 64 * 0x1p-23) << g;
  }
}

// Negative control: a silu stored in bf16 before the product is a second rounding, and shows.
TEST(Elementwise, ASecondRoundingIsCaught) {
  RandomInputs random(52);
  int differ = 0;
  for (int i = 0; i < 1000; ++i) {
    const float gate = random.Normal(), up = random.Normal();
    const float broken = Mul(ToF32(RoundToBF16(Silu(gate))), up);
    differ += RoundToBF16(broken).bits != RoundToBF16(SwigluValue(gate, up)).bits;
  }
  EXPECT_GT(differ, 100);
}

TEST(Elementwise, ShapesMustAgree) {
  std::vector<float> x(12);
  EXPECT_FALSE(
      CheckAdd({View<const float>(x.data(), 3, 4), View<const float>(x.data(), 4, 3), View<float>(x.data(), 3, 4)})
          .ok());
}

}  // namespace
}  // namespace samebits
