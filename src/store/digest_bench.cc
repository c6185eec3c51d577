// XXH3-128 throughput of every instruction set: hot (256 kB) and from memory (512 MB), and of what the recorder
// computes for a tensor. Prints medians of 9; nothing is asserted.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "store/digest.h"

namespace samebits {
namespace {

template <class F>
double GigabytesPerSecond(size_t bytes, int repeat, F body) {
  std::vector<double> rates;
  for (int i = 0; i < 9; ++i) {
    const auto start = std::chrono::steady_clock::now();
    for (int r = 0; r < repeat; ++r) body();
    const std::chrono::duration<double> t = std::chrono::steady_clock::now() - start;
    rates.push_back(static_cast<double>(bytes) * repeat / t.count() * 1e-9);
  }
  std::sort(rates.begin(), rates.end());
  return rates[4];
}

int Main() {
  const size_t hot = 256 << 10, cold = 512 << 20;
  std::vector<uint16_t> data(cold / 2);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<uint16_t>(i * 2654435761u >> 9);
  volatile uint64_t sink = 0;
  for (const Isa isa : AvailableIsas())
    std::printf("hash %-7s hot %6.1f GB/s   memory %6.1f GB/s\n", IsaName(isa),
                GigabytesPerSecond(hot, 200, [&] { sink = sink + HashBytesWith(isa, data.data(), hot).lo; }),
                GigabytesPerSecond(cold, 1, [&] { sink = sink + HashBytesWith(isa, data.data(), cold).lo; }));
  const int64_t cols = 2048, rows = static_cast<int64_t>(cold) / 2 / cols, few = 64;
  const auto digest = [&](int64_t n) {
    sink = sink + DigestOf({data.data(), DType::kBF16, n, cols, cols, nullptr}).ordered.lo;
  };
  std::printf("tensor BF16 [.., %d]: rows, ordered, order-free, NaN/inf/-0: hot %6.1f GB/s   memory %6.1f GB/s\n",
              static_cast<int>(cols), GigabytesPerSecond(hot, 200, [&] { digest(few); }),
              GigabytesPerSecond(cold, 1, [&] { digest(rows); }));
  const TensorRef list{DType::kI32, {static_cast<int64_t>(hot / 4)}, data.data()};
  std::printf("element set of I32: hot %6.1f GB/s\n",
              GigabytesPerSecond(hot, 100, [&] { sink = sink + DigestTensor(list, true).element_set.lo; }));
  return 0;
}

}  // namespace
}  // namespace samebits

int main() { return samebits::Main(); }
