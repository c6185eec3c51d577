#include "device/cuda_kernel.h"
#include "device/cuda_rows.cuh"
#include "ops/embed/embed.h"

namespace samebits {
namespace {

__global__ void EmbedKernel(EmbedArgs a) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= a.out.rows * a.out.cols) return;
  const int64_t t = i / a.out.cols, c = i % a.out.cols;
  StoreAt(a.out, t, c, LoadAt(a.table, a.ids[t], c));
}

const char* RunEmbed(const EmbedArgs& a, cudaStream_t stream) {
  if (a.out.rows * a.out.cols == 0) return nullptr;
  EmbedKernel<<<BlocksFor(a.out.rows * a.out.cols), 256, 0, stream>>>(a);
  return CudaSentence(cudaGetLastError(), "embed");
}

SB_CUDA_KERNEL(embed, "embed", "embed/cuda", "portable-1", EmbedArgs, RunEmbed);

}  // namespace
}  // namespace samebits
