#include "ops/hadamard/hadamard.h"

#include <bit>

#include "ops/op_testing.h"

namespace samebits {
namespace {

TEST(Hadamard, EveryBackendEqualsTheReference) {
  RandomInputs random(41);
  for (int64_t n = 1; n <= 1024; n *= 2) {
    const int64_t rows = 37, cols = 3 * n;
    const std::vector<BF16> x = random.NormalBF16(rows * cols);
    std::vector<BF16> expected = Poisoned<BF16>(rows * cols);
    HadamardArgs args{View<const BF16>(x.data(), rows, cols), n, View<BF16>(expected.data(), rows, cols)};
    HadamardRef(args);
    ForEachCpu([&](const CpuContext& context) {
      std::vector<BF16> out = x;  // in place
      args.x = View<const BF16>(out.data(), rows, cols), args.out = View<BF16>(out.data(), rows, cols);
      ASSERT_TRUE(Hadamard(context, args).ok());
      EXPECT_TRUE(SameBytes(out, expected)) << n;
    });
  }
}

TEST(Hadamard, NaturalOrderOnIntegers) {
  const int64_t n = 64;
  RandomInputs random(42);
  std::vector<float> x(n), y(n);
  for (float& v : x) v = static_cast<float>(static_cast<int>(random.Below(16)) - 8);
  HadamardRef({View<const float>(x.data(), 1, n), n, View<float>(y.data(), 1, n)});
  for (uint32_t i = 0; i < n; ++i) {
    double sum = 0;
    for (uint32_t j = 0; j < n; ++j) sum += (std::popcount(i & j) % 2 ? -1 : 1) * double{x[j]};
    EXPECT_EQ(y[i], static_cast<float>(sum * 0.125));
  }
}

// Negative control: the same transform with the strides descending adds in another order.
TEST(Hadamard, AnotherOrderOfStridesIsCaught) {
  const int64_t n = 128;
  RandomInputs random(43);
  const std::vector<float> x = random.NormalF32(n);
  std::vector<float> ascending = x, descending = x;
  HadamardButterflies(ascending.data(), n);
  for (int64_t stride = n / 2; stride > 0; stride /= 2)
    for (int64_t i = 0; i < n; ++i)
      if ((i & stride) == 0) {
        const float a = descending[size_t(i)], b = descending[size_t(i + stride)];
        descending[size_t(i)] = a + b, descending[size_t(i + stride)] = a - b;
      }
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(ascending[i], descending[i], 1e-4);
  EXPECT_FALSE(SameBytes(ascending, descending));
}

TEST(Hadamard, OnlyPowersOfTwo) {
  std::vector<float> x(96);
  EXPECT_FALSE(CheckHadamard({View<const float>(x.data(), 1, 96), 48, View<float>(x.data(), 1, 96)}).ok());
}

}  // namespace
}  // namespace samebits
