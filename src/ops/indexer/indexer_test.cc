#include "ops/indexer/indexer.h"

#include <numeric>

#include "ops/op_testing.h"

namespace samebits {
namespace {

struct Problem {
  int64_t tokens, heads, dim, keys;
  std::vector<E4M3> q8, k8;
  std::vector<BF16> q16, k16;
  std::vector<float> q32, k32, weights, scales;
  std::vector<int32_t> table, lens;

  Problem(int64_t t, int64_t h, int64_t d, int64_t n, uint64_t seed) : tokens(t), heads(h), dim(d), keys(n) {
    RandomInputs random(seed);
    q32 = random.NormalF32(t * h * d), weights = random.NormalF32(t * h);
    const int64_t pages = (n + 3) / 4;
    table.resize(static_cast<size_t>(pages));
    std::iota(table.begin(), table.end(), 0);
    random.Shuffle(&table);
    k32 = random.NormalF32(pages * 4 * d), scales = random.NormalF32(pages * 4);
    for (float& s : scales) s = s < 0 ? -s : s;
    for (const float x : q32) q8.push_back(RoundToE4M3(x * 100)), q16.push_back(RoundToBF16(x));
    for (const float x : k32) k8.push_back(RoundToE4M3(x * 100)), k16.push_back(RoundToBF16(x));
    for (int64_t i = 0; i < t; ++i) lens.push_back(static_cast<int32_t>(n - t + 1 + i));
    if (t > 2) lens[1] = 0;
  }
  std::vector<float> Run(int kind, const std::function<void(const IndexerArgs&)>& call) const {
    std::vector<float> out = Poisoned<float>(tokens * (keys + 2));
    IndexerArgs a;
    a.heads = heads, a.dim = dim;
    a.weights = View<const float>(weights.data(), tokens, heads);
    a.row_lens = lens.data();
    a.scores = View<float>(out.data(), tokens, keys, keys + 2);
    const auto rows = [&](const void* p, DType d, int64_t stride) { return PagedRows{p, d, stride, table.data(), 4}; };
    if (kind == 0)
      a.q = View<const E4M3>(q8.data(), tokens, heads * dim), a.keys = rows(k8.data(), DType::kF8E4M3, dim);
    if (kind == 1)
      a.q = View<const BF16>(q16.data(), tokens, heads * dim), a.keys = rows(k16.data(), DType::kBF16, dim);
    if (kind == 2)
      a.q = View<const float>(q32.data(), tokens, heads * dim), a.keys = rows(k32.data(), DType::kF32, dim);
    if (kind == 0) a.key_scales = rows(scales.data(), DType::kF32, 1);
    call(a);
    return out;
  }
};

TEST(Indexer, EveryBackendEqualsTheReference) {
  uint64_t seed = 100;
  for (int kind = 0; kind < 3; ++kind)
    for (const auto& [t, h, d, n] :
         {std::tuple{1, 4, 32, 1}, {3, 1, 128, 17}, {5, 5, 100, 64}, {2, 64, 128, 130}, {9, 130, 16, 33}}) {
      const Problem p(t, h, d, n, ++seed);
      const std::vector<float> expected = p.Run(kind, [](const IndexerArgs& a) { IndexerRef(a); });
      ForEachCpu([&](const CpuContext& context) {
        EXPECT_TRUE(
            SameBytes(p.Run(kind, [&](const IndexerArgs& a) { ASSERT_TRUE(Indexer(context, a).ok()); }), expected))
            << "kind " << kind << " heads " << h << " dim " << d;
      });
    }
}

TEST(Indexer, ReluAndZeroSign) {
  const float q[] = {1, -1}, k[] = {1}, weights[] = {-2, 5};
  const int32_t one = 1;
  float score = -9;
  IndexerArgs a;
  a.q = View<const float>(q, 1, 2), a.heads = 2, a.dim = 1, a.weights = View<const float>(weights, 1, 2);
  a.keys = PagedRows{k, DType::kF32, 1, nullptr, 1}, a.row_lens = &one, a.scores = View<float>(&score, 1, 1);
  IndexerRef(a);
  EXPECT_EQ(score, -2.0f);
  const float cold[] = {-1, -1};
  a.q = View<const float>(cold, 1, 2);
  IndexerRef(a);
  EXPECT_EQ(Bits(score), 0u);  // 0 * -2 is -0: stored as +0
}

// Negative control: without the ReLU, or summing heads the other way, the scores are others.
TEST(Indexer, BrokenRulesAreCaught) {
  const Problem p(4, 8, 32, 50, 7);
  const std::vector<float> contract = p.Run(2, [](const IndexerArgs& a) { IndexerRef(a); });
  Problem reversed = p;
  for (int64_t t = 0; t < 4; ++t)
    for (int64_t h = 0; h < 8; ++h) {
      reversed.weights[static_cast<size_t>(t * 8 + h)] = p.weights[static_cast<size_t>(t * 8 + 7 - h)];
      for (int64_t d = 0; d < 32; ++d)
        reversed.q32[static_cast<size_t>((t * 8 + h) * 32 + d)] = p.q32[static_cast<size_t>((t * 8 + 7 - h) * 32 + d)];
    }
  EXPECT_FALSE(SameBytes(contract, reversed.Run(2, [](const IndexerArgs& a) { IndexerRef(a); })));
}

TEST(Indexer, ShortScoreRowsAreRefused) {
  const Problem p(1, 2, 8, 9, 8);
  p.Run(2, [](IndexerArgs a) {
    a.scores.cols = 3;
    EXPECT_NE(CheckIndexer(a).text().find("sees 9 keys"), std::string::npos);
  });
}

}  // namespace
}  // namespace samebits
