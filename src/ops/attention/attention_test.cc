// Attention: every backend against the reference in bytes at lengths that straddle every block and segment; list order,
// batch, pages and poison cannot show; each broken rule is caught.

#include "ops/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "ops/op_testing.h"

namespace samebits {
namespace {

template <class T>
struct Problem {
  int64_t heads, dim, value_dim, keys;
  std::vector<T> q, kv;
  std::vector<int32_t> table;  // pages of 16

  Problem(int64_t tokens, int64_t h, int64_t d, int64_t v, int64_t n, uint64_t seed)
      : heads(h), dim(d), value_dim(v), keys(n) {
    RandomInputs random(seed);
    const auto fill = [&](std::vector<T>* to, int64_t count, float scale) {
      for (int64_t i = 0; i < count; ++i) to->push_back(RoundTo<T>(random.Normal() * scale));
    };
    fill(&q, tokens * h * d, 0.7f);
    const int64_t pages = (n + 15) / 16;
    table.resize(static_cast<size_t>(pages));
    std::iota(table.begin(), table.end(), 0);
    random.Shuffle(&table);
    fill(&kv, pages * 16 * d, 1.0f);
    // What stands past the end must not be read.
    for (int64_t p = n; p < pages * 16; ++p)
      for (int64_t i = 0; i < d; ++i)
        kv[static_cast<size_t>((int64_t{table[static_cast<size_t>(p / 16)]} * 16 + p % 16) * d + i)] =
            RoundTo<T>(FromBits(0x7fc00000u));
  }
  PagedRows Rows() const { return PagedRows{kv.data(), DTypeOf<T>::value, dim, table.data(), 16}; }

