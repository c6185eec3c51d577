// What op tests share: every instruction set x thread count, poisoned outputs, and byte comparison with a message.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "numerics/random_inputs.h"
#include "ops/op.h"

namespace samebits {

// Calls body(context, name) for every instruction set of this machine with 1, 2 and 3 threads.
template <class Body>
void ForEachCpu(const Body& body) {
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    for (const Isa isa : AvailableIsas()) {
      const std::string name = std::string(IsaName(isa)) + ", " + std::to_string(threads) + " threads";
      SCOPED_TRACE(name);
      body(CpuContext{&pool, isa});
    }
  }
}

// Bytes 0xff everywhere: NaN in every float format, so an unwritten element shows.
template <class T>
std::vector<T> Poisoned(int64_t n) {
  std::vector<T> v(static_cast<size_t>(n));
  std::memset(static_cast<void*>(v.data()), 0xff, v.size() * sizeof(T));
  return v;
}

template <class T>
::testing::AssertionResult SameBytes(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0)
    return ::testing::AssertionSuccess();
  const Shape sa = {static_cast<int64_t>(a.size())}, sb = {static_cast<int64_t>(b.size())};
  return ::testing::AssertionFailure() << DescribeDifference(TensorRef{DTypeOf<T>::value, sa, a.data()},
                                                             TensorRef{DTypeOf<T>::value, sb, b.data()});
}

}  // namespace samebits
