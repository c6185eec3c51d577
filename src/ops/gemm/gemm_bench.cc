// GEMM against the machine: fp32 FMA peak of one core and read bandwidth are measured in the same rounds as the GEMMs,
// so that a busy or throttled machine slows floor and kernel alike. gemm_bench [rounds], default 9.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "numerics/random_inputs.h"
#include "ops/gemm/gemm.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace samebits {
namespace {

constexpr int64_t kPeakSteps = 2'000'000;
volatile float float_sink;
volatile uint64_t int_sink;

// Independent fma chains, more than latency x ports; returns the multiply-adds done.
#if defined(__x86_64__)
__attribute__((target("avx512f"))) int64_t PeakAvx512() {
  __m512 acc[16];
  for (__m512& a : acc) a = _mm512_set1_ps(1.0f);
  const __m512 x = _mm512_set1_ps(0.5f), y = _mm512_set1_ps(0.25f);
  for (int64_t i = 0; i < kPeakSteps; ++i)
#pragma GCC unroll 16
    for (int j = 0; j < 16; ++j) acc[j] = _mm512_fmadd_ps(acc[j], x, y);
  __m512 all = acc[0];
  for (const __m512& a : acc) all = _mm512_add_ps(all, a);
  float lanes[16];
  _mm512_storeu_ps(lanes, all);
  float_sink = lanes[3];
  return kPeakSteps * 16 * 16;
}
__attribute__((target("avx2,fma"))) int64_t PeakAvx2() {
  __m256 acc[12];
  for (__m256& a : acc) a = _mm256_set1_ps(1.0f);
  const __m256 x = _mm256_set1_ps(0.5f), y = _mm256_set1_ps(0.25f);
  for (int64_t i = 0; i < kPeakSteps; ++i)
#pragma GCC unroll 12
    for (int j = 0; j < 12; ++j) acc[j] = _mm256_fmadd_ps(acc[j], x, y);
  __m256 all = acc[0];
  for (const __m256& a : acc) all = _mm256_add_ps(all, a);
  float lanes[8];
  _mm256_storeu_ps(lanes, all);
  float_sink = lanes[3];
  return kPeakSteps * 12 * 8;
}
// Eight streams at once, like the eight panels of a one-row GEMM: one stream alone does not reach the ceiling.
__attribute__((target("avx2"))) uint64_t ReadAll(const uint8_t* p, int64_t bytes) {
  __m256i sum[8] = {};
  const int64_t stream = bytes / 8 / 64 * 64;
  for (int64_t i = 0; i < stream; i += 64)
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
      const __m256i* line = reinterpret_cast<const __m256i*>(p + j * stream + i);
      sum[j] = _mm256_add_epi64(sum[j], _mm256_add_epi64(_mm256_loadu_si256(line), _mm256_loadu_si256(line + 1)));
    }
  uint64_t lanes[4], total = 0;
  for (const __m256i& s : sum) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(lanes), s);
    total += lanes[0] + lanes[1] + lanes[2] + lanes[3];
  }
  return total;
}
#else
uint64_t ReadAll(const uint8_t* p, int64_t bytes) {
  uint64_t sum = 0;
  const uint64_t* words = reinterpret_cast<const uint64_t*>(p);
  for (int64_t i = 0; i < bytes / 8; ++i) sum += words[i];
  return sum;
}
#endif
#if defined(__aarch64__)
int64_t PeakNeon() {
  float32x4_t acc[24];
  for (float32x4_t& a : acc) a = vdupq_n_f32(1.0f);
  const float32x4_t x = vdupq_n_f32(0.5f), y = vdupq_n_f32(0.25f);
  for (int64_t i = 0; i < kPeakSteps; ++i)
#pragma GCC unroll 24
    for (int j = 0; j < 24; ++j) acc[j] = vfmaq_f32(y, acc[j], x);
  float sum = 0;
  for (const float32x4_t& a : acc) sum += vgetq_lane_f32(a, 0);
  float_sink = sum;
  return kPeakSteps * 24 * 4;
}
#endif

int64_t Peak(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::kAvx512) return PeakAvx512();
  if (isa == Isa::kAvx2) return PeakAvx2();
#elif defined(__aarch64__)
  if (isa == Isa::kNeon) return PeakNeon();
#endif
  (void)isa;
  return 0;  // no peak is claimed for the scalar build
}

struct Weights {
  PackedWeight packed;
  std::vector<BF16> a16;
  std::vector<E4M3> a8;
  std::vector<float> a_scale, out;
  int64_t n, k;

