// Speed of CompareTensors on one core, counted over both sides, beside memcmp (what cmp does) on the same data.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "forensics/compare.h"

using namespace samebits;

namespace {

template <class F>
double MedianSeconds(const F& f) {
  std::vector<double> t;
  for (int r = 0; r < 7; ++r) {
    const auto start = std::chrono::steady_clock::now();
    f();
    t.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(t.begin(), t.end());
  return t[t.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t mib = argc > 1 ? std::atoll(argv[1]) : 256;
  std::printf("# %lld MiB a side, one core, %s; GB/s over both sides, median of 7\n", static_cast<long long>(mib),
              IsaName(BestIsa()));
  std::printf("%-5s %-22s %8s %10s\n", "dtype", "data", "memcmp", "all metrics");
  for (const DType dtype : {DType::kBF16, DType::kF32}) {
    const int width = DTypeBits(dtype) / 8;
    const int64_t n = mib * (1 << 20) / width;
    Tensor a(dtype, {n}), b(dtype, {n});
    uint64_t state = 1;
    const auto next = [&] { return state = state * 6364136223846793005u + 1442695040888963407u, state >> 33; };
    uint8_t* p = static_cast<uint8_t*>(a.raw());
    for (int64_t i = 0; i < n; ++i) {
      uint32_t u = 0x3f800000u + static_cast<uint32_t>(next() & 0x1ffffff);
      if (width == 2) u >>= 16;
      std::memcpy(p + i * width, &u, static_cast<size_t>(width));
    }
    struct {
      const char* name;
      int64_t every;
    } const modes[] = {{"equal", 0}, {"0.1 % differ by 1 ulp", 1000}, {"half differ", 2}, {"all differ", 1}};
    for (const auto& mode : modes) {
      std::memcpy(b.raw(), a.raw(), a.bytes());
      uint8_t* q = static_cast<uint8_t*>(b.raw());
      for (int64_t i = 0; mode.every && i < n; i += mode.every) ++q[i * width];  // the lowest mantissa byte
      volatile int64_t sink = 0;
      const double memcmp_s = MedianSeconds([&] { sink = std::memcmp(a.raw(), b.raw(), a.bytes()); });
      const double ours = MedianSeconds([&] { sink = CompareTensors(a.ref(), b.ref()).stats.bit_mismatches; });
      const double bytes = 2.0 * static_cast<double>(a.bytes());
      std::printf("%-5s %-22s %8s %10.1f\n", DTypeName(dtype), mode.name,
                  mode.every ? "-" : std::to_string(static_cast<int>(bytes / memcmp_s / 1e9)).c_str(),
                  bytes / ours / 1e9);
    }
  }
}
