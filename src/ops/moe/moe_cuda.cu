#include "device/cuda_kernel.h"
#include "device/cuda_rows.cuh"
#include "ops/moe/moe.h"

namespace samebits {
namespace {

__global__ void CombineKernel(CombineArgs a) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= a.out.rows * a.out.cols) return;
  const int64_t t = i / a.out.cols, c = i % a.out.cols, k = a.weights.cols;
  float y = 0.0f;
  for (int64_t j = 0; j < k; ++j)
    y = Fma(a.weights.data[t * a.weights.stride + j], LoadAt(a.expert_out, a.row[t * k + j], c), y);
  if (a.shared.data) y = Add(y, LoadAt(a.shared, t, c));
  StoreAt(a.out, t, c, y);
}

__global__ void GatherKernel(GatherRowsArgs a, int64_t bytes) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= a.out.rows * a.out.cols * bytes) return;
  const int64_t row_bytes = a.out.cols * bytes, r = i / row_bytes, b = i % row_bytes;
  static_cast<uint8_t*>(a.out.data)[r * a.out.stride * bytes + b] =
      static_cast<const uint8_t*>(a.x.data)[a.token[r] * a.x.stride * bytes + b];
}

const char* RunCombine(const CombineArgs& a, cudaStream_t stream) {
  if (a.out.rows * a.out.cols == 0) return nullptr;
  CombineKernel<<<BlocksFor(a.out.rows * a.out.cols), 256, 0, stream>>>(a);
  return CudaSentence(cudaGetLastError(), "combine");
}
const char* RunGather(const GatherRowsArgs& a, cudaStream_t stream) {
  const int64_t bytes = a.x.dtype == DType::kF32      ? 4
                        : a.x.dtype == DType::kBF16   ? 2
                        : a.x.dtype == DType::kF8E4M3 ? 1
                                                      : 0;
  if (bytes == 0) return "gather rows on the GPU: F32, BF16 and F8_E4M3 are supported";
  if (a.out.rows * a.out.cols == 0) return nullptr;
  GatherKernel<<<BlocksFor(a.out.rows * a.out.cols * bytes), 256, 0, stream>>>(a, bytes);
  return CudaSentence(cudaGetLastError(), "gather rows");
}

SB_CUDA_KERNEL(combine, "combine", "combine/cuda", "portable-1", CombineArgs, RunCombine);
SB_CUDA_KERNEL(gather_rows, "gather_rows", "gather_rows/cuda", "portable-1", GatherRowsArgs, RunGather);

}  // namespace
}  // namespace samebits