  struct Output {
    std::vector<T> out;
    std::vector<float> lse;
  };
  Output Run(int64_t first, int64_t tokens, const std::vector<int32_t>& lens, const std::vector<int32_t>& indices,
             const std::function<void(const AttentionArgs&)>& call) const {
    Output o{Poisoned<T>(tokens * heads * value_dim), Poisoned<float>(tokens * heads)};
    AttentionArgs a;
    a.q = View<const T>(q.data() + first * heads * dim, tokens, heads * dim);
    a.heads = heads, a.dim = dim, a.value_dim = value_dim;
    a.keys = a.values = Rows();
    a.kv_lens = lens.data();
    if (!indices.empty())
      a.indices = View<const int32_t>(indices.data(), tokens, static_cast<int64_t>(indices.size()) / tokens);
    a.scale = 1.0f / 8;
    a.out = View<T>(o.out.data(), tokens, heads * value_dim);
    a.lse = o.lse.data();
    call(a);
    return o;
  }
};

const auto kRef = [](const AttentionArgs& a) { AttentionRef(a); };

template <class T>
void EveryBackend(int64_t heads, int64_t dim, int64_t value_dim, uint64_t seed) {
  for (const int64_t n : {0, 1, 63, 64, 65, 127, 128, 129, 511, 512, 513, 1023, 1024, 1025, 2047, 2048, 2049}) {
    const Problem<T> p(1, heads, dim, value_dim, n, seed + static_cast<uint64_t>(n));
    const std::vector<int32_t> lens = {static_cast<int32_t>(n)};
    const auto expected = p.Run(0, 1, lens, {}, kRef);
    ForEachCpu([&](const CpuContext& context) {
      const auto got = p.Run(0, 1, lens, {}, [&](const AttentionArgs& a) { ASSERT_TRUE(Attention(context, a).ok()); });
      EXPECT_TRUE(SameBytes(got.out, expected.out)) << n;
      EXPECT_TRUE(SameBytes(got.lse, expected.lse)) << n;
    });
  }
}

TEST(Attention, EveryBackendEqualsTheReference) {
  EveryBackend<BF16>(8, 80, 64, 200);
  EveryBackend<float>(3, 33, 17, 300);
  EveryBackend<BF16>(5, 160, 128, 400);
}

TEST(Attention, ListOrderDuplicatesAndPaddingDoNotShow) {
  const int64_t n = 1500;
  const Problem<BF16> p(1, 8, 80, 64, n, 17);
  RandomInputs random(18);
  std::vector<int32_t> all(static_cast<size_t>(n)), list;
  std::iota(all.begin(), all.end(), 0);
  random.Shuffle(&all);
  list.assign(all.begin(), all.begin() + 700);
  std::sort(list.begin(), list.end());
  const std::vector<int32_t> lens = {static_cast<int32_t>(n)};
  const auto expected = p.Run(0, 1, lens, list, kRef);
  std::vector<int32_t> messy = list;
  messy.insert(messy.begin(), {-1, -1, list[5], static_cast<int32_t>(n)});
  random.Shuffle(&messy);
  ASSERT_FALSE(std::is_sorted(messy.begin(), messy.end()));
  ForEachCpu([&](const CpuContext& context) {
    const auto got = p.Run(0, 1, lens, messy, [&](const AttentionArgs& a) { ASSERT_TRUE(Attention(context, a).ok()); });
    EXPECT_TRUE(SameBytes(got.out, expected.out));
    EXPECT_TRUE(SameBytes(got.lse, expected.lse));
  });
  // A flash kernel in list order moves bf16 outputs.
  const auto online = p.Run(0, 1, lens, messy,
                            [](const AttentionArgs& a) { AttentionRef(a, {.canonical_list = false, .online = true}); });
  const auto sorted = p.Run(0, 1, lens, list,
                            [](const AttentionArgs& a) { AttentionRef(a, {.canonical_list = false, .online = true}); });
  EXPECT_FALSE(SameBytes(online.out, sorted.out));
}

// In fp32, where no rounding to bf16 hides them: list order, moved blocks, splits, smaller blocks and segments.
TEST(Attention, BrokenRulesAreCaught) {
  const int64_t n = 1500;
  const Problem<float> p(1, 4, 80, 64, n, 21);
  RandomInputs random(22);
  std::vector<int32_t> list(static_cast<size_t>(n));
  std::iota(list.begin(), list.end(), 0);
  random.Shuffle(&list);
  list.resize(1100);
  const std::vector<int32_t> lens = {static_cast<int32_t>(n)};
  const auto contract = p.Run(0, 1, lens, list, kRef);
  for (const AttentionRule& rule :
       {AttentionRule{.canonical_list = false}, AttentionRule{.online = true}, AttentionRule{.block = 32},
        AttentionRule{.segment_blocks = 4}, AttentionRule{.block_offset = 13}, AttentionRule{.splits = 4}}) {
    const auto broken = p.Run(0, 1, lens, list, [&](const AttentionArgs& a) { AttentionRef(a, rule); });
    EXPECT_FALSE(SameBytes(broken.out, contract.out));
  }
}

TEST(Attention, ARowDoesNotDependOnItsMates) {
  const int64_t n = 600, tokens = 40;
  const Problem<BF16> p(tokens, 4, 48, 32, n, 19);
  std::vector<int32_t> lens;
  for (int64_t t = 0; t < tokens; ++t) lens.push_back(static_cast<int32_t>(n - tokens + 1 + t));
  ForEachCpu([&](const CpuContext& context) {
    const auto run = [&](const AttentionArgs& a) { ASSERT_TRUE(Attention(context, a).ok()); };
    const auto all = p.Run(0, tokens, lens, {}, run);
    for (const int64_t t : {int64_t{0}, int64_t{17}, tokens - 1}) {
      const auto one = p.Run(t, 1, {lens[static_cast<size_t>(t)]}, {}, run);
      EXPECT_EQ(std::memcmp(one.out.data(), all.out.data() + t * 4 * 32, 4 * 32 * sizeof(BF16)), 0) << t;
    }
  });
}

// fp32 values: weights carry 2 ulp, chains of 64 and merges a few more; bound against the fp64 softmax.
TEST(Attention, ErrorAgainstFp64IsWithinTheBound) {
  const int64_t n = 777;
  const Problem<float> p(1, 2, 64, 64, n, 20);
  const std::vector<int32_t> lens = {static_cast<int32_t>(n)};
  const auto got = p.Run(0, 1, lens, {}, kRef);
  for (int64_t h = 0; h < 2; ++h) {
    std::vector<double> s(static_cast<size_t>(n));
    double most = -1e300, sum = 0, peak = 0;
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = 0; i < 64; ++i)
        s[static_cast<size_t>(j)] +=
            double{p.q[static_cast<size_t>(h * 64 + i)]} * double{p.Rows().Row<float>(j)[i]} / 8;
      most = std::max(most, s[static_cast<size_t>(j)]);
    }
    std::vector<double> o(64);
    for (int64_t j = 0; j < n; ++j) {
      const double w = std::exp(s[static_cast<size_t>(j)] - most);
      sum += w;
      for (int64_t i = 0; i < 64; ++i)
        o[static_cast<size_t>(i)] += w * double{p.Rows().Row<float>(j)[i]},
            peak = std::max(peak, std::fabs(double{p.Rows().Row<float>(j)[i]}));
    }
    for (int64_t i = 0; i < 64; ++i)
      EXPECT_NEAR(got.out[static_cast<size_t>(h * 64 + i)], o[static_cast<size_t>(i)] / sum, 200 * 0x1p-24 * peak);
    EXPECT_NEAR(got.lse[static_cast<size_t>(h)], most + std::log(sum), 2e-5);
  }
}

