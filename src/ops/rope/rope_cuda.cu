#include "device/cuda_kernel.h"
#include "device/cuda_rows.cuh"
#include "ops/rope/rope_cuda.h"

namespace samebits {
namespace {

__global__ void RopeKernel(CudaRopeArgs args) {
  const int64_t j = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (j >= args.x.rows * args.heads * args.half) return;
  const int64_t i = j % args.half, h = j / args.half % args.heads, t = j / args.half / args.heads;
  const int64_t start = h * args.head_stride + args.offset, entry = args.positions[t] * args.half + i;
  const int64_t a = args.layout == RopeLayout::kInterleaved ? start + 2 * i : start + i;
  const int64_t b = args.layout == RopeLayout::kInterleaved ? a + 1 : a + args.half;
  float x, y;
  RopeRotate(LoadAt(args.x, t, a), LoadAt(args.x, t, b), args.cos[entry], args.sin[entry], &x, &y);
  StoreAt(args.x, t, a, x);
  StoreAt(args.x, t, b, y);
}

const char* RunRope(const CudaRopeArgs& args, cudaStream_t stream) {
  const int64_t count = args.x.rows * args.heads * args.half;
  if (count == 0) return nullptr;
  RopeKernel<<<BlocksFor(count), 256, 0, stream>>>(args);
  return CudaSentence(cudaGetLastError(), "rope");
}

SB_CUDA_KERNEL(rope, "rope", "rope/cuda", "portable-1", CudaRopeArgs, RunRope);

}  // namespace
}  // namespace samebits
