#include "ops/moe/moe.h"

#include <algorithm>

#include "ops/op_testing.h"

namespace samebits {
namespace {

TEST(Moe, DispatchGroupsByExpertTokensAscending) {
  const int32_t experts[] = {0, 2, 1, 2, 0, 1};
  const MoeDispatch plan = PlanDispatch(View<const int32_t>(experts, 3, 2), 4);
  EXPECT_EQ(plan.begin, (std::vector<int64_t>{0, 2, 4, 6, 6}));
  EXPECT_EQ(plan.token, (std::vector<int32_t>{0, 2, 1, 2, 0, 1}));
  EXPECT_EQ(plan.row, (std::vector<int32_t>{0, 4, 2, 5, 1, 3}));
}

TEST(Moe, GatherCopiesRows) {
  RandomInputs random(72);
  const int64_t tokens = 30, rows = 77;
  for (const int64_t n : {1, 33, 4096}) {
    const std::vector<BF16> x = random.NormalBF16(tokens * n);
    std::vector<int32_t> token(static_cast<size_t>(rows));
    for (int32_t& t : token) t = static_cast<int32_t>(random.Below(tokens));
    ForEachCpu([&](const CpuContext& context) {
      std::vector<BF16> out = Poisoned<BF16>(rows * n);
      ASSERT_TRUE(
          GatherRows(context, {View<const BF16>(x.data(), tokens, n), token.data(), View<BF16>(out.data(), rows, n)})
              .ok());
      for (int64_t r = 0; r < rows; ++r)
        ASSERT_EQ(std::memcmp(&out[size_t(r * n)], &x[size_t(token[size_t(r)] * n)], size_t(n) * sizeof(BF16)), 0);
    });
  }
}

TEST(Moe, CombineOnEveryBackendEqualsTheReference) {
  RandomInputs random(71);
  for (const int64_t n : {1, 16, 33, 192}) {
    const int64_t tokens = 50, k = 4;
    const std::vector<BF16> y = random.NormalBF16(tokens * k * n), shared = random.NormalBF16(tokens * n);
    const std::vector<float> w = random.NormalF32(tokens * k);
    std::vector<int32_t> rows(static_cast<size_t>(tokens * k));
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int32_t>(i);
    random.Shuffle(&rows);
    std::vector<BF16> expected = Poisoned<BF16>(tokens * n);
    CombineArgs args;
    args.expert_out = View<const BF16>(y.data(), tokens * k, n), args.row = rows.data();
    args.weights = View<const float>(w.data(), tokens, k), args.shared = View<const BF16>(shared.data(), tokens, n);
    args.out = View<BF16>(expected.data(), tokens, n);
    CombineRef(args);
    ForEachCpu([&](const CpuContext& context) {
      std::vector<BF16> out = Poisoned<BF16>(tokens * n);
      args.out = View<BF16>(out.data(), tokens, n);
      ASSERT_TRUE(Combine(context, args).ok());
      EXPECT_TRUE(SameBytes(out, expected));
    });
    // Negative control: another order of the experts is another result.
    if (n >= 33) {
      std::vector<int32_t> reversed = rows;
      std::vector<float> wr = w;
      for (int64_t t = 0; t < tokens; ++t) {
        std::reverse(reversed.begin() + t * k, reversed.begin() + (t + 1) * k);
        std::reverse(wr.begin() + t * k, wr.begin() + (t + 1) * k);
      }
      // In fp32, where no rounding to bf16 hides it.
      std::vector<float> forward = Poisoned<float>(tokens * n), backward = forward;
      args.out = View<float>(forward.data(), tokens, n);
      CombineRef(args);
      args.row = reversed.data(), args.weights = View<const float>(wr.data(), tokens, k);
      args.out = View<float>(backward.data(), tokens, n);
      CombineRef(args);
      EXPECT_FALSE(SameBytes(forward, backward));
    }
  }
}

}  // namespace
}  // namespace samebits
