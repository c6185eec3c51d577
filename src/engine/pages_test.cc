#include "engine/pages.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>

#include "engine/prefix_cache.h"

namespace samebits {
namespace {

constexpr int32_t kPoison = -77;

// Rows are token numbers.
struct TokenMemory : PageMemory {
  TokenMemory(int64_t pages, int32_t size) : page_size(size), rows(pages * size) {}
  void CopyPage(int32_t from, int32_t to) override {
    std::copy_n(rows.begin() + from * page_size, page_size, rows.begin() + to * page_size);
  }
  void PoisonPage(int32_t page) override { std::fill_n(rows.begin() + page * page_size, page_size, kPoison); }
  int32_t page_size;
  std::vector<int32_t> rows;
};

struct Sequence {
  Sequence(PagePool* pool, TokenMemory* m) : pages(pool, m->page_size), memory(m) {}
  bool Append(const std::vector<int32_t>& tokens) {
    const int64_t to = length + static_cast<int64_t>(tokens.size());
    if (!pages.MakeWritable(length, to)) return false;
    for (size_t i = 0; i < tokens.size(); ++i) memory->rows[pages.Slot(length + i)] = tokens[i];
    length = to;
    return true;
  }
  std::vector<int32_t> Read() const {
    std::vector<int32_t> out;
    for (int64_t p = 0; p < length; ++p) out.push_back(memory->rows[pages.Slot(p)]);
    return out;
  }
  SequencePages pages;
  TokenMemory* memory;
  int64_t length = 0;
};

using Tokens = std::vector<int32_t>;

TEST(Pages, ForkCopiesOnWrite) {
  TokenMemory memory(8, 4);
  PagePool pool(8, &memory, 0, true);
  auto a = std::make_unique<Sequence>(&pool, &memory), b = std::make_unique<Sequence>(&pool, &memory);
  ASSERT_TRUE(a->Append({1, 2, 3, 4, 5, 6}));
  b->pages.Fork(a->pages);
  b->length = a->length;
  EXPECT_EQ(pool.free_pages(), 6);
  ASSERT_TRUE(a->Append({7}));
  ASSERT_TRUE(b->Append({8}));
  EXPECT_EQ(a->pages.copies() + b->pages.copies(), 1);  // the second writer is alone by then
  EXPECT_EQ(a->Read(), (Tokens{1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(b->Read(), (Tokens{1, 2, 3, 4, 5, 6, 8}));
  a.reset();
  EXPECT_EQ(b->Read(), (Tokens{1, 2, 3, 4, 5, 6, 8}));
  b.reset();
  EXPECT_EQ(pool.free_pages(), 8);
  for (const int32_t row : memory.rows) EXPECT_EQ(row, kPoison);
}

// Random new, fork, append, free against plain copies; the pool shuffled, small, and poisoned.
TEST(Pages, RandomOperationsAgainstPlainVectors) {
  const uint32_t seed = 11;
  std::mt19937 rng(seed);
  for (const int32_t size : {1, 3, 4}) {
    TokenMemory memory(40, size);
    PagePool pool(40, &memory, 99, true);
    std::vector<std::pair<std::unique_ptr<Sequence>, Tokens>> live;
    for (int step = 0; step < 4000; ++step) {
      const int what = rng() % 8;
      if (what == 0 && live.size() < 6) {
        live.emplace_back(std::make_unique<Sequence>(&pool, &memory), Tokens{});
      } else if (what == 1 && !live.empty() && live.size() < 6) {
        const size_t from = rng() % live.size();
        auto s = std::make_unique<Sequence>(&pool, &memory);
        s->pages.Fork(live[from].first->pages);
        s->length = live[from].first->length;
        Tokens copy = live[from].second;
        live.emplace_back(std::move(s), std::move(copy));
      } else if (what == 2 && !live.empty()) {
        live.erase(live.begin() + rng() % live.size());
      } else if (what == 3 && !live.empty()) {
        auto& [s, tokens] = live[rng() % live.size()];
        s->length = tokens.empty() ? 0 : rng() % tokens.size();
        tokens.resize(s->length);
        s->pages.Truncate(s->length);
      } else if (!live.empty()) {
        auto& [s, tokens] = live[rng() % live.size()];
        Tokens more;
        for (int n = rng() % 5; n >= 0; --n) more.push_back(rng() % 1000);
        if (s->Append(more)) tokens.insert(tokens.end(), more.begin(), more.end());
      }
      for (const auto& [s, tokens] : live) ASSERT_EQ(s->Read(), tokens) << "seed " << seed << " step " << step;
    }
    live.clear();
    EXPECT_EQ(pool.free_pages(), 40);
  }
}

TEST(Pages, TableRowFits) {
  EXPECT_TRUE(TableRowFits(Tokens{0, 1, 2, 3}, 16, 64, 0));
  EXPECT_FALSE(TableRowFits(Tokens{4, 5, 6, 7}, 16, 64, 1));
  EXPECT_TRUE(TableRowFits(Tokens{3, 9}, 16, 17, 1));
  EXPECT_TRUE(TableRowFits(Tokens{-1, -1}, 16, 0, 0));
  EXPECT_FALSE(TableRowFits(Tokens{-1, -1}, 16, 0, 1));
  EXPECT_FALSE(TableRowFits(Tokens{3, -1}, 16, 16, 1));
  EXPECT_TRUE(TableRowFits(Tokens{3, -1}, 16, 15, 1));
  EXPECT_FALSE(TableRowFits(Tokens{3}, 16, -1, 1));
  EXPECT_FALSE(TableRowFits(Tokens{3}, 16, 1, INT64_MAX));
  EXPECT_FALSE(TableRowFits(Tokens{3}, 0, 0, 0));
}

TEST(Pages, WriteSlotsGuards) {
  std::vector<uint8_t> pool(8, 0xA0), rows = {9, 8, 7, 0xEE};
  EXPECT_TRUE(WriteSlots(pool, 1, std::vector<int64_t>{0, -1, 2, 7}, 3, rows).ok());
  EXPECT_EQ(pool, (std::vector<uint8_t>{9, 0xA0, 7, 0xA0, 0xA0, 0xA0, 0xA0, 0xA0}));
  const auto before = pool;
  EXPECT_FALSE(WriteSlots(pool, 1, std::vector<int64_t>{1, 8}, 2, rows).ok());
  EXPECT_FALSE(WriteSlots(pool, 1, std::vector<int64_t>{1}, 2, rows).ok());
  EXPECT_EQ(pool, before);
}

struct CacheTest : testing::Test {
  Tokens Pages(int n) {
    Tokens pages;
    for (int i = 0; i < n; ++i) pages.push_back(pool.Allocate());
    return pages;
  }
  void Drop(const Tokens& pages) {
    for (const int32_t p : pages) pool.Release(p);
  }
  TokenMemory memory{16, 2};
  PagePool pool{16, &memory};
};

TEST_F(CacheTest, IdentityIncludesEverythingBeforeAndTheSalt) {
  PrefixCache cache(&pool, 2, "portable-1"), other(&pool, 2, "portable-1/float32");
  const Tokens pages = Pages(2);
  EXPECT_EQ(cache.Insert(Tokens{1, 2, 8, 8, 0}, "", pages), 2);
  EXPECT_EQ(cache.Insert(Tokens{1, 2, 8, 8, 0}, "", pages), 0);
  EXPECT_EQ(cache.Lookup(Tokens{3, 4, 8, 8, 0}, "", 99).size(), 0u);
  EXPECT_EQ(cache.Lookup(Tokens{1, 2, 8, 8, 1}, "", 99), pages);
  EXPECT_EQ(cache.Lookup(Tokens{1, 2, 8, 8, 1}, "", 3).size(), 1u);
  EXPECT_EQ(cache.Lookup(Tokens{1, 2, 8, 8, 1}, "tenant", 99).size(), 0u);
  EXPECT_EQ(other.Lookup(Tokens{1, 2, 8, 8, 1}, "", 99).size(), 0u);
  Drop(pages);
  EXPECT_EQ(pool.free_pages(), 14);  // the cache still holds them
  cache.Clear();
  EXPECT_EQ(pool.free_pages(), 16);
}

TEST_F(CacheTest, EvictingAPageEvictsWhatFollows) {
  PrefixCache cache(&pool, 2, "c");
  const Tokens pages = Pages(5);
  cache.Insert(Tokens{1, 2, 3, 4, 5, 6, 7}, "", std::span(pages).first(3));
  cache.Insert(Tokens{1, 2, 3, 4, 9, 9}, "", Tokens{pages[0], pages[1], pages[3]});
  cache.Insert(Tokens{5, 5}, "", std::span(pages).last(1));
  Drop(pages);
  EXPECT_FALSE(cache.Evict(Tokens{1}, ""));
  EXPECT_FALSE(cache.Evict(Tokens{3, 4}, ""));
  EXPECT_TRUE(cache.Evict(Tokens{1, 2}, ""));
  EXPECT_EQ(cache.Lookup(Tokens{1, 2, 3, 4, 5, 6, 9}, "", 99).size(), 0u);
  EXPECT_EQ(cache.size(), 1);
  EXPECT_EQ(pool.free_pages(), 15);
}

TEST_F(CacheTest, LeastRecentlyUsedLeafGoesFirstAndHeldPagesStay) {
  PrefixCache cache(&pool, 2, "c");
  const Tokens pages = Pages(3);
  cache.Insert(Tokens{1, 2, 3, 4}, "", std::span(pages).first(2));
  cache.Insert(Tokens{7, 7}, "", std::span(pages).last(1));
  pool.Release(pages[2]);
  EXPECT_TRUE(cache.EvictOne());  // 7 7 is younger, but the others are held
  EXPECT_FALSE(cache.EvictOne());
  pool.Release(pages[0]), pool.Release(pages[1]);
  EXPECT_TRUE(cache.EvictOne());
  EXPECT_EQ(cache.Lookup(Tokens{1, 2, 3, 4}, "", 99), Tokens{pages[0]});
  EXPECT_TRUE(cache.EvictOne());
  EXPECT_EQ(pool.free_pages(), 16);
}

// Every page hashes alike: hits must still be the right ones.
TEST_F(CacheTest, ForcedCollisionsAreMissesNotWrongAnswers) {
  const uint32_t seed = 3;
  std::mt19937 rng(seed);
  for (const int hashes : {1, 2, 3}) {
    PrefixCache cache(&pool, 2, "c");
    cache.SetHash([&](const Digest128& before, std::span<const int32_t> t) {
      return Digest128{0, (before.lo + t[0] + t[1]) % hashes};
    });
    std::map<int32_t, Tokens> content;  // page -> all tokens up to its end
    for (int round = 0; round < 500; ++round) {
      Tokens tokens;
      for (int i = 0; i < 6; ++i) tokens.push_back(rng() % 2);
      const Tokens found = cache.Lookup(tokens, "", 99);
      for (size_t i = 0; i < found.size(); ++i)
        ASSERT_EQ(content[found[i]], Tokens(tokens.begin(), tokens.begin() + 2 * (i + 1))) << "seed " << seed;
      if (pool.free_pages() < 3) {
        cache.EvictOne();
        continue;
      }
      const Tokens pages = Pages(3);
      const int64_t before = cache.size();
      cache.Insert(tokens, "", pages);
      if (cache.size() != before)
        for (size_t i = 0; i < 3; ++i)
          if (pool.holders(pages[i]) > 1) content[pages[i]] = Tokens(tokens.begin(), tokens.begin() + 2 * (i + 1));
      Drop(pages);
    }
    EXPECT_GT(cache.collisions(), 0);
  }
}

}  // namespace
}  // namespace samebits
