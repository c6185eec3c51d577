// A fixed pool with a static partition: part i of n goes to a thread by i alone and no work is stolen. Nothing that
// rounds may depend on how many threads there are; callers partition over outputs, never over an addition.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace samebits {

class ThreadPool {
 public:
  // threads >= 1; 1 runs everything on the caller. The caller counts as one of them.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  int threads() const { return threads_; }

  // Calls body(begin, end) over contiguous pieces that cover [0, n) once; each piece is at least min_piece long except
  // the last. Returns when all are done. Not reentrant: body must not call Run on the same pool.
  void Run(int64_t n, int64_t min_piece, const std::function<void(int64_t begin, int64_t end)>& body);

  // Number of hardware threads this process may use.
  static int HardwareThreads();

 private:
  struct State;
  int threads_;
  std::unique_ptr<State> state_;
};

// True if the calling thread rounds to nearest even and keeps denormals. Loading a library linked with fast-math flags
// can switch FTZ/DAZ on; the pool sets the right state on each worker, the self-test checks it.
bool FloatStateIsContract();
// Sets round-to-nearest-even, FTZ and DAZ off, on the calling thread.
void SetContractFloatState();

}  // namespace samebits
