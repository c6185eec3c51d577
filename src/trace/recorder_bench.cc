// What recording digests costs a forward pass: microseconds a record and bytes a second, for decode and prefill rows of
// tiny-v32 (192 wide) and V3.2 (7168 wide). Medians of 9; nothing is asserted. Writes below TMPDIR (or /tmp).
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/strings.h"
#include "trace/recorder.h"

namespace samebits {
namespace {

double MicrosecondsPerRecord(Recorder* recorder, const std::vector<uint16_t>& data, const std::vector<RowOwner>& owners,
                             int64_t rows, int64_t cols) {
  constexpr int kLayers = 61, kSites = 30;
  std::vector<double> times;
  for (int64_t step = 0; step < 9; ++step) {
    const auto start = std::chrono::steady_clock::now();
    SB_CHECK(recorder->BeginStep(step).ok(), "step");
    for (int layer = 0; layer < kLayers; ++layer)
      for (int site = 0; site < kSites; ++site)
        recorder->OnRows(static_cast<Site>(site), layer,
                         {data.data(), DType::kBF16, rows, cols, cols, nullptr, owners.data()});
    SB_CHECK(recorder->EndStep().ok(), "step");
    const std::chrono::duration<double> t = std::chrono::steady_clock::now() - start;
    times.push_back(t.count() * 1e6 / (kLayers * kSites));
  }
  std::sort(times.begin(), times.end());
  return times[4];
}

int Main() {
  const char* temporary = std::getenv("TMPDIR");
  const std::string root = Format("%s/samebits_recorder_bench_%d", temporary ? temporary : "/tmp", ::getpid());
  std::vector<uint16_t> data(512 * 7168);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<uint16_t>(i * 2654435761u >> 9);
  std::vector<RowOwner> owners;
  for (int32_t r = 0; r < 512; ++r) owners.push_back({0, r});
  for (const int64_t cols : {192, 7168})
    for (const int64_t rows : {1, 64, 512}) {
      const std::string folder =
          Format("%s/%lld_%lld", root.c_str(), static_cast<long long>(cols), static_cast<long long>(rows));
      auto recorder = Recorder::Create(folder, {});
      SB_CHECK(recorder.ok(), recorder.status().text());
      const double us = MicrosecondsPerRecord(recorder->get(), data, owners, rows, cols);
      std::printf("%4lld rows of %4lld BF16: %8.1f us a record, %5.1f GB/s\n", static_cast<long long>(rows),
                  static_cast<long long>(cols), us, static_cast<double>(rows * cols * 2) / us * 1e-3);
      (void)(*recorder)->Finish();
      for (const char* name : {"manifest.json", "sites.jsonl", "rows_rank0.bin"})
        ::unlink((folder + "/" + name).c_str());
      ::rmdir(folder.c_str());
    }
  ::rmdir(root.c_str());
  return 0;
}

}  // namespace
}  // namespace samebits

int main() { return samebits::Main(); }
