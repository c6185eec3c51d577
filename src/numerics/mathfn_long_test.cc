// Every fp32 input, which takes minutes: not run by ctest. `mathfn_long_test [threads]`; exit 1 on any difference.
//   exp      over all 2^32 inputs on every instruction set: one recorded hash
//   bf16, E4M3   both roundings of every input against slow_rounding.h, on every instruction set
//   errors   of every function of mathfn.h against fp64: the maxima that mathfn.h states

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/progress.h"
#include "base/thread_pool.h"
#include "numerics/mathfn_testing.h"
#include "numerics/numerics_probe.h"
#include "numerics/slow_rounding.h"

namespace samebits {
namespace {

constexpr int64_t kChunk = 1 << 22, kChunks = (int64_t{1} << 32) / kChunk;

// Calls body(chunk) for every chunk of 2^22 inputs, in rounds of a few per thread, with progress.
template <class Body>
void ForChunks(ThreadPool* pool, const std::string& label, const Body& body) {
  Progress progress(label, "inputs", int64_t{1} << 32);
  const int64_t round = 4 * pool->threads();
  for (int64_t c = 0; c < kChunks; c += round) {
    const int64_t n = std::min(round, kChunks - c);
    pool->Run(n, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) body(c + i);
    });
    progress.Add(n * kChunk);
  }
}

struct IsaFns {
  const char* name;
  decltype(&scalar::MathHash) hash;
  decltype(&scalar::ToBF16Row) to_bf16;
  decltype(&scalar::ToE4M3Row) to_e4m3;
};
std::vector<IsaFns> Isas() {
  std::vector<IsaFns> isas;
#define SB_ONE(isa, space) \
  if (IsaAvailable(isa)) isas.push_back({#space, space::MathHash, space::ToBF16Row, space::ToE4M3Row});
  SB_FOR_EACH_ISA(SB_ONE)
#undef SB_ONE
  return isas;
}

constexpr uint64_t kExpHash = 0xcb5123be86a97d87;

bool CheckExpHash(ThreadPool* pool, const IsaFns& isa) {
  std::vector<uint64_t> part(kChunks);
  ForChunks(pool, std::string("exp, ") + isa.name, [&](int64_t c) {
    part[static_cast<size_t>(c)] = isa.hash(MathFn::kExp, static_cast<uint32_t>(c * kChunk), 1, kChunk, kFnvStart);
  });
  uint64_t all = kFnvStart;
  for (const uint64_t p : part) all = FnvWord(FnvWord(all, static_cast<uint32_t>(p)), static_cast<uint32_t>(p >> 32));
  const bool ok = all == kExpHash;
  std::printf("exp of all inputs, %-6s  0x%016llx  %s\n", isa.name, static_cast<unsigned long long>(all),
              ok ? "as recorded" : "DIFFERENT");
  return ok;
}

bool CheckRoundings(ThreadPool* pool, const IsaFns& isa) {
  const SlowE4M3 slow;
  std::vector<int64_t> wrong(kChunks);
  ForChunks(pool, std::string("roundings, ") + isa.name, [&](int64_t c) {
    constexpr int64_t kRow = 4096;
    std::vector<float> x(kRow);
    std::vector<BF16> half(kRow);
    std::vector<E4M3> byte(kRow);
    for (int64_t u = c * kChunk; u < (c + 1) * kChunk; u += kRow) {
      for (int64_t i = 0; i < kRow; ++i) x[static_cast<size_t>(i)] = FromBits(static_cast<uint32_t>(u + i));
      isa.to_bf16(x.data(), half.data(), kRow);
      isa.to_e4m3(x.data(), byte.data(), kRow);
      for (int64_t i = 0; i < kRow; ++i) {
        const size_t at = static_cast<size_t>(i);
        const uint32_t bits = static_cast<uint32_t>(u + i);
        wrong[static_cast<size_t>(c)] += half[at].bits != SlowBF16(bits) || byte[at].bits != slow.Round(bits);
      }
    }
  });
  int64_t total = 0;
  for (const int64_t w : wrong) total += w;
  std::printf("bf16 and E4M3 of all inputs, %-6s  %lld wrong\n", isa.name, static_cast<long long>(total));
  return total == 0;
}

bool CheckErrors(ThreadPool* pool) {
  bool ok = true;
  for (const MathFnBound& b : kMathFnBounds) {
    struct Worst {
      double ulps = 0;
      float at = 0;
    };
    std::vector<Worst> part(kChunks);
    ForChunks(pool, MathFnName(b.fn), [&](int64_t c) {
      Worst worst;
      for (int64_t u = c * kChunk; u < (c + 1) * kChunk; ++u) {
        const float x = FromBits(static_cast<uint32_t>(u));
        if (!(x >= b.low && x <= b.high)) continue;
        const double ulps = UlpsOff(MathFnScalar(b.fn, x), MathFnExact(b.fn, double{x}));
        if (ulps > worst.ulps) worst = {ulps, x};
      }
      part[static_cast<size_t>(c)] = worst;
    });
    Worst worst;
    for (const Worst& w : part)
      if (w.ulps > worst.ulps) worst = w;
    const bool within = worst.ulps <= b.ulps;
    std::printf("%-13s of [%g, %g]: at most %.4f ulp off, at %a (bound %g)%s\n", MathFnName(b.fn), double{b.low},
                double{b.high}, worst.ulps, double{worst.at}, b.ulps, within ? "" : "  TOO MUCH");
    std::fflush(stdout);
    ok &= within;
  }
  return ok;
}

}  // namespace
}  // namespace samebits

int main(int argc, char** argv) {
  using namespace samebits;
  const int threads = argc > 1 ? std::atoi(argv[1]) : ThreadPool::HardwareThreads();
  if (threads < 1) return std::fprintf(stderr, "usage: mathfn_long_test [threads]\n"), 2;
  ThreadPool pool(threads);
  bool ok = true;
  for (const IsaFns& isa : Isas()) ok &= CheckExpHash(&pool, isa);
  for (const IsaFns& isa : Isas()) ok &= CheckRoundings(&pool, isa);
  ok &= CheckErrors(&pool);
  return ok ? 0 : 1;
}