  Weights(DType dtype, int64_t n_, int64_t k_, int64_t max_m) : n(n_), k(k_) {
    RandomInputs random(11);
    const int64_t blocks = (k + kScaleBlock - 1) / kScaleBlock;
    const std::vector<float> scale(static_cast<size_t>((n + kScaleBlock - 1) / kScaleBlock * blocks), 0.01f);
    a16 = random.NormalBF16(max_m * k), a_scale.assign(static_cast<size_t>(max_m * blocks), 0.02f);
    for (const BF16 x : a16) a8.push_back(RoundToE4M3(ToF32(x) * 40.0f));
    out.resize(static_cast<size_t>(max_m * n));
    if (dtype == DType::kBF16) {
      const std::vector<BF16> b = random.NormalBF16(n * k);
      packed = *PackedWeight::Pack("w", dtype, b.data(), n, k, k);
    } else {
      std::vector<E4M3> b(static_cast<size_t>(n * k));
      for (E4M3& x : b) x = E4M3{static_cast<uint8_t>(random.Bits32() % 0x78)};
      packed = *PackedWeight::Pack("w", dtype, b.data(), n, k, k, scale.data());
    }
  }
  GemmArgs Args(int64_t m) {
    GemmArgs args;
    if (packed.dtype() == DType::kBF16) {
      args.a = View<const BF16>(a16.data(), m, k);
    } else {
      args.a = View<const E4M3>(a8.data(), m, k);
      args.a_scale = View<const float>(a_scale.data(), m, (k + kScaleBlock - 1) / kScaleBlock);
    }
    args.b = &packed;
    args.out = View<float>(out.data(), m, n);
    return args;
  }
};

double Seconds(const std::function<void()>& body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}
double Best(const std::vector<double>& t) { return *std::min_element(t.begin(), t.end()); }
double Median(std::vector<double> t) {
  std::sort(t.begin(), t.end());
  return t[t.size() / 2];
}

struct Case {
  std::string name;
  Weights* weights;
  int64_t m;
  std::vector<double> seconds[2];  // one and two threads
};

int Main(int rounds) {
  const Isa isa = BestIsa();
  Weights wide(DType::kBF16, 2048, 7168, 512), big(DType::kBF16, 7168, 7168, 8), wide8(DType::kF8E4M3, 2048, 7168, 96),
      big8(DType::kF8E4M3, 7168, 7168, 8);
  std::vector<Case> cases;
  for (const int64_t m : {96, 512}) cases.push_back({"bf16 2048 x 7168", &wide, m, {}});
  for (const int64_t m : {1, 2, 4, 8}) cases.push_back({"bf16 7168 x 7168", &big, m, {}});
  cases.push_back({"e4m3 2048 x 7168", &wide8, 96, {}});
  for (const int64_t m : {1, 8}) cases.push_back({"e4m3 7168 x 7168", &big8, m, {}});
  ThreadPool one(1), two(2);
  std::vector<double> peak, read[2];
  int64_t peak_work = 0;
  for (int round = 0; round < rounds; ++round) {
    peak.push_back(Seconds([&] { peak_work = Peak(isa); }));
    for (ThreadPool* pool : {&one, &two})
      read[pool == &two].push_back(Seconds([&] {
        pool->Run(static_cast<int64_t>(big.packed.bytes()), 1 << 20,
                  [&](int64_t begin, int64_t end) { int_sink = ReadAll(big.packed.data() + begin, end - begin); });
      }));
    for (Case& c : cases)
      for (ThreadPool* pool : {&one, &two}) {
        const GemmArgs args = c.weights->Args(c.m);
        c.seconds[pool == &two].push_back(Seconds([&] { (void)Gemm(CpuContext{pool, isa}, args).ok(); }));
      }
  }
  const double peak_gf = 2e-9 * static_cast<double>(peak_work) / Best(peak);
  const double bytes = static_cast<double>(big.packed.bytes());
  std::printf("%s, best of %d interleaved rounds (median in brackets)\n", IsaName(isa), rounds);
  std::printf("fp32 fma peak, one core: %.1f GFLOP/s (%.1f)\n", peak_gf,
              2e-9 * static_cast<double>(peak_work) / Median(peak));
  std::printf("read of %.0f MB: one thread %.1f GB/s (%.1f), two %.1f (%.1f)\n\n", bytes * 1e-6,
              1e-9 * bytes / Best(read[0]), 1e-9 * bytes / Median(read[0]), 1e-9 * bytes / Best(read[1]),
              1e-9 * bytes / Median(read[1]));
  std::printf("%-18s %4s %10s %10s %9s %7s %8s %7s %10s\n", "weights", "M", "ms", "(median)", "GFLOP/s", "/peak",
              "GB/s", "/read", "2 threads");
  for (const Case& c : cases) {
    const double best = Best(c.seconds[0]), flops = 2.0 * static_cast<double>(c.m * c.weights->n * c.weights->k);
    const double gf = 1e-9 * flops / best, gb = 1e-9 * static_cast<double>(c.weights->packed.bytes()) / best;
    std::printf("%-18s %4lld %10.3f %10.3f %9.1f %6.0f%% %8.1f %6.0f%% %9.2fx\n", c.name.c_str(),
                static_cast<long long>(c.m), best * 1e3, Median(c.seconds[0]) * 1e3, gf,
                peak_gf > 0 ? 100 * gf / peak_gf : 0.0, gb, 100 * gb * Best(read[0]) / (1e-9 * bytes),
                best / Best(c.seconds[1]));
  }
  return 0;
}

}  // namespace
}  // namespace samebits

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 9;
  if (rounds < 1) {
    std::fprintf(stderr, "gemm_bench: rounds must be a positive number, got %s\n", argv[1]);
    return 2;
  }
  return samebits::Main(rounds);
}
