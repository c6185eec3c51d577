#include "base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/check.h"

namespace samebits {

#if defined(__x86_64__)
// MXCSR: bits 13-14 rounding (0 = nearest even), bit 15 FTZ, bit 6 DAZ.
static constexpr unsigned kMxcsrMask = (3u << 13) | (1u << 15) | (1u << 6);
bool FloatStateIsContract() { return (_mm_getcsr() & kMxcsrMask) == 0; }
void SetContractFloatState() { _mm_setcsr(_mm_getcsr() & ~kMxcsrMask); }
#elif defined(__aarch64__)
// FPCR: bits 22-23 rounding, bit 24 FZ.
static constexpr uint64_t kFpcrMask = (3ull << 22) | (1ull << 24);
bool FloatStateIsContract() {
  uint64_t fpcr;
  asm volatile("mrs %0, fpcr" : "=r"(fpcr));
  return (fpcr & kFpcrMask) == 0;
}
void SetContractFloatState() {
  uint64_t fpcr;
  asm volatile("mrs %0, fpcr" : "=r"(fpcr));
  fpcr &= ~kFpcrMask;
  asm volatile("msr fpcr, %0" ::"r"(fpcr));
}
#else
bool FloatStateIsContract() { return true; }
void SetContractFloatState() {}
#endif

struct ThreadPool::State {
  std::mutex mutex;
  std::condition_variable wake;
  std::atomic<uint64_t> generation{0};
  std::atomic<int> pending{0};
  const std::function<void(int64_t, int64_t)>* body = nullptr;
  int64_t n = 0;
  int pieces = 0;
  bool stop = false;
  std::vector<std::thread> workers;

  void RunPiece(int piece) const {
    const int64_t begin = n * piece / pieces, end = n * (piece + 1) / pieces;
    if (begin < end) (*body)(begin, end);
  }
};

ThreadPool::ThreadPool(int threads) : threads_(threads), state_(new State) {
  SB_CHECK(threads >= 1, "a pool has at least one thread");
  SetContractFloatState();
  for (int i = 1; i < threads; ++i) {
    state_->workers.emplace_back([state = state_.get(), i] {
      SetContractFloatState();
      uint64_t seen = 0;
      while (true) {
        // A short spin keeps decode steps (many small regions) from paying a futex wake each.
        for (int spin = 0; spin < 2000 && state->generation.load(std::memory_order_acquire) == seen; ++spin) {
#if defined(__x86_64__)
          _mm_pause();
#endif
        }
        if (state->generation.load(std::memory_order_acquire) == seen) {
          std::unique_lock lock(state->mutex);
          state->wake.wait(lock, [&] { return state->generation.load(std::memory_order_acquire) != seen; });
        }
        seen = state->generation.load(std::memory_order_acquire);
        if (state->stop) return;
        if (i < state->pieces) state->RunPiece(i);
        state->pending.fetch_sub(1, std::memory_order_acq_rel);
      }
    });
  }
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(state_->mutex);
    state_->stop = true;
    state_->generation.fetch_add(1, std::memory_order_acq_rel);
  }
  state_->wake.notify_all();
  for (std::thread& worker : state_->workers) worker.join();
}

void ThreadPool::Run(int64_t n, int64_t min_piece, const std::function<void(int64_t, int64_t)>& body) {
  if (n <= 0) return;
  const int64_t most = std::max<int64_t>(1, n / std::max<int64_t>(1, min_piece));
  const int pieces = static_cast<int>(std::min<int64_t>(threads_, most));
  if (pieces == 1) return body(0, n);
  State& s = *state_;
  {
    std::lock_guard lock(s.mutex);
    s.body = &body;
    s.n = n;
    s.pieces = pieces;
    s.pending.store(threads_ - 1, std::memory_order_relaxed);
    s.generation.fetch_add(1, std::memory_order_acq_rel);
  }
  s.wake.notify_all();
  s.RunPiece(0);
  int spins = 0;
  while (s.pending.load(std::memory_order_acquire) != 0)
    if (++spins > 1000) std::this_thread::yield();
}

int ThreadPool::HardwareThreads() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace samebits
