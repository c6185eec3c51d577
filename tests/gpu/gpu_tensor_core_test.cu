// What the tensor cores may be trusted with (doc/numerics.md, GPU checks 4 and 5), through mma.sync, which every supported
// architecture has:
//   (4) exact e4m3 dot products of 128 from two fp16 slices per operand, against 64-bit integers;
//   (5) is a bf16 k16 product of one output element independent of its row, its column and what stands in the others?

#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "numerics/random_inputs.h"
#include "ops/gemm/gemm.h"

namespace samebits {
namespace {

// mma.sync.aligned.m16n8k16: D[16,8] = A[16,16] * B[16,8] + C, fp32 accumulators. Lane l, g = l / 4, c = l % 4 holds
//   A: (g, 2c..2c+1), (g+8, 2c..), (g, 2c+8..), (g+8, 2c+8..)   B: (2c..2c+1, g), (2c+8.., g)   D: (g, 2c..2c+1), (g+8, 2c..)
template <bool kHalf>
__device__ void Mma16816(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  if constexpr (kHalf) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  } else {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
}

// One warp: D[16, 8] = A[16, k] * B[8, k]^T with 16-bit elements. D is [16, 8].
template <bool kHalf>
__device__ void WarpProduct(const uint16_t* a, const uint16_t* b, int k, float (&d)[4]) {
  const int lane = threadIdx.x & 31, g = lane / 4, c = 2 * (lane % 4);
  d[0] = d[1] = d[2] = d[3] = 0.0f;
  const auto pair = [](const uint16_t* p) { return static_cast<uint32_t>(p[0]) | static_cast<uint32_t>(p[1]) << 16; };
  for (int i = 0; i < k; i += 16) {
    const uint32_t fa[4] = {pair(a + g * k + i + c), pair(a + (g + 8) * k + i + c), pair(a + g * k + i + c + 8),
                            pair(a + (g + 8) * k + i + c + 8)};
    const uint32_t fb[2] = {pair(b + g * k + i + c), pair(b + g * k + i + c + 8)};
    Mma16816<kHalf>(d, fa, fb);
  }
}

// fp16 bits of an integer below 2048 in magnitude, exact.
__host__ __device__ uint16_t HalfOf(int v) {
  const uint32_t u = Bits(static_cast<float>(v));
  if (v == 0) return 0;
  return static_cast<uint16_t>((u >> 16 & 0x8000u) | ((u & 0x7fffffffu) - (112u << 23)) >> 13);
}

constexpr int kBlockK = 128;

// Slices of e4m3 * 2^9: an integer v below 2^18 with 4 significant bits is hi * 512 + lo, both exact in fp16.
// Products: |hi| <= 448, |lo| < 512, so 64 of them stay below 2^24 and every partial sum is an exact fp32 integer.
__global__ void ExactBlocks(const uint8_t* a, const uint8_t* b, float* out) {
  __shared__ uint16_t sa[2][16][64], sb[2][8][64];
  a += blockIdx.x * 16 * kBlockK, b += blockIdx.x * 8 * kBlockK;
  int64_t sum[4] = {};
  const auto slice = [](uint8_t x, uint16_t* hi, uint16_t* lo) {
    const int v = static_cast<int>(ToF32(E4M3{x}) * 512.0f), m = v < 0 ? -v : v, h = m / 512, l = m % 512;
    *hi = HalfOf(v < 0 ? -h : h), *lo = HalfOf(v < 0 ? -l : l);
  };
  for (int half = 0; half < 2; ++half) {
    __syncwarp();
    for (int i = threadIdx.x; i < 16 * 64; i += 32)
      slice(a[i / 64 * kBlockK + half * 64 + i % 64], &sa[0][i / 64][i % 64], &sa[1][i / 64][i % 64]);
    for (int i = threadIdx.x; i < 8 * 64; i += 32)
      slice(b[i / 64 * kBlockK + half * 64 + i % 64], &sb[0][i / 64][i % 64], &sb[1][i / 64][i % 64]);
    __syncwarp();
    for (int x = 0; x < 2; ++x)
      for (int y = 0; y < 2; ++y) {
        float d[4];
        WarpProduct<true>(&sa[x][0][0], &sb[y][0][0], 64, d);
        const int shift = 9 * (2 - x - y);
        for (int i = 0; i < 4; ++i) sum[i] += static_cast<int64_t>(d[i]) * (int64_t{1} << shift);
      }
  }
  const int lane = threadIdx.x, g = lane / 4, c = 2 * (lane % 4);
  float* d = out + blockIdx.x * 128;
  for (int i = 0; i < 4; ++i)
    d[(g + i / 2 * 8) * 8 + c + i % 2] = static_cast<float>(static_cast<double>(sum[i])) * 0x1p-18f;
}

__global__ void Bf16Blocks(const uint16_t* a, const uint16_t* b, int k, float* out) {
  float d[4];
  WarpProduct<false>(a + int64_t{blockIdx.x} * 16 * k, b + int64_t{blockIdx.x} * 8 * k, k, d);
  const int lane = threadIdx.x, g = lane / 4, c = 2 * (lane % 4);
  for (int i = 0; i < 4; ++i) out[int64_t{blockIdx.x} * 128 + (g + i / 2 * 8) * 8 + c + i % 2] = d[i];
}

template <class T>
T* Copy(const std::vector<T>& v) {
  T* p = nullptr;
  cudaMalloc(&p, v.size() * sizeof(T));
  cudaMemcpy(p, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice);
  return p;
}
std::vector<float> Fetch(float* p, size_t n) {
  std::vector<float> v(n);
  cudaMemcpy(v.data(), p, n * 4, cudaMemcpyDeviceToHost);
  return v;
}

int64_t CheckExactBlocks() {
  const int tiles = 4096;
  RandomInputs random(7);
  int64_t differ = 0;
  for (const int family : {0, 1, 2}) {  // any finite value; all at the largest, signs at random; the largest, one sign
    std::vector<uint8_t> a(static_cast<size_t>(tiles) * 16 * kBlockK), b(static_cast<size_t>(tiles) * 8 * kBlockK);
    const auto draw = [&] {
      if (family == 2) return uint8_t{0x7e};
      const uint8_t sign = static_cast<uint8_t>(random.Below(2) << 7);
      return static_cast<uint8_t>(sign | (family == 1 ? 0x7e : random.Below(0x7f)));
    };
    for (uint8_t& x : a) x = draw();
    for (uint8_t& x : b) x = draw();
    float* out = nullptr;
    cudaMalloc(&out, static_cast<size_t>(tiles) * 512);
    ExactBlocks<<<tiles, 32>>>(Copy(a), Copy(b), out);
    const std::vector<float> got = Fetch(out, static_cast<size_t>(tiles) * 128);
    int64_t here = 0;
    for (int64_t t = 0; t < tiles; ++t)
      for (int m = 0; m < 16; ++m)
        for (int n = 0; n < 8; ++n) {
          const float want = ExactDotE4M3(reinterpret_cast<const E4M3*>(a.data()) + (t * 16 + m) * kBlockK,
                                          reinterpret_cast<const E4M3*>(b.data()) + (t * 8 + n) * kBlockK, kBlockK);
          here += Bits(got[static_cast<size_t>(t * 128 + m * 8 + n)]) != Bits(want);
        }
    const char* names[] = {"any finite value", "largest, mixed signs", "largest, one sign"};
    std::printf("exact fp8 block by fp16 slices (mma.sync), %s: %lld of %d differ from int64\n", names[family],
                static_cast<long long>(here), tiles * 128);
    differ += here;
  }
  return differ;
}

// The same row of A and column of B at every place of the tile, among random neighbours: one result?
int64_t CheckPlaces() {
  RandomInputs random(11);
  int64_t groups = 0, moved = 0, chained = 0, outside = 0;
  for (const int k : {16, 128, 1024})
    for (const int family : {0, 1, 2, 3}) {
      const int tiles = k == 16 ? 2048 : 256;
      std::vector<uint16_t> a(static_cast<size_t>(tiles) * 16 * static_cast<size_t>(k)),
          b(static_cast<size_t>(tiles) * 8 * static_cast<size_t>(k));
      const auto draw = [&] {
        float x = random.Normal();
        if (family == 1)
          x *= FromBits(static_cast<uint32_t>(127 + static_cast<int>(random.Below(40)) - 20) << 23);  // mixed exponents
        if (family == 2) x = random.Below(2) ? 1.0f : -1.0f + random.Normal() * 0x1p-7f;              // cancellation
        if (family == 3) x *= 0x1p-64f;  // products are subnormal or vanish
        return RoundToBF16(x).bits;
      };
      std::vector<uint16_t> row(static_cast<size_t>(k)), col(static_cast<size_t>(k));
      for (int t = 0; t < tiles; ++t) {
        if (t % 128 == 0) {
          for (uint16_t& x : row) x = draw();
          for (uint16_t& x : col) x = draw();
        }
        for (int i = 0; i < 16 * k; ++i)
          a[static_cast<size_t>(t) * 16 * static_cast<size_t>(k) + static_cast<size_t>(i)] = draw();
        for (int i = 0; i < 8 * k; ++i)
          b[static_cast<size_t>(t) * 8 * static_cast<size_t>(k) + static_cast<size_t>(i)] = draw();
        const int m = t % 128 / 8, n = t % 8;  // every one of the 128 places once
        std::memcpy(&a[(static_cast<size_t>(t) * 16 + static_cast<size_t>(m)) * static_cast<size_t>(k)], row.data(),
                    row.size() * 2);
        std::memcpy(&b[(static_cast<size_t>(t) * 8 + static_cast<size_t>(n)) * static_cast<size_t>(k)], col.data(),
                    col.size() * 2);
      }
      float* out = nullptr;
      cudaMalloc(&out, static_cast<size_t>(tiles) * 512);
      Bf16Blocks<<<tiles, 32>>>(Copy(a), Copy(b), k, out);
      const std::vector<float> got = Fetch(out, static_cast<size_t>(tiles) * 128);
      for (int t = 0; t < tiles; ++t) {
        const auto place = [&](int i) {
          return got[static_cast<size_t>(i) * 128 + static_cast<size_t>(i % 128 / 8 * 8 + i % 8)];
        };
        ++groups;
        moved += Bits(place(t)) != Bits(place(t / 128 * 128));
        float chain = 0.0f;
        if (t % 128 == 0) {
          for (int i = 0; i < k; ++i)
            chain = Fma(ToF32(BF16{a[static_cast<size_t>(t) * 16 * static_cast<size_t>(k) + static_cast<size_t>(i)]}),
                        ToF32(BF16{b[static_cast<size_t>(t) * 8 * static_cast<size_t>(k) + static_cast<size_t>(i)]}),
                        chain);
          ++outside;
          chained += Bits(chain) == Bits(place(t));
        }
      }
    }
  std::printf(
      "bf16 mma.sync m16n8k16, K 16, 128, 1024, four families: %lld of %lld placements moved a bit; equal to the fma "
      "chain in %lld of %lld\n",
      static_cast<long long>(moved), static_cast<long long>(groups), static_cast<long long>(chained),
      static_cast<long long>(outside));
  return moved;
}

}  // namespace
}  // namespace samebits

int main() {
  const int64_t failures = samebits::CheckExactBlocks() + samebits::CheckPlaces();
  const cudaError_t error = cudaDeviceSynchronize();
  if (error != cudaSuccess) std::printf("FAILED: %s\n", cudaGetErrorString(error));
  const bool ok = failures == 0 && error == cudaSuccess;
  std::printf("%-28s %8d checks, %lld failures: %s\n", "tensor cores", 4, static_cast<long long>(failures),
              ok ? "same bits" : "FAILED");
  return ok ? 0 : 1;
}
