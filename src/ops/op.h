// What every op shares: the context it runs in, the array of its backends, and paged rows.
//
// One op = one folder; its header is the contract. Call the op's plain function (Gemm, Topk, ...): it checks the
// arguments once, in <op>_args.cc, then runs the best backend. References take the rule as an argument whose default is
// the contract.
#pragma once

#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "base/status.h"
#include "base/thread_pool.h"
#include "numerics/isa.h"
#include "tensor/tensor.h"

namespace samebits {

// Which kernels really ran, and for which instruction set: what `prove` holds against the manifest.
class KernelLog {
 public:
  void Ran(const char* kernel, Isa isa) {
    const std::lock_guard lock(mutex_);
    ran_.insert({kernel, isa});
  }
  const std::set<std::pair<std::string, Isa>>& ran() const { return ran_; }

 private:
  std::mutex mutex_;
  std::set<std::pair<std::string, Isa>> ran_;
};

// Passed, not found: no op reads a global or the environment. No member may change a bit.
struct CpuContext {
  ThreadPool* pool = nullptr;
  Isa isa = Isa::kScalar;
  KernelLog* log = nullptr;
};

// One array of these per op: dispatch, tests, benchmarks and the manifest iterate it. Arguments are already checked.
template <class Args>
struct OpBackend {
  const char* name;  // "ref", "cpu"
  void (*run)(const CpuContext& context, const Args& args);
};

// Rows of a paged cache. Row of position p: page_table[p / page_size] * page_size + p % page_size, `row_stride`
// elements apart. page_table == nullptr: position p is row p.
struct PagedRows {
  const void* pool = nullptr;
  DType dtype = DType::kBF16;
  int64_t row_stride = 0;  // elements
  const int32_t* page_table = nullptr;
  int32_t page_size = 1;

  int64_t Slot(int64_t position) const {
    return page_table ? int64_t{page_table[position / page_size]} * page_size + position % page_size : position;
  }
  template <class T>
  const T* Row(int64_t position) const {
    return static_cast<const T*>(pool) + Slot(position) * row_stride;
  }
};

}  // namespace samebits
