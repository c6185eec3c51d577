// Do host and device give the same bits for the functions every op is built from? All 2^32 inputs each.

#include <atomic>
#include <cstdio>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "numerics/format.h"
#include "numerics/mathfn.h"
#include "ops/quant/quant.h"

namespace samebits {
namespace {

enum Function { kExp, kLog, kSigmoid, kSilu, kSoftplus, kRsqrt, kDiv, kToBF16, kToE4M3, kToE8M0, kFunctions };
constexpr const char* kNames[] = {"exp",   "log",   "sigmoid",      "silu",         "softplus",
                                  "rsqrt", "x / 3", "fp32 to bf16", "fp32 to e4m3", "ceil to e8m0"};

template <int F>
SB_HD uint32_t Value(uint32_t bits) {
  const float x = FromBits(bits);
  if constexpr (F == kExp) return Bits(Exp(x));
  if constexpr (F == kLog) return Bits(Log(x));
  if constexpr (F == kSigmoid) return Bits(Sigmoid(x));
  if constexpr (F == kSilu) return Bits(Silu(x));
  if constexpr (F == kSoftplus) return Bits(Softplus(x));
  if constexpr (F == kRsqrt) return Bits(Rsqrt(x));
  if constexpr (F == kDiv) return Bits(Div(x, 3.0f));
  if constexpr (F == kToBF16) return RoundToBF16(x).bits;
  if constexpr (F == kToE4M3) return RoundToE4M3(x).bits;
  if constexpr (F == kToE8M0) return CeilToE8M0(x).bits;
}
// NaN of any payload counts as one: IEEE leaves the payload of x / y to the machine, and NaN is never a result.
template <int F>
SB_HD uint64_t Mixed(uint32_t bits) {
  uint32_t y = Value<F>(bits);
  if (F <= kDiv && (y & 0x7fffffffu) > 0x7f800000u) y = kCanonicalNan;
  uint64_t z = (uint64_t{bits} << 32 | y) * 0x9e3779b97f4a7c15u;
  z ^= z >> 29;
  return z * 0xbf58476d1ce4e5b9u;
}

template <int F>
__global__ void SumKernel(unsigned long long* sum) {
  unsigned long long mine = 0;
  const uint64_t step = uint64_t{gridDim.x} * blockDim.x;
  for (uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < uint64_t{1} << 32; i += step)
    mine += Mixed<F>(static_cast<uint32_t>(i));
  atomicAdd(sum, mine);
}

template <int F>
__attribute__((target("avx2,fma"))) uint64_t HostSum(uint64_t begin, uint64_t end) {
  uint64_t sum = 0;
  for (uint64_t i = begin; i < end; ++i) sum += Mixed<F>(static_cast<uint32_t>(i));
  return sum;
}

template <int F>
int Compare(ThreadPool& pool) {
  unsigned long long *device, got = 0;
  cudaMalloc(&device, 8);
  cudaMemset(device, 0, 8);
  SumKernel<F><<<132 * 8, 256>>>(device);
  if (cudaMemcpy(&got, device, 8, cudaMemcpyDeviceToHost) != cudaSuccess) {
    std::printf("FAILED: %s\n", cudaGetErrorString(cudaGetLastError()));
    return 1;
  }
  cudaFree(device);
  std::atomic<uint64_t> want{0};
  pool.Run(int64_t{1} << 32, 1 << 20, [&](int64_t begin, int64_t end) {
    want += HostSum<F>(static_cast<uint64_t>(begin), static_cast<uint64_t>(end));
  });
  std::printf("%-14s all 2^32 inputs: host %016llx, device %016llx: %s\n", kNames[F],
              static_cast<unsigned long long>(want.load()), got, got == want ? "same bits" : "DIFFERS");
  return got == want ? 0 : 1;
}

template <int... F>
int CompareAll(ThreadPool& pool, std::integer_sequence<int, F...>) {
  return (Compare<F>(pool) + ...);
}

}  // namespace
}  // namespace samebits

int main() {
  samebits::ThreadPool pool(samebits::ThreadPool::HardwareThreads());
  const int failures = samebits::CompareAll(pool, std::make_integer_sequence<int, samebits::kFunctions>());
  std::printf("%-28s %8d checks, %d failures: %s\n", "numbers", samebits::kFunctions, failures,
              failures ? "FAILED" : "same bits");
  return failures ? 1 : 0;
}
