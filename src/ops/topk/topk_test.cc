// Top-k: random, tied, ragged and hostile rows on every backend; the tie rule's negative controls.

#include "ops/topk/topk.h"

#include <algorithm>

#include "ops/op_testing.h"

namespace samebits {
namespace {

enum Kind { kRandom, kTied, kAllEqual, kZerosOfBothSigns, kWithNan, kInfinities, kSubnormal, kKinds };

float Score(RandomInputs* random, int kind) {
  switch (kind) {
    case kRandom:
      return random->Normal();
    case kTied:
      return static_cast<float>(static_cast<int>(random->Normal() * 4)) * 0.25f;
    case kAllEqual:
      return -1.5f;
    case kZerosOfBothSigns:
      return random->Below(2) ? 0.0f : -0.0f;
    case kWithNan:
      return random->Below(3) ? random->Normal() : FromBits(random->Below(2) ? 0x7fc00001u : 0xffffffffu);
    case kInfinities:
      return random->Below(3) ? FromBits(0xff800000u) : random->Below(2) ? FromBits(0x7f800000u) : random->Normal();
    default:
      return FromBits(random->Bits32() & 0x800000ffu);
  }
}

struct Output {
  std::vector<int32_t> indices, nans;
};

template <class Call>
Output Select(const std::vector<float>& scores, int64_t rows, int64_t n, int64_t k, const std::vector<int32_t>& starts,
              const std::vector<int32_t>& lens, TopkOutput order, const Call& call) {
  Output out{Poisoned<int32_t>(rows * k), Poisoned<int32_t>(rows)};
  TopkArgs args;
  args.scores = View<const float>(scores.data(), rows, n), args.row_starts = starts.data(), args.row_lens = lens.data();
  args.output = order, args.indices = View<int32_t>(out.indices.data(), rows, k), args.nan_counts = out.nans.data();
  call(args);
  return out;
}

TEST(Topk, EveryBackendEqualsTheReference) {
  RandomInputs random(91);
  const int64_t sizes[] = {1, 2, 15, 16, 17, 63, 64, 65, 129, 1000, 2590};
  for (int kind = 0; kind < kKinds; ++kind)
    for (const int64_t n : sizes)
      for (const int64_t k : {int64_t{1}, int64_t{2}, int64_t{8}, int64_t{64}, int64_t{2048}}) {
        if (k > 8 * n) continue;
        const int64_t rows = 7;
        std::vector<float> scores(static_cast<size_t>(rows * n));
        for (float& s : scores) s = Score(&random, kind);
        std::vector<int32_t> starts, lens;
        for (int64_t r = 0; r < rows; ++r) {
          starts.push_back(static_cast<int32_t>(random.Below(static_cast<uint64_t>(n))));
          lens.push_back(static_cast<int32_t>(random.Below(static_cast<uint64_t>(n - starts.back() + 1))));
        }
        starts[0] = 0, lens[0] = static_cast<int32_t>(n), lens[1] = 0, lens[2] = -5;
        for (const TopkOutput order : {TopkOutput::kAscending, TopkOutput::kByRank}) {
          const Output expected =
              Select(scores, rows, n, k, starts, lens, order, [](const TopkArgs& a) { TopkRef(a); });
          ForEachCpu([&](const CpuContext& context) {
            const Output got = Select(scores, rows, n, k, starts, lens, order,
                                      [&](const TopkArgs& a) { ASSERT_TRUE(Topk(context, a).ok()); });
            EXPECT_TRUE(SameBytes(got.indices, expected.indices)) << "kind " << kind << " n " << n << " k " << k;
            EXPECT_TRUE(SameBytes(got.nans, expected.nans)) << "kind " << kind << " n " << n << " k " << k;
          });
        }
      }
}

TEST(Topk, LongRow) {
  RandomInputs random(92);
  const int64_t n = 1 << 20;
  for (const int kind : {kRandom, kTied}) {
    std::vector<float> scores(static_cast<size_t>(n));
    for (float& s : scores) s = Score(&random, kind);
    const std::vector<int32_t> starts = {0}, lens = {static_cast<int32_t>(n)};
    const Output expected =
        Select(scores, 1, n, 4096, starts, lens, TopkOutput::kAscending, [](const TopkArgs& a) { TopkRef(a); });
    ForEachCpu([&](const CpuContext& context) {
      EXPECT_TRUE(SameBytes(Select(scores, 1, n, 4096, starts, lens, TopkOutput::kAscending,
                                   [&](const TopkArgs& a) { ASSERT_TRUE(Topk(context, a).ok()); })
                                .indices,
                            expected.indices));
    });
  }
}

TEST(Topk, NothingOutsideTheExtentIsRead) {
  // The best scores stand outside; a row that reads them would choose them.
  std::vector<float> scores = {9, 9, 1, 2, 3, 9, 9};
  const Output got = Select(scores, 1, 7, 2, {2}, {3}, TopkOutput::kAscending, [](const TopkArgs& a) {
    ThreadPool pool(1);
    ASSERT_TRUE(Topk(CpuContext{&pool, BestIsa()}, a).ok());
  });
  EXPECT_EQ(got.indices, (std::vector<int32_t>{1, 2}));
}

TEST(Topk, BrokenTieRulesAreCaught) {
  RandomInputs random(93);
  std::vector<float> scores(323 * 2590);
  for (float& s : scores) s = Score(&random, kTied);
  std::vector<int32_t> starts(323, 0), lens(323, 2590);
  const auto run = [&](const TopkRule& rule) {
    return Select(scores, 323, 2590, 2048, starts, lens, TopkOutput::kAscending,
                  [&](const TopkArgs& a) { TopkRef(a, rule); })
        .indices;
  };
  const std::vector<int32_t> contract = run({});
  EXPECT_FALSE(SameBytes(contract, run({.high_index_wins_ties = true})));
  EXPECT_FALSE(SameBytes(contract, run({.shuffle_ties_seed = 1})));
  EXPECT_FALSE(SameBytes(run({.shuffle_ties_seed = 1}), run({.shuffle_ties_seed = 2})));
}

TEST(Topk, BadExtentsAreNamed) {
  std::vector<float> scores(10);
  std::vector<int32_t> out(4);
  const int32_t start = 5, len = 6;
  TopkArgs args;
  args.scores = View<const float>(scores.data(), 1, 10), args.row_starts = &start, args.row_lens = &len;
  args.indices = View<int32_t>(out.data(), 1, 4);
  EXPECT_NE(CheckTopk(args).text().find("row 0 covers columns [5, 11) of 10"), std::string::npos);
  args.indices = View<int32_t>(out.data(), 1, 5000);
  EXPECT_NE(CheckTopk(args).text().find("k = 5000"), std::string::npos);
}

TEST(Topk, PagesAreFollowedAndPaddingKept) {
  const int32_t indices[] = {0, 5, -1}, table[] = {7, 2};
  int32_t slots[3];
  PageTransformArgs args{View<const int32_t>(indices, 1, 3), View<const int32_t>(table, 1, 2), nullptr, 4,
                         View<int32_t>(slots, 1, 3)};
  ThreadPool pool(1);
  ASSERT_TRUE(PageTransform(CpuContext{&pool, BestIsa()}, args).ok());
  EXPECT_EQ(slots[0], 28);
  EXPECT_EQ(slots[1], 9);
  EXPECT_EQ(slots[2], -1);
  const int32_t far[] = {8, 0, 0};
  args.indices = View<const int32_t>(far, 1, 3);
  EXPECT_FALSE(CheckPageTransform(args).ok());
}

}  // namespace
}  // namespace samebits
