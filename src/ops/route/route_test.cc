#include "ops/route/route.h"

#include <cmath>

#include "ops/op_testing.h"

namespace samebits {
namespace {

struct Routed {
  std::vector<int32_t> experts, by_rank;
  std::vector<float> weights;
};

RouteArgs Args(const std::vector<float>& logits, const std::vector<float>* bias, int64_t experts, Routed* out) {
  const int64_t tokens = static_cast<int64_t>(logits.size()) / experts;
  RouteArgs args;
  args.logits = View<const float>(logits.data(), tokens, experts);
  args.bias = bias ? bias->data() : nullptr;
  args.n_group = 8, args.topk_group = 4, args.k = 8, args.scaling = 2.5f;
  out->experts = Poisoned<int32_t>(tokens * args.k), out->by_rank = out->experts,
  out->weights = Poisoned<float>(tokens * args.k);
  args.experts = View<int32_t>(out->experts.data(), tokens, args.k);
  args.weights = View<float>(out->weights.data(), tokens, args.k);
  args.by_rank = out->by_rank.data();
  return args;
}

// Logits on a coarse grid: ties among experts and groups, both zeros, all-negative choices.
std::vector<float> TiedLogits(RandomInputs* random, int64_t n) {
  std::vector<float> v(static_cast<size_t>(n));
  for (float& x : v) x = static_cast<float>(static_cast<int>(random->Normal() * 3)) * 0.5f;
  return v;
}

TEST(Route, EveryBackendEqualsTheReference) {
  RandomInputs random(61);
  for (const int64_t experts : {64, 256, 384})
    for (const RouteScore scoring : {RouteScore::kSigmoid, RouteScore::kSqrtSoftplus}) {
      const std::vector<float> logits = TiedLogits(&random, 70 * experts);
      std::vector<float> bias = TiedLogits(&random, experts);
      for (float& b : bias) b -= 2.0f;  // every biased score negative: masking with 0 would win
      Routed expected;
      RouteArgs args = Args(logits, &bias, experts, &expected);
      args.scoring = scoring;
      RouteRef(args);
      ForEachCpu([&](const CpuContext& context) {
        Routed got;
        RouteArgs a = Args(logits, &bias, experts, &got);
        a.scoring = scoring;
        ASSERT_TRUE(Route(context, a).ok());
        EXPECT_TRUE(SameBytes(got.experts, expected.experts));
        EXPECT_TRUE(SameBytes(got.by_rank, expected.by_rank));
        EXPECT_TRUE(SameBytes(got.weights, expected.weights));
      });
    }
}

TEST(Route, TiesGoToTheLowerNumber) {
  const std::vector<float> logits(64, 0.0f);
  Routed got;
  RouteRef(Args(logits, nullptr, 64, &got));
  for (int32_t j = 0; j < 8; ++j) EXPECT_EQ(got.experts[static_cast<size_t>(j)], j);
  for (const float w : got.weights) EXPECT_EQ(w, 2.5f / 8);
}

TEST(Route, BrokenRulesAreCaught) {
  RandomInputs random(62);
  const std::vector<float> logits = random.NormalF32(512 * 256, 0.02f);
  std::vector<float> bias(256);
  for (float& b : bias) b = -0.6f + 0.001f * random.Normal();
  Routed contract;
  RouteRef(Args(logits, &bias, 256, &contract));
  for (const RouteRule& rule : {RouteRule{.bf16_logits = true}, RouteRule{.mask_with_zero = true}}) {
    Routed broken;
    RouteRef(Args(logits, &bias, 256, &broken), rule);
    EXPECT_FALSE(SameBytes(contract.experts, broken.experts));
  }
  const std::vector<float> tied = TiedLogits(&random, 64 * 256);
  Routed low, high;
  RouteRef(Args(tied, nullptr, 256, &low));
  RouteRef(Args(tied, nullptr, 256, &high), RouteRule{.high_index_wins_ties = true});
  EXPECT_FALSE(SameBytes(low.experts, high.experts));
}

TEST(Route, WithoutNormalisationWeightsAreScaledScores) {
  RandomInputs random(63);
  const std::vector<float> logits = random.NormalF32(64);
  Routed got;
  RouteArgs args = Args(logits, nullptr, 64, &got);
  args.normalise = false;
  RouteRef(args);
  for (size_t j = 0; j < 8; ++j)
    EXPECT_EQ(Bits(got.weights[j]), Bits(Mul(Sigmoid(logits[static_cast<size_t>(got.experts[j])]), 2.5f)));
}

// A NaN logit loses against every number, even a masked one; the site that made it is reported by the model.
TEST(Route, NanIsNeverPreferred) {
  std::vector<float> logits(64, -1.0f);
  for (size_t e = 0; e < 64; e += 2) logits[e] = FromBits(0x7fc00000u);
  Routed got;
  RouteArgs args = Args(logits, nullptr, 64, &got);
  args.n_group = 1, args.topk_group = 1;
  RouteRef(args);
  for (const int32_t e : got.experts) EXPECT_EQ(e % 2, 1);
}

TEST(Route, SqrtSoftplusKeepsSmallScores) {
  EXPECT_NEAR(RouteScoreOf(RouteScore::kSqrtSoftplus, -80.0f), 4.24835426e-18f, 1e-23);
  EXPECT_NEAR(RouteScoreOf(RouteScore::kSqrtSoftplus, 200.0f), 14.1421356f, 2e-5);
}

TEST(Route, BadArgumentsAreNamed) {
  const std::vector<float> logits(64, 0.0f);
  std::vector<float> bias(64, 0.0f);
  bias[3] = FromBits(0x7f800000u);
  Routed got;
  EXPECT_NE(CheckRoute(Args(logits, &bias, 64, &got)).text().find("expert 3"), std::string::npos);
  RouteArgs args = Args(logits, nullptr, 64, &got);
  args.n_group = 7;
  EXPECT_NE(CheckRoute(args).text().find("n_group 7"), std::string::npos);
  const int64_t table[] = {0, 1, 2, 3};
  const int32_t bad = 2;
  int32_t out[2];
  EXPECT_FALSE(HashRoute(&bad, 1, table, 2, 2, 4, out).ok());
}

}  // namespace
}  // namespace samebits
