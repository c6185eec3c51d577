// Top-k against a selection by std::nth_element with the same answer, on one thread; also as a fraction of the measured
// memory read bandwidth. Medians of several rounds.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <vector>

#include "numerics/random_inputs.h"
#include "ops/topk/topk.h"

namespace samebits {
namespace {

constexpr int kRounds = 9;

double MedianSeconds(const std::function<void()>& body) {
  std::vector<double> seconds;
  for (int i = 0; i <= kRounds; ++i) {  // the first round warms up
    const auto start = std::chrono::steady_clock::now();
    body();
    if (i > 0) seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + kRounds / 2, seconds.end());
  return seconds[kRounds / 2];
}

// The same order and the same ascending output, by the library's selection.
void NthElement(const TopkArgs& args, std::vector<uint64_t>* keys) {
  const int64_t n = args.scores.cols, k = args.indices.cols;
  for (int64_t r = 0; r < args.scores.rows; ++r) {
    const float* scores = args.scores.Row(r);
    int32_t* out = args.indices.Row(r);
    for (int64_t i = 0; i < n; ++i) (*keys)[static_cast<size_t>(i)] = TopkKey(scores[i], static_cast<int32_t>(i));
    std::nth_element(keys->begin(), keys->begin() + k, keys->begin() + n, std::greater<>());
    for (int64_t j = 0; j < k; ++j) out[j] = TopkKeyIndex((*keys)[static_cast<size_t>(j)]);
    std::sort(out, out + k);
  }
}

double ReadGBytesPerSecond() {
  const std::vector<uint64_t> data(1 << 25, 1);  // 256 MiB, past every cache
  uint64_t sink = 0;
  const double seconds = MedianSeconds([&] {
    uint64_t sum[8] = {};
    for (size_t i = 0; i < data.size(); i += 8)
      for (size_t j = 0; j < 8; ++j) sum[j] += data[i + j];
    for (const uint64_t s : sum) sink += s;
  });
  if (sink == 0) std::printf("impossible\n");  // keeps the sums alive
  return static_cast<double>(data.size()) * 8e-9 / seconds;
}

int Run() {
  const double bandwidth = ReadGBytesPerSecond();
  std::printf("isa %s, 1 thread, memory read %.1f GB/s, medians of %d\n", IsaName(BestIsa()), bandwidth, kRounds);
  std::printf("%-22s %-7s %10s %14s %7s %18s\n", "shape", "data", "ours ms", "nth_element ms", "ratio",
              "of memory read");
  bool same = true;
  for (const auto& [rows, n] : {std::pair<int64_t, int64_t>{323, 2590}, {64, 131072}})
    for (const bool tied : {false, true}) {
      const int64_t k = 2048;
      RandomInputs random(7);
      std::vector<float> scores = random.NormalF32(rows * n);
      // Quarters: some twenty values, so almost every candidate is a tie.
      for (float& s : scores) s = tied ? static_cast<float>(static_cast<int>(s * 4)) * 0.25f : s;
      std::vector<int32_t> ours(static_cast<size_t>(rows * k)), theirs(ours);
      std::vector<uint64_t> keys(static_cast<size_t>(n));
      TopkArgs args;
      args.scores = View<const float>(scores.data(), rows, n);
      args.indices = View<int32_t>(ours.data(), rows, k);
      ThreadPool pool(1);
      const CpuContext context{&pool, BestIsa()};
      bool ran = true;
      const double mine = MedianSeconds([&] { ran &= Topk(context, args).ok(); });
      args.indices = View<int32_t>(theirs.data(), rows, k);
      const double library = MedianSeconds([&] { NthElement(args, &keys); });
      same &= ran && ours == theirs;
      std::printf("%4lld x %6lld -> %lld   %-7s %10.3f %14.3f %6.1fx %17.0f%%\n", static_cast<long long>(rows),
                  static_cast<long long>(n), static_cast<long long>(k), tied ? "tied" : "random", mine * 1e3,
                  library * 1e3, library / mine, static_cast<double>(rows * n) * 4e-9 / mine / bandwidth * 100);
    }
  std::printf("answers %s\n", same ? "equal" : "DIFFER");
  return same ? 0 : 1;
}

}  // namespace
}  // namespace samebits

int main() { return samebits::Run(); }
