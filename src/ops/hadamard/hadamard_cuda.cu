#include "device/cuda_kernel.h"
#include "device/cuda_rows.cuh"
#include "ops/hadamard/hadamard.h"

namespace samebits {
namespace {

// One block per group; the butterflies of HadamardButterflies, one stage at a time over shared memory.
__global__ void HadamardKernel(HadamardArgs a) {
  __shared__ float x[1024];
  const int64_t groups = a.x.cols / a.n, r = blockIdx.x / groups, g = blockIdx.x % groups * a.n;
  const int n = static_cast<int>(a.n), step = static_cast<int>(blockDim.x);
  for (int i = threadIdx.x; i < n; i += step) x[i] = LoadAt(a.x, r, g + i);
  for (int stride = 1; stride < n; stride *= 2) {
    __syncthreads();
    for (int p = threadIdx.x; p < n / 2; p += step) {
      const int j = p / stride * 2 * stride + p % stride;
      float pair[2] = {x[j], x[j + stride]};
      HadamardButterflies(pair, 2);
      x[j] = pair[0], x[j + stride] = pair[1];
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += step) StoreAt(a.out, r, g + i, Mul(x[i], HadamardScale(n)));
}

const char* RunHadamard(const HadamardArgs& a, cudaStream_t stream) {
  const int64_t blocks = a.x.rows * (a.x.cols / a.n);
  if (blocks == 0) return nullptr;
  HadamardKernel<<<static_cast<unsigned>(blocks), 128, 0, stream>>>(a);
  return CudaSentence(cudaGetLastError(), "hadamard");
}

SB_CUDA_KERNEL(hadamard, "hadamard", "hadamard/cuda", "portable-1", HadamardArgs, RunHadamard);

}  // namespace
}  // namespace samebits
