// Attention on one core: decode at V3.2's head sizes against the measured FMA peak, and a prefill of the tiny model.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "numerics/random_inputs.h"
#include "ops/attention/attention.h"

namespace samebits {
namespace {

constexpr int kRounds = 5;

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

#if defined(__x86_64__)
constexpr int64_t kPeakSteps = 1 << 22;
// 12 independent chains hide the latency of the two FMA ports.
__attribute__((target("avx512f"))) float FmaChains() {
  __m512 acc[12];
  const __m512 x = _mm512_set1_ps(0.999f);
  for (__m512& a : acc) a = x;
  for (int64_t i = 0; i < kPeakSteps; ++i)
#pragma GCC unroll 12
    for (int c = 0; c < 12; ++c) acc[c] = _mm512_fmadd_ps(acc[c], x, x);
  __m512 sum = acc[0];
  for (int c = 1; c < 12; ++c) sum = _mm512_add_ps(sum, acc[c]);
  return _mm512_cvtss_f32(sum);
}
double PeakGflops() {
  if (BestIsa() != Isa::kAvx512) return 0.0;
  volatile float sink = 0.0f;
  const double seconds = MedianSeconds([&] { sink = FmaChains(); });
  return 2.0 * 16 * 12 * static_cast<double>(kPeakSteps) / seconds * 1e-9;
}
#else
double PeakGflops() { return 0.0; }
#endif

struct Case {
  const char* name;
  int64_t tokens, heads, dim, value_dim, keys;
  bool prefill;  // token t sees t + 1 keys
};

int Run() {
  const double peak = PeakGflops();
  std::printf("isa %s, 1 thread, fp32 FMA peak %.0f GFLOP/s (0: not measured here), medians of %d\n",
              IsaName(BestIsa()), peak, kRounds);
  for (const Case& s : {Case{"V3.2 decode, 128 heads 576/512, 2048 keys", 2, 128, 576, 512, 2048, false},
                        Case{"tiny prefill, 8 heads 80/64, 2000 tokens", 2000, 8, 80, 64, 2000, true}}) {
    RandomInputs random(3);
    const std::vector<BF16> q = random.NormalBF16(s.tokens * s.heads * s.dim, 0.3f);
    const std::vector<BF16> kv = random.NormalBF16(s.keys * s.dim);
    std::vector<BF16> out(static_cast<size_t>(s.tokens * s.heads * s.value_dim));
    std::vector<int32_t> lens;
    double pairs = 0;
    for (int64_t t = 0; t < s.tokens; ++t) {
      lens.push_back(static_cast<int32_t>(s.prefill ? t + 1 : s.keys));
      pairs += lens.back();
    }
    AttentionArgs args;
    args.q = View<const BF16>(q.data(), s.tokens, s.heads * s.dim);
    args.heads = s.heads, args.dim = s.dim, args.value_dim = s.value_dim;
    args.keys = args.values = PagedRows{kv.data(), DType::kBF16, s.dim, nullptr, 1};
    args.kv_lens = lens.data(), args.scale = 0.05f;
    args.out = View<BF16>(out.data(), s.tokens, s.heads * s.value_dim);
    ThreadPool pool(1);
    const CpuContext context{&pool, BestIsa()};
    bool ran = true;
    const double seconds = MedianSeconds([&] { ran &= Attention(context, args).ok(); });
    if (!ran) return 1;
    const double gflops = 2 * pairs * static_cast<double>(s.heads * (s.dim + s.value_dim)) / seconds * 1e-9;
    std::printf("%s: %.1f ms, %.1f tokens/s, %.1f GFLOP/s", s.name, seconds * 1e3,
                static_cast<double>(s.tokens) / seconds, gflops);
    peak > 0 ? std::printf(", %.0f%% of peak\n", gflops / peak * 100) : std::printf("\n");
  }
  return 0;
}

}  // namespace
}  // namespace samebits

int main() { return samebits::Run(); }
