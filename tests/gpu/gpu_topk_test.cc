// Top-k on the device against the reference: every tuning entry, lengths 1 .. 1 Mi, ragged rows, ties, signed zeros, NaN,
// infinities; repeats; the fused page transform; output by rank. `--small`: a few shapes, for
// compute-sanitizer; then `--no-clusters`: only the kernels of one block per row.

#include <algorithm>

#include "gpu_testing.h"
#include "numerics/mathfn.h"
#include "numerics/random_inputs.h"
#include "ops/topk/topk_cuda.h"

namespace samebits {
namespace {

constexpr const char* kFamilies[] = {"normal", "tied",   "equal",   "zeros", "nan",
                                     "tail",   "rising", "falling", "two",   "most-nan"};

std::vector<float> Scores(const std::string& family, int64_t count, int64_t n, RandomInputs& random) {
  std::vector<float> x(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const float z = random.Normal();
    const int64_t c = i % n;
    float v = z;
    if (family == "tied") v = RoundToInt(z * 8.0f) * 0.125f;
    if (family == "equal") v = -1.5f;
    if (family == "zeros") v = random.Below(4) == 0 ? z : random.Below(2) ? 0.0f : -0.0f;
    if (family == "nan" && random.Below(10) == 0)
      v = FromBits(0x7fc00000u | (static_cast<uint32_t>(random.Below(2)) << 31));
    if (family == "tail" && c * 3 > n) v = FromBits(0xff800000u);
    if (family == "rising") v = static_cast<float>(c) * 0.25f + z;
    if (family == "falling") v = z - static_cast<float>(c) * 0.25f;
    if (family == "two") v = random.Below(2) ? 1.0f : FromBits(0x7f800000u);
    if (family == "most-nan" && random.Below(50) != 0) v = FromBits(kCanonicalNan);
    x[static_cast<size_t>(i)] = v;
  }
  return x;
}

struct Case {
  int64_t rows, n, k;
  bool ragged;
};

void RunCase(GpuTest& test, ThreadPool& pool, const Case& c, const std::string& family, bool clusters) {
  RandomInputs random(static_cast<uint64_t>(c.n * 7919 + c.k * 13 + c.ragged));
  const int64_t stride = c.n + static_cast<int64_t>(random.Below(5)), out_stride = c.k + 3;
  const std::vector<float> scores = Scores(family, c.rows * stride, stride, random);
  std::vector<int32_t> starts, lens;
  for (int64_t r = 0; r < c.rows; ++r) {
    starts.push_back(static_cast<int32_t>(random.Below(static_cast<uint64_t>(c.n / 2 + 1))));
    const int64_t most = c.n - starts.back();
    lens.push_back(r == 0   ? 0
                   : r == 1 ? -3
                   : r == 2 ? static_cast<int32_t>(std::min<int64_t>(most, c.k))
                   : r == 3 ? static_cast<int32_t>(most)
                            : static_cast<int32_t>(random.Below(static_cast<uint64_t>(most) + 1)));
  }
  CudaTopkArgs args;
  args.topk.scores = View<const float>(scores.data(), c.rows, c.n, stride);
  if (c.ragged) args.topk.row_starts = starts.data(), args.topk.row_lens = lens.data();
  std::vector<int32_t> want(static_cast<size_t>(c.rows * out_stride), -1), want_rank = want,
                                                                           nans(static_cast<size_t>(c.rows));
  args.topk.indices = View<int32_t>(want.data(), c.rows, c.k, out_stride);
  args.topk.nan_counts = nans.data();
  test.Check(CheckTopk(args.topk));
  const auto reference = [&](TopkArgs whole) {
    pool.Run(c.rows, 1, [&](int64_t begin, int64_t end) {
      TopkArgs some = whole;
      some.scores = whole.scores.Rows(begin, end - begin), some.indices = whole.indices.Rows(begin, end - begin);
      if (whole.row_starts) some.row_starts += begin, some.row_lens += begin;
      some.nan_counts += begin;
      TopkRef(some);
    });
  };
  reference(args.topk);
  TopkArgs by_rank = args.topk;
  by_rank.output = TopkOutput::kByRank, by_rank.indices.data = want_rank.data();
  reference(by_rank);
  constexpr int32_t kPage = 64;
  const int64_t pages = (c.n + kPage - 1) / kPage;
  std::vector<int32_t> table(static_cast<size_t>(c.rows * pages)), want_slots = want;
  for (int32_t& p : table) p = static_cast<int32_t>(random.Below(1 << 20));
  PageTransformArgs transform{View<const int32_t>(want.data(), c.rows, c.k, out_stride),
                              View<const int32_t>(table.data(), c.rows, pages), nullptr, kPage,
                              View<int32_t>(want_slots.data(), c.rows, c.k, out_stride)};
  PageTransformRef(transform);

  CudaTopkArgs gpu = args;
  gpu.topk.scores.data = test.Device(scores);
  if (c.ragged) gpu.topk.row_starts = test.Device(starts), gpu.topk.row_lens = test.Device(lens);
  int32_t* const indices = test.Device<int32_t>(c.rows * out_stride);
  int32_t* const slots = test.Device<int32_t>(c.rows * out_stride);
  gpu.topk.indices.data = indices;
  gpu.topk.nan_counts = test.Device<int32_t>(c.rows);
  gpu.slots = slots, gpu.slots_stride = out_stride, gpu.page_table = test.Device(table), gpu.page_table_stride = pages,
  gpu.page_size = kPage;
  const CudaKernel& kernel = test.Kernel("topk/select");
  const uint64_t bytes = static_cast<uint64_t>(c.rows * out_stride) * 4;
  for (int tuning = clusters ? -1 : 0; tuning < kTopkTuningCount; ++tuning) {
    if (tuning >= 0 && !TopkFits(kTopkTunings[tuning], c.n, c.k, clusters)) continue;
    gpu.tuning = tuning;
    test.Poison(indices, bytes), test.Poison(slots, bytes),
        test.Poison(gpu.topk.nan_counts, static_cast<uint64_t>(c.rows) * 4);
    test.Run(kernel, gpu);
    const std::string name = family + " rows " + std::to_string(c.rows) + " n " + std::to_string(c.n) + " k " +
                             std::to_string(c.k) + (c.ragged ? " ragged" : "") + " tuning " + std::to_string(tuning);
    test.Same(name, test.Host(indices, c.rows * out_stride), want);
    test.Same(name + " slots", test.Host(slots, c.rows * out_stride), want_slots);
    test.Same(name + " nan", test.Host(gpu.topk.nan_counts, c.rows), nans);
  }
  CudaTopkArgs ranked = gpu;
  ranked.tuning = -1, ranked.slots = nullptr, ranked.topk.output = TopkOutput::kByRank,
  ranked.topk.nan_counts = nullptr;
  test.Poison(indices, bytes);
  test.Run(kernel, ranked);
  test.Same(family + " by rank n " + std::to_string(c.n) + " k " + std::to_string(c.k),
            test.Host(indices, c.rows * out_stride), want_rank);
  test.FreeAll();
}

// The same call 50 times; and a rule broken on purpose (ties to the higher index) must show.
void Repeats(GpuTest& test) {
  RandomInputs random(5);
  const int64_t rows = 7, n = 40000, k = 2048;
  const std::vector<float> scores = Scores("tied", rows * n, n, random);
  CudaTopkArgs gpu;
  gpu.topk.scores = View<const float>(test.Device(scores), rows, n);
  int32_t* const indices = test.Device<int32_t>(rows * k);
  gpu.topk.indices = View<int32_t>(indices, rows, k);
  std::vector<int32_t> first;
  for (int i = 0; i < 50; ++i) {
    test.Poison(indices, static_cast<uint64_t>(rows * k) * 4);
    test.Run(test.Kernel("topk/select"), gpu);
    const std::vector<int32_t> got = test.Host(indices, rows * k);
    if (i == 0) first = got;
    test.Same("repeat " + std::to_string(i), got, first);
  }
  std::vector<int32_t> broken(static_cast<size_t>(rows * k));
  TopkArgs args;
  args.scores = View<const float>(scores.data(), rows, n), args.indices = View<int32_t>(broken.data(), rows, k);
  TopkRef(args, TopkRule{.high_index_wins_ties = true});
  test.Expect(broken != first, "ties to the higher index must give other bytes");
  test.FreeAll();
}

}  // namespace
}  // namespace samebits

