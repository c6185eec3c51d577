#include "device/cuda_kernel.h"
#include "device/cuda_rows.cuh"
#include "ops/gemm/gemm.h"
#include "ops/indexer/indexer.h"

namespace samebits {
namespace {

__device__ int64_t SlotOf(const PagedRows& rows, int64_t position) {
  return rows.page_table
             ? int64_t{rows.page_table[position / rows.page_size]} * rows.page_size + position % rows.page_size
             : position;
}

// A thread per (token, key).
__global__ void IndexerKernel(IndexerArgs a, int64_t most) {
  const int64_t s = int64_t{blockIdx.x} * blockDim.x + threadIdx.x, t = blockIdx.y;
  if (s >= most || s >= a.row_lens[t]) return;
  const int64_t key = SlotOf(a.keys, s) * a.keys.row_stride;
  float score = GemmPlanSum(a.heads, [&](float acc, int64_t h) {
    float dot;
    if (a.q.dtype == DType::kF8E4M3) {
      dot = ExactDotE4M3(static_cast<const E4M3*>(a.q.data) + t * a.q.stride + h * a.dim,
                         static_cast<const E4M3*>(a.keys.pool) + key, static_cast<int>(a.dim));
    } else {
      dot = GemmPlanSum(a.dim, [&](float sum, int64_t i) {
        return Fma(LoadAt(a.q, t, h * a.dim + i), Load(a.keys.pool, a.q.dtype, key + i), sum);
      });
    }
    return Fma(IndexerRelu(dot), a.weights.data[t * a.weights.stride + h], acc);
  });
  if (a.key_scales.pool)
    score = Mul(score, static_cast<const float*>(a.key_scales.pool)[SlotOf(a.key_scales, s) * a.key_scales.row_stride]);
  a.scores.data[t * a.scores.stride + s] = IndexerStore(score);
}

const char* RunIndexer(const IndexerArgs& a, cudaStream_t stream) {
  if (a.q.rows == 0 || a.scores.cols == 0) return nullptr;
  if (a.q.rows > 65535) return "indexer on CUDA cores: up to 65535 tokens";
  IndexerKernel<<<dim3(BlocksFor(a.scores.cols, 128), static_cast<unsigned>(a.q.rows)), 128, 0, stream>>>(
      a, a.scores.cols);
  return CudaSentence(cudaGetLastError(), "indexer");
}

SB_CUDA_KERNEL(indexer, "indexer", "indexer/cuda", "portable-1", IndexerArgs, RunIndexer);

}  // namespace
}  // namespace samebits
