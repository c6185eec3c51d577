// Top-k of rows that fit a block's registers: one read, selection without moving a key, ordered store by ballots.

#include "device/cuda_kernel.h"
#include "ops/topk/topk_select.cuh"

namespace samebits::topk_cuda {
namespace {

// Warp w owns the contiguous entries [w * 32 * kItems, ...); in step j lane l holds entry j * 32 + l of them, so a ballot's
// bit order is index order and the chosen entries of a step are stored side by side.
template <int kThreads, int kItems, int kBlocks>
__global__ __launch_bounds__(kThreads, kBlocks) void TopkRows(const Params p) {
  __shared__ SelectShared s;
  __shared__ uint32_t nans;
  const int row = static_cast<int>(blockIdx.x), lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const RowExtent extent = ExtentOf(p, row);
  const int32_t base = warp * 32 * kItems + lane;
  float x[kItems];
#pragma unroll
  for (int j = 0; j < kItems; ++j)
    x[j] = base + j * 32 < extent.len ? __ldg(extent.scores + base + j * 32) : FromBits(kCanonicalNan);
  for (int b = threadIdx.x; b < kBins / 4; b += kThreads) reinterpret_cast<uint4*>(s.hist)[b] = make_uint4(0, 0, 0, 0);
  if (threadIdx.x == 0) nans = 0;
  __syncthreads();
  uint32_t key[kItems];
#pragma unroll
  for (int j = 0; j < kItems; ++j) key[j] = ScoreKey(x[j]);
  if (p.nan_counts) {
    uint32_t mine = 0;
#pragma unroll
    for (int j = 0; j < kItems; ++j) mine += base + j * 32 < extent.len && key[j] == 0;
    mine = __reduce_add_sync(0xffffffffu, mine);
    if (lane == 0 && mine) atomicAdd(&nans, mine);
  }
  const auto index = [&](int j) { return base + j * 32; };
  const Selected selected = SelectScores<kThreads, kItems>(key, static_cast<uint32_t>(p.k), 3, s);
  const uint32_t below = (1u << lane) - 1;
  const uint32_t tie = static_cast<uint32_t>(selected.threshold >> 32);  // the low half of the threshold is zero here
  if (selected.ties != 0) {
    // More scores tie for the last places than there are: those with the lowest index win, the others are dropped. A tie's
    // rank is how many ties stand before it.
    uint32_t equal = 0, all;
#pragma unroll
    for (int j = 0; j < kItems; ++j) equal += key[j] == tie;
    equal = __reduce_add_sync(0xffffffffu, equal);
    uint32_t rank = BlockExclusive<kThreads>(lane == 0 ? equal : 0, s.warp_total, &all);
    rank = __shfl_sync(0xffffffffu, rank, 0);
#pragma unroll
    for (int j = 0; j < kItems; ++j) {
      const uint32_t equals = __ballot_sync(0xffffffffu, key[j] == tie);
      if (key[j] == tie && rank + static_cast<uint32_t>(__popc(equals & below)) >= selected.ties) key[j] = 0;
      rank += static_cast<uint32_t>(__popc(equals));
    }
    __syncthreads();  // warp_total is read by all before it is written again
  }
  uint32_t count = 0;
#pragma unroll
  for (int j = 0; j < kItems; ++j) count += key[j] >= tie;
  count = __reduce_add_sync(0xffffffffu, count);
  if (lane == 0) s.warp_total[warp] = count;
  __syncthreads();
  const uint32_t others = lane < kThreads / 32 ? s.warp_total[lane] : 0;
  const uint32_t total = __reduce_add_sync(0xffffffffu, others);
  uint32_t position = __reduce_add_sync(0xffffffffu, lane < warp ? others : 0);
  const RowOutput out = OutputOf(p, row);
  if (out.slots == nullptr) {
#pragma unroll
    for (int j = 0; j < kItems; ++j) {
      const uint32_t chosen = __ballot_sync(0xffffffffu, key[j] >= tie);
      if (key[j] >= tie) out.indices[position + static_cast<uint32_t>(__popc(chosen & below))] = index(j);
      position += static_cast<uint32_t>(__popc(chosen));
    }
  } else {
#pragma unroll
    for (int j = 0; j < kItems; ++j) {
      const uint32_t chosen = __ballot_sync(0xffffffffu, key[j] >= tie);
      if (key[j] >= tie) out.Put(static_cast<int>(position + __popc(chosen & below)), index(j));
      position += static_cast<uint32_t>(__popc(chosen));
    }
  }
  for (int i = static_cast<int>(total + threadIdx.x); i < p.k; i += kThreads) out.Put(i, -1);
  if (p.nan_counts && threadIdx.x == 0) p.nan_counts[row] = static_cast<int32_t>(nans);
}

template <int kThreads, int kItems, int kBlocks>
const char* Launch(const Params& p, int rows, cudaStream_t stream) {
  TopkRows<kThreads, kItems, kBlocks><<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(p);
  return CudaSentence(cudaGetLastError(), "top-k (rows)");
}

}  // namespace

const char* LaunchRows(const Params& p, int rows, int tuning, cudaStream_t stream) {
  const TopkTuning& t = kTopkTunings[tuning];
  switch (t.threads * 100 + t.items) {
    case 102416:
      return Launch<1024, 16, 1>(p, rows, stream);
    case 12808:
      return Launch<128, 8, 8>(p, rows, stream);
    case 25608:
      return Launch<256, 8, 5>(p, rows, stream);
    case 25612:
      return Launch<256, 12, 5>(p, rows, stream);
    case 25616:
      return Launch<256, 16, 6>(p, rows, stream);
    case 51208:
      return Launch<512, 8, 3>(p, rows, stream);
    case 51216:
      return Launch<512, 16, 3>(p, rows, stream);
    case 102408:
      return Launch<1024, 8, 1>(p, rows, stream);
    default:
      return "top-k: the tuning table names a rows kernel that was not built";
  }
}

}  // namespace samebits::topk_cuda