int main(int argc, char** argv) {
  using namespace samebits;
  bool small = false, clusters = true;
  if (argc > 1 && std::string(argv[argc - 1]) == "--no-clusters") clusters = false, --argc;
  if (argc > 1 && std::string(argv[argc - 1]) == "--small") small = true, --argc;
  GpuTest test(argc, argv);
  clusters = clusters && test.plugin.device().major >= 9;
  ThreadPool pool(ThreadPool::HardwareThreads());
  std::vector<int64_t> lengths = {1,    2,     31,    33,    64,    127,   129,    1000,   1024,   1025,   2048,
                                  2049, 2590,  3072,  4095,  4096,  4097,  6144,   6145,   8191,   8192,   8193,
                                  9000, 16384, 20001, 32768, 50000, 65536, 131072, 131073, 300001, 1048576};
  if (small) lengths = {33, 2590, 20001};
  for (const char* family : kFamilies) {
    if (small && std::string(family) != "tied" && std::string(family) != "nan" && std::string(family) != "most-nan")
      continue;
    for (const int64_t n : lengths)
      for (const int64_t k : {1, 8, 512, 2048, 4096}) {
        if (k > 2 * n && k > 8) continue;
        if (small && (k == 8 || k == 4096)) continue;
        if (n > 200000 && k != 2048 && k != 1) continue;
        const int64_t rows = small ? 5 : n > 200000 ? 4 : 9;
        for (const bool ragged : {false, true})
          if (!small || ragged) RunCase(test, pool, {rows, n, k, ragged}, family, clusters);
      }
  }
  if (!small) Repeats(test);
  return test.Finish("top-k");
}
