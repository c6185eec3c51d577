#include "ops/sample/sample.h"

#include <cmath>

#include "ops/op_testing.h"

namespace samebits {
namespace {

const float kInf = FromBits(0x7f800000u), kNan = FromBits(0x7fc00000u);

TEST(Sample, GreedyTakesTheFirstOfEqualMaxima) {
  const float logits[] = {1, 3, -kInf, 3, 2};
  EXPECT_EQ(Sample(logits, 5, 5, {}, 0, 0).token, 1);
  const float zeros[] = {-0.0f, 0.0f};
  EXPECT_EQ(Sample(zeros, 2, 2, {}, 0, 0).token, 0);
  const float masked[] = {1, 2, 9};
  EXPECT_EQ(Sample(masked, 3, 2, {}, 0, 0).token, 1);
}

TEST(Sample, NanIsNeverChosen) {
  const float some[] = {kNan, -2, FromBits(0xffc00000u)};
  EXPECT_EQ(Sample(some, 3, 3, {}, 0, 0).token, 1);
  EXPECT_TRUE(Sample(some, 3, 3, {}, 0, 0).nan);
  const float all[] = {kNan, kNan};
  EXPECT_EQ(Sample(all, 2, 2, {.temperature = 1}, 0, 0).token, -1);
}

TEST(Sample, TinyTemperatureIsGreedyAndMaskedIsNever) {
  const float logits[] = {1, 3, 2, -kInf};
  for (const float t : {1e-6f, 1e-30f, 1e-38f})
    for (uint64_t p = 0; p < 50; ++p) EXPECT_EQ(Sample(logits, 4, 4, {.temperature = t, .seed = 1}, p, 0).token, 1);
  for (uint64_t p = 0; p < 2000; ++p) EXPECT_NE(Sample(logits, 4, 4, {.temperature = 100, .seed = 1}, p, 0).token, 3);
}

TEST(Sample, FrequenciesFollowTheSoftmax) {
  const float logits[] = {0, 1, 2, 0.5f};
  double sum = 0;
  for (const float x : logits) sum += std::exp(double{x} / 0.7);
  int counts[4] = {};
  const int draws = 40000;
  for (int p = 0; p < draws; ++p)
    ++counts[Sample(logits, 4, 4, {.temperature = 0.7f, .seed = 5}, static_cast<uint64_t>(p), 0).token];
  for (int i = 0; i < 4; ++i) {
    const double probability = std::exp(double{logits[i]} / 0.7) / sum;
    EXPECT_NEAR(counts[i] / double{draws}, probability, 5 * std::sqrt(probability / draws));
  }
}

TEST(Sample, TopPHitsSumsExactly) {
  const uint64_t w[] = {4, 2, 1, 1};  // halves, a quarter, eighths
  EXPECT_EQ(TopPKeep(w, 4, 0.75), 2u);
  EXPECT_EQ(TopPKeep(w, 4, 0.5), 1u);
  EXPECT_EQ(TopPKeep(w, 4, 0.875), 3u);
  EXPECT_EQ(TopPKeep(w, 4, 1.0), 4u);
  EXPECT_EQ(TopPKeep(w, 4, 1e-300), 1u);
  EXPECT_EQ(TopPKeep(w, 4, std::nextafter(0.75, 1.0)), 3u);
}

TEST(Sample, SeedPositionAndDrawMatterNothingElseDoes) {
  RandomInputs random(6);
  const std::vector<float> logits = random.NormalF32(500);
  const SampleParams params{.temperature = 1.0f, .seed = 9};
  int other_seed = 0, other_position = 0, other_draw = 0;
  for (uint64_t p = 0; p < 64; ++p) {
    const int32_t token = Sample(logits.data(), 500, 500, params, p, 0).token;
    EXPECT_EQ(token, Sample(logits.data(), 500, 500, params, p, 0).token);
    SampleParams other = params;
    other.seed = 10;
    other_seed += token != Sample(logits.data(), 500, 500, other, p, 0).token;
    other_position += token != Sample(logits.data(), 500, 500, params, p + 1000, 0).token;
    other_draw += token != Sample(logits.data(), 500, 500, params, p, 1).token;
  }
  EXPECT_GT(other_seed, 40);
  EXPECT_GT(other_position, 40);
  EXPECT_GT(other_draw, 40);
}

TEST(Sample, LogprobsAreOfTheRawLogits) {
  const float logits[] = {2, 1, 0, -1};
  const auto best = TopLogprobs(logits, 4, 3, 9);
  ASSERT_EQ(best.size(), 3u);
  EXPECT_EQ(best[0].id, 0);
  EXPECT_NEAR(best[0].logprob, -0.4401897f, 1e-6);
  EXPECT_NEAR(best[2].logprob, -2.4401897f, 1e-6);
}

// The same token as sorting the whole row: ties, masked and NaN logits, every filter, both ends of the random bits.
TEST(Sample, TheFastPathDrawsWhatTheReferenceDraws) {
  RandomInputs random(11);
  for (const int64_t n : {1, 2, 255, 256, 257, 2304, 2305, 20000}) {
    std::vector<float> logits = random.NormalF32(n, 2.0f);
    for (float& x : logits) {
      const uint64_t kind = random.Below(8);
      x = kind == 0 ? -kInf : kind == 1 && n > 2 ? kNan : kind < 5 ? static_cast<float>(static_cast<int>(x)) : x;
    }
    for (const float temperature : {0.0f, 1e-9f, 0.3f, 1.0f, 50.0f})
      for (const double top_p : {1.0, 0.999, 0.5, 1e-9})
        for (const int32_t top_k : {0, 1, 40, 300}) {
          const SampleParams params{.temperature = temperature, .top_p = top_p, .top_k = top_k};
          for (int i = 0; i < 6; ++i) {
            const uint64_t bits = i == 0 ? 0 : i == 1 ? ~0ull : uint64_t{random.Bits32()} << 32 | random.Bits32();
            const SampleResult fast = SampleWith(logits.data(), n, n, params, bits);
            const SampleResult slow = SampleRef(logits.data(), n, n, params, bits);
            ASSERT_EQ(fast.token, slow.token) << n << " " << temperature << " " << top_p << " " << top_k;
            ASSERT_EQ(fast.nan, slow.nan);
          }
        }
  }
}

TEST(Sample, RowsOfOneInfinity) {
  const float lowest[] = {-kInf, -kInf, -kInf};
  for (const float t : {0.0f, 1.0f}) EXPECT_EQ(Sample(lowest, 3, 3, {.temperature = t}, 0, 0).token, 0);
  EXPECT_EQ(Bits(LogSumExp(lowest, 3)), Bits(-kInf));
  const float highest[] = {1, kInf, kInf};
  for (uint64_t p = 0; p < 50; ++p) EXPECT_EQ(Sample(highest, 3, 3, {.temperature = 1}, p, 0).token, 1);
  EXPECT_EQ(Sample(lowest, 3, 0, {}, 0, 0).token, -1);  // every id masked
}

// Negative control: comparing in doubles keeps another set.
TEST(Sample, ARoundedThresholdIsCaught) {
  const uint64_t half = uint64_t{1} << 53, w[] = {half, half, 2};  // the first is one short of half the sum
  EXPECT_EQ(TopPKeep(w, 3, 0.5), 2u);
  const double total = static_cast<double>(w[0] + w[1] + w[2]);
  EXPECT_GE(static_cast<double>(w[0]), 0.5 * total);  // doubles would stop at one
}

TEST(Sample, ParametersOutOfRangeAreNamed) {
  EXPECT_NE(CheckSample({.temperature = -1}).text().find("temperature"), std::string::npos);
  EXPECT_NE(CheckSample({.temperature = kNan}).text().find("temperature"), std::string::npos);
  EXPECT_NE(CheckSample({.top_p = 0}).text().find("top_p"), std::string::npos);
  EXPECT_NE(CheckSample({.top_k = -1}).text().find("top_k"), std::string::npos);
}

}  // namespace
}  // namespace samebits
