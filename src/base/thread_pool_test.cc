#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace samebits {
namespace {

TEST(ThreadPool, PiecesCoverTheRangeOnce) {
  for (const int threads : {1, 2, 3, 7}) {
    ThreadPool pool(threads);
    for (const int64_t n : {0, 1, 2, 3, 6, 7, 8, 63, 64, 65, 1000})
      for (const int64_t min_piece : {0, 1, 2, 16, 2000}) {
        std::vector<std::atomic<int>> seen(static_cast<size_t>(n));
        std::atomic<int> pieces{0};
        pool.Run(n, min_piece, [&](int64_t begin, int64_t end) {
          ++pieces;
          for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
        });
        for (const auto& s : seen) ASSERT_EQ(s.load(), 1) << threads << " threads, n " << n;
        EXPECT_LE(pieces.load(), threads);
        EXPECT_LE(pieces.load(), std::max<int64_t>(1, n / std::max<int64_t>(1, min_piece)));
      }
  }
}

TEST(ThreadPool, ThePartitionDependsOnNothingButTheNumbers) {
  auto cuts = [](ThreadPool* pool) {
    std::mutex mutex;
    std::set<std::pair<int64_t, int64_t>> set;
    pool->Run(101, 4, [&](int64_t begin, int64_t end) {
      std::lock_guard lock(mutex);
      set.insert({begin, end});
    });
    return set;
  };
  ThreadPool pool(3), other(3);
  const auto first = cuts(&pool);
  EXPECT_EQ(first.size(), 3u);
  for (int i = 0; i < 200; ++i) ASSERT_EQ(cuts(i % 2 ? &pool : &other), first);
}

TEST(ThreadPool, ManyRegionsInARowFinishBeforeRunReturns) {
  ThreadPool pool(3);
  std::vector<int64_t> value(64, 0);
  for (int64_t round = 1; round <= 3000; ++round) {
    pool.Run(64, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) value[static_cast<size_t>(i)] += i;
    });
    if (round % 500 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));  // workers asleep, not spinning
  }
  for (int64_t i = 0; i < 64; ++i) EXPECT_EQ(value[static_cast<size_t>(i)], 3000 * i);
}

TEST(ThreadPool, EveryThreadRoundsAsTheContractSays) {
  ThreadPool pool(3);
  std::atomic<int> wrong{0};
  pool.Run(3, 1, [&](int64_t, int64_t) { wrong += !FloatStateIsContract(); });
  EXPECT_EQ(wrong.load(), 0);
}

#if defined(__x86_64__)
// Negative control: what a library linked with fast-math does to the thread that loads it is seen, and put right.
TEST(ThreadPool, FlushToZeroIsSeenAndPutRight) {
  volatile float tiny = 0x1p-149f;
  for (const unsigned bit : {1u << 15, 1u << 6, 1u << 13}) {
    _mm_setcsr(_mm_getcsr() | bit);
    EXPECT_FALSE(FloatStateIsContract());
    SetContractFloatState();
    EXPECT_TRUE(FloatStateIsContract());
    EXPECT_NE(tiny * 2.0f, 0.0f);
  }
}
#endif

}  // namespace
}  // namespace samebits
