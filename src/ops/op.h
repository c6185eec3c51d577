// What every op shares: the context it runs in, the array of its backends, and paged rows.
//
// One op = one folder; its header is the contract. Call the op's plain function (Gemm, Topk, ...): it checks the
// arguments once, in <op>_args.cc, then runs the best backend. References take the rule as an argument whose default is
// the contract.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "base/thread_pool.h"
#include "numerics/isa.h"
#include "tensor/tensor.h"

namespace samebits {

// Passed, not found: no op reads a global or the environment. Neither member may change a bit.
struct CpuContext {
  ThreadPool* pool = nullptr;
  Isa isa = Isa::kScalar;
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
