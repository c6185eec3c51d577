// GEMM on CUDA cores by the contract's own walk: a block makes a 64 x 64 tile of outputs, each thread 4 x 4 of them, K in
// steps of 32 through shared memory. An output's chain is GemmPlanSum's: fma ascending, a block's end every 128, a
// segment's every 1024. Slow beside tensor cores; it is the device's proof of portable-1.

#include "device/cuda_kernel.h"
#include "device/cuda_rows.cuh"
#include "ops/gemm/gemm_cuda.h"

namespace samebits {
namespace {

constexpr int kTile = 64, kStep = 32, kPer = 4;

__global__ __launch_bounds__(256) void GemmKernel(CudaGemmArgs g) {
  __shared__ float a[kStep][kTile + 1], b[kStep][kTile + 1];
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  const int64_t m0 = int64_t{blockIdx.y} * kTile, n0 = int64_t{blockIdx.x} * kTile, k_size = g.a.cols;
  float block[kPer][kPer] = {}, segment[kPer][kPer] = {}, total[kPer][kPer] = {};
  for (int64_t k0 = 0; k0 < k_size; k0 += kStep) {
    for (int i = threadIdx.x; i < kTile * kStep; i += 256) {
      const int k = i % kStep, r = i / kStep;
      const bool in = k0 + k < k_size;
      a[k][r] = in && m0 + r < g.a.rows ? LoadAt(g.a, m0 + r, k0 + k) : 0.0f;
      b[k][r] = in && n0 + r < g.b.rows ? LoadAt(g.b, n0 + r, k0 + k) : 0.0f;
    }
    __syncthreads();
    const int steps = k_size - k0 < kStep ? static_cast<int>(k_size - k0) : kStep;  // absent elements take no step
    for (int k = 0; k < steps; ++k)
#pragma unroll
      for (int i = 0; i < kPer; ++i)
#pragma unroll
        for (int j = 0; j < kPer; ++j) block[i][j] = Fma(a[k][ty + 16 * i], b[k][tx + 16 * j], block[i][j]);
    __syncthreads();
    const int64_t next = k0 + kStep;
    const bool block_ends = next >= k_size || next % kGemmBlock == 0,
               segment_ends = next >= k_size || next % kGemmSegment == 0;
#pragma unroll
    for (int i = 0; i < kPer; ++i)
#pragma unroll
      for (int j = 0; j < kPer; ++j) {
        if (block_ends) segment[i][j] = Add(segment[i][j], block[i][j]), block[i][j] = 0.0f;
        if (segment_ends) total[i][j] = Add(total[i][j], segment[i][j]), segment[i][j] = 0.0f;
      }
  }
#pragma unroll
  for (int i = 0; i < kPer; ++i)
#pragma unroll
    for (int j = 0; j < kPer; ++j) {
      const int64_t m = m0 + ty + 16 * i, n = n0 + tx + 16 * j;
      if (m >= g.a.rows || n >= g.b.rows) continue;
      StoreAt(g.out, m, n, g.bias ? Add(total[i][j], g.bias[n]) : total[i][j]);
    }
}

// fp8: a thread per output; the exact dot product of a 128-block in 64-bit integers.
__global__ void GemmFp8Kernel(CudaGemmArgs g) {
  const int64_t n = int64_t{blockIdx.x} * blockDim.x + threadIdx.x, m = blockIdx.y;
  if (n >= g.b.rows) return;
  const E4M3* a = static_cast<const E4M3*>(g.a.data) + m * g.a.stride;
  const E4M3* b = static_cast<const E4M3*>(g.b.data) + n * g.b.stride;
  const int64_t k_size = g.a.cols, blocks = (k_size + kScaleBlock - 1) / kScaleBlock;
  const float* b_scale = g.b_scale + n / kScaleBlock * blocks;
  float total = 0.0f, segment = 0.0f;
  for (int64_t k = 0; k < k_size; k += kScaleBlock) {
    const int64_t size = k_size - k < kScaleBlock ? k_size - k : kScaleBlock, i = k / kScaleBlock;
    const float dot = ExactDotE4M3(a + k, b + k, static_cast<int>(size));
    segment = Fma(dot, Mul(g.a_scale.data[m * g.a_scale.stride + i], b_scale[i]), segment);
    if ((k + kScaleBlock) % kGemmSegment == 0 || k + kScaleBlock >= k_size) total = Add(total, segment), segment = 0.0f;
  }
  StoreAt(g.out, m, n, g.bias ? Add(total, g.bias[n]) : total);
}

const char* RunGemm(const CudaGemmArgs& g, cudaStream_t stream) {
  bool allowed = false;
  for (const GemmOutput& row : kGemmOutputs)
    allowed |= row.a == g.a.dtype && row.b == g.b.dtype && row.out == g.out.dtype;
  if (!allowed) return "gemm on the GPU: this combination of types is not in the contract's table";
  if (g.a.rows == 0 || g.b.rows == 0) return nullptr;
  if (g.a.dtype == DType::kF8E4M3) {
    if (g.a.rows > 65535) return "fp8 gemm on CUDA cores: up to 65535 rows";
    GemmFp8Kernel<<<dim3(BlocksFor(g.b.rows, 128), static_cast<unsigned>(g.a.rows)), 128, 0, stream>>>(g);
  } else {
    if (g.a.rows > 65535 * kTile) return "gemm on CUDA cores: too many rows";
    GemmKernel<<<dim3(BlocksFor(g.b.rows, kTile), BlocksFor(g.a.rows, kTile)), 256, 0, stream>>>(g);
  }
  return CudaSentence(cudaGetLastError(), "gemm");
}

SB_CUDA_KERNEL(gemm, "gemm", "gemm/cuda", "portable-1", CudaGemmArgs, RunGemm);

}  // namespace
}  // namespace samebits
