// Top-k on the GPU: picks the kernel, orders by rank where asked, and the page transform on its own.

#include "device/cuda_kernel.h"
#include "ops/topk/topk_select.cuh"

namespace samebits {
namespace {

// Reorders each row's ascending indices best first: a bitonic sort of the contract's keys in shared memory.
__global__ void SortByRank(topk_cuda::Params p, int size) {
  extern __shared__ uint64_t sort_keys[];
  const int row = static_cast<int>(blockIdx.x);
  const topk_cuda::RowExtent extent = topk_cuda::ExtentOf(p, row);
  int32_t* const indices = p.indices + row * p.indices_stride;
  for (int i = static_cast<int>(threadIdx.x); i < size; i += static_cast<int>(blockDim.x)) {
    const int32_t index = i < p.k ? indices[i] : -1;
    sort_keys[i] = index < 0 ? 0 : TopkKey(extent.scores[index], index);
  }
  for (int width = 2; width <= size; width *= 2)
    for (int step = width / 2; step > 0; step /= 2) {
      __syncthreads();
      for (int i = static_cast<int>(threadIdx.x); i < size; i += static_cast<int>(blockDim.x)) {
        const int other = i ^ step;
        if (other <= i) continue;
        const uint64_t a = sort_keys[i], b = sort_keys[other];
        if ((a < b) == ((i & width) == 0)) sort_keys[i] = b, sort_keys[other] = a;
      }
    }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < p.k; i += static_cast<int>(blockDim.x))
    indices[i] = sort_keys[i] == 0 ? -1 : TopkKeyIndex(sort_keys[i]);
}

__global__ void TransformPages(PageTransformArgs a) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= a.indices.rows * a.indices.cols) return;
  const int64_t r = i / a.indices.cols, j = i % a.indices.cols;
  const int32_t* table = a.page_table.data + (a.request ? a.request[r] : r) * a.page_table.stride;
  const int32_t index = a.indices.data[r * a.indices.stride + j];
  a.slots.data[r * a.slots.stride + j] =
      index < 0 ? -1 : table[index / a.page_size] * a.page_size + index % a.page_size;
}

const char* RunTopk(const CudaTopkArgs& a, cudaStream_t stream) {
  const int64_t rows = a.topk.scores.rows, n = a.topk.scores.cols, k = a.topk.indices.cols;
  if (rows == 0 || k == 0) return nullptr;
  if (k > 4096) return "top-k on the GPU: k up to 4096 is supported";
  if (n >= (int64_t{1} << 31) || rows >= (int64_t{1} << 27)) return "top-k on the GPU: too many rows or columns";
  const bool by_rank = a.topk.output == TopkOutput::kByRank;
  if (by_rank && (!a.topk.indices.data || a.slots))
    return "top-k on the GPU: output by rank needs indices and takes no page table";
  topk_cuda::Params p{a.topk.scores.data,
                      a.topk.scores.stride,
                      static_cast<int32_t>(n),
                      static_cast<int32_t>(k),
                      a.topk.row_starts,
                      a.topk.row_lens,
                      a.topk.indices.data,
                      a.topk.indices.stride,
                      a.topk.nan_counts,
                      a.slots,
                      a.slots_stride,
                      a.page_table,
                      a.page_table_stride,
                      a.request,
                      a.page_size};
  int device = 0, major = 0, sm_count = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  cudaDeviceGetAttribute(&sm_count, cudaDevAttrMultiProcessorCount, device);
  const bool clusters = major >= 9 && major < 12;
  int tuning = a.tuning;
  if (tuning < 0) {
    tuning = TopkPick(rows, n, k, sm_count, clusters);
  } else if (tuning >= kTopkTuningCount || !TopkFits(kTopkTunings[tuning], n, k, clusters)) {
    return "top-k on the GPU: this tuning entry does not fit the shape";
  }
  const char* error = kTopkTunings[tuning].kind == TopkKind::kRows
                          ? topk_cuda::LaunchRows(p, static_cast<int>(rows), tuning, stream)
                          : topk_cuda::LaunchStream(p, static_cast<int>(rows), tuning, stream);
  if (error || !by_rank) return error;
  int size = 32;
  while (size < k) size *= 2;
  SortByRank<<<static_cast<unsigned>(rows), 512, static_cast<size_t>(size) * 8, stream>>>(p, size);
  return CudaSentence(cudaGetLastError(), "top-k (rank)");
}

const char* RunPageTransform(const PageTransformArgs& a, cudaStream_t stream) {
  const int64_t count = a.indices.rows * a.indices.cols;
  if (count == 0) return nullptr;
  TransformPages<<<static_cast<unsigned>((count + 255) / 256), 256, 0, stream>>>(a);
  return CudaSentence(cudaGetLastError(), "page transform");
}

SB_CUDA_KERNEL(topk, "topk", "topk/select", "portable-1", CudaTopkArgs, RunTopk);
SB_CUDA_KERNEL(pages, "page_transform", "page_transform/cuda", "portable-1", PageTransformArgs, RunPageTransform);

}  // namespace
}  // namespace samebits
