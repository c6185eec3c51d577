#include "device/cuda_kernel.h"
#include "device/cuda_rows.cuh"
#include "ops/elementwise/elementwise.h"

namespace samebits {
namespace {

__global__ void SwigluKernel(SwigluArgs a) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= a.out.rows * a.out.cols) return;
  const int64_t r = i / a.out.cols, c = i % a.out.cols;
  StoreAt(a.out, r, c, SwigluValue(LoadAt(a.gate, r, c), LoadAt(a.up, r, c)));
}

__global__ void AddKernel(AddArgs a) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= a.out.rows * a.out.cols) return;
  const int64_t r = i / a.out.cols, c = i % a.out.cols;
  StoreAt(a.out, r, c, Add(LoadAt(a.a, r, c), LoadAt(a.b, r, c)));
}

const char* RunSwiglu(const SwigluArgs& a, cudaStream_t stream) {
  if (a.out.rows * a.out.cols == 0) return nullptr;
  SwigluKernel<<<BlocksFor(a.out.rows * a.out.cols), 256, 0, stream>>>(a);
  return CudaSentence(cudaGetLastError(), "swiglu");
}
const char* RunAdd(const AddArgs& a, cudaStream_t stream) {
  if (a.out.rows * a.out.cols == 0) return nullptr;
  AddKernel<<<BlocksFor(a.out.rows * a.out.cols), 256, 0, stream>>>(a);
  return CudaSentence(cudaGetLastError(), "add");
}

SB_CUDA_KERNEL(swiglu, "swiglu", "swiglu/cuda", "portable-1", SwigluArgs, RunSwiglu);
SB_CUDA_KERNEL(add, "add", "add/cuda", "portable-1", AddArgs, RunAdd);

}  // namespace
}  // namespace samebits