TEST(Attention, MergeTreatsEmptyAsNeutral) {
  const float inf = FromBits(0xff800000u);
  const float out[] = {0, 0, 0.3125f, -7.0f}, lse[] = {inf, -3.25f};
  float merged[2], merged_lse;
  MergeStates({2, 2, out, lse, merged, &merged_lse});
  EXPECT_EQ(Bits(merged[0]), Bits(0.3125f));
  EXPECT_EQ(Bits(merged[1]), Bits(-7.0f));
  EXPECT_EQ(Bits(merged_lse), Bits(-3.25f));
  const float none[] = {inf, inf};
  MergeStates({2, 2, out, none, merged, &merged_lse});
  EXPECT_EQ(merged_lse, inf);
  EXPECT_EQ(merged[1], 0.0f);
}

TEST(Attention, ScoresOfAnySizeStayDefined) {
  std::vector<float> q = {1e30f, 1e30f}, kv = {1e30f, 1, -1e30f, 2};
  float out[1], lse[1];
  const int32_t len = 2;
  AttentionArgs a;
  a.q = View<const float>(q.data(), 1, 2), a.heads = 1, a.dim = 2, a.value_dim = 1;
  a.keys = a.values = PagedRows{kv.data(), DType::kF32, 2, nullptr, 1};
  a.kv_lens = &len, a.out = View<float>(out, 1, 1), a.lse = lse;
  AttentionRef(a);
  EXPECT_EQ(out[0], 1e30f);
}

// NaN and infinite scores: defined, the same everywhere, inside every array.
TEST(Attention, NanScoresAreTheSameEverywhere) {
  Problem<float> p(1, 5, 20, 16, 130, 23);
  p.q[3] = FromBits(0x7fc00000u), p.q[27] = FromBits(0x7f800000u), p.q[47] = FromBits(0xff800000u);
  const auto expected = p.Run(0, 1, {130}, {}, kRef);
  ForEachCpu([&](const CpuContext& context) {
    const auto got = p.Run(0, 1, {130}, {}, [&](const AttentionArgs& a) { ASSERT_TRUE(Attention(context, a).ok()); });
    EXPECT_TRUE(SameBytes(got.out, expected.out));
    EXPECT_TRUE(SameBytes(got.lse, expected.lse));
  });
}

TEST(Attention, MixedTypesAreRefused) {
  const Problem<BF16> p(1, 2, 16, 16, 5, 24);
  p.Run(0, 1, {5}, {}, [](AttentionArgs a) {
    a.values.dtype = DType::kF32;
    EXPECT_NE(CheckAttention(a).text().find("one type is needed"), std::string::npos);
  });
}

}  // namespace
}  // namespace samebits
