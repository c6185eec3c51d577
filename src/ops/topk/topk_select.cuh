// Radix selection over keys that a block holds in registers, and what both top-k kernels share.
//
// The threshold is a TopkKey prefix: digits of the score's key (11, 11, 10 bits), then, only where more scores tie than
// places are left, the first of them in index order. Keys are unique: "key >= threshold" is exactly the contract's set.
#pragma once

#include <cuda_runtime.h>

#include "numerics/mathfn.h"
#include "ops/topk/topk_cuda.h"

namespace samebits::topk_cuda {

inline constexpr int kBins = 2048;
inline constexpr uint64_t kAllNumbers = uint64_t{1} << 32;  // threshold that every key but NaN's reaches

struct Params {
  const float* scores;
  int64_t stride;
  int32_t n, k;
  const int32_t *row_starts, *row_lens;
  int32_t* indices;
  int64_t indices_stride;
  int32_t* nan_counts;
  int32_t* slots;
  int64_t slots_stride;
  const int32_t* page_table;
  int64_t page_table_stride;
  const int32_t* request;
  int32_t page_size;
};

struct SelectShared {
  alignas(16) uint32_t hist[kBins];  // all zero between selections
  uint32_t warp_total[32];
  uint32_t digit, need, population, total;
};

__device__ __forceinline__ uint32_t ScoreKey(float x) { return static_cast<uint32_t>(TopkKey(x, 0) >> 32); }
__device__ __forceinline__ uint64_t FullKey(uint32_t key, uint32_t index) {
  return uint64_t{key} << 32 | static_cast<uint32_t>(TopkKey(0.0f, static_cast<int32_t>(index)));
}

struct RowExtent {
  const float* scores;
  int32_t len;
};
__device__ __forceinline__ RowExtent ExtentOf(const Params& p, int row) {
  const int32_t start = p.row_starts ? p.row_starts[row] : 0;
  int32_t len = p.row_lens ? p.row_lens[row] : p.n - start;
  return {p.scores + row * p.stride + (len > 0 ? start : 0), len > 0 ? len : 0};
}

struct RowOutput {
  int32_t *indices, *slots;
  const int32_t* pages;
  int32_t page_size;
  __device__ __forceinline__ void Put(int position, int32_t index) const {
    if (indices) indices[position] = index;
    if (slots) slots[position] = index < 0 ? -1 : pages[index / page_size] * page_size + index % page_size;
  }
};
__device__ __forceinline__ RowOutput OutputOf(const Params& p, int row) {
  return {p.indices ? p.indices + row * p.indices_stride : nullptr, p.slots ? p.slots + row * p.slots_stride : nullptr,
          p.slots ? p.page_table + (p.request ? p.request[row] : row) * p.page_table_stride : nullptr, p.page_size};
}

__device__ __forceinline__ uint32_t WarpInclusive(uint32_t v) {
  const int lane = threadIdx.x & 31;
#pragma unroll
  for (int d = 1; d < 32; d *= 2) {
    const uint32_t up = __shfl_up_sync(0xffffffffu, v, d);
    if (lane >= d) v += up;
  }
  return v;
}

// Exclusive prefix over the block's threads, and the total. warp_total is free again after the next barrier.
template <int kThreads>
__device__ __forceinline__ uint32_t BlockExclusive(uint32_t v, uint32_t* warp_total, uint32_t* total) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const uint32_t inclusive = WarpInclusive(v);
  if (lane == 31) warp_total[warp] = inclusive;
  __syncthreads();
  const uint32_t other = lane < kThreads / 32 ? warp_total[lane] : 0;
  *total = __reduce_add_sync(0xffffffffu, other);
  return __reduce_add_sync(0xffffffffu, lane < warp ? other : 0) + inclusive - v;
}

// After the histogram is complete and a barrier: finds the digit that holds the need-th largest, zeroes the histogram.
// bins: this thread's bins, ascending, from 2048 - (thread + 1) * kPer. Ends with a barrier.
template <int kThreads>
__device__ __forceinline__ void FindDigit(const uint32_t (&bins)[kBins / kThreads], uint32_t need, SelectShared& s) {
  constexpr int kPer = kBins / kThreads;
  const int first = kBins - (static_cast<int>(threadIdx.x) + 1) * kPer;
  uint32_t sum = 0, total;
#pragma unroll
  for (int b = 0; b < kPer; ++b) sum += bins[b];
  const uint32_t above = BlockExclusive<kThreads>(sum, s.warp_total, &total);
  if (above < need && need <= above + sum) {
    uint32_t c = above;
    bool found = false;
#pragma unroll
    for (int b = kPer - 1; b >= 0; --b) {
      if (!found && need <= c + bins[b]) {
        s.digit = static_cast<uint32_t>(first + b), s.need = need - c, s.population = bins[b];
        found = true;
      }
      c += bins[b];
    }
  }
  if (threadIdx.x == 0) s.total = total;
  __syncthreads();
}

template <int kThreads>
__device__ __forceinline__ void TakeBins(uint32_t (&bins)[kBins / kThreads], SelectShared& s) {
  constexpr int kPer = kBins / kThreads;
  uint32_t* mine = s.hist + kBins - (static_cast<int>(threadIdx.x) + 1) * kPer;
#pragma unroll
  for (int b = 0; b < kPer; ++b) bins[b] = mine[b];
#pragma unroll
  for (int b = 0; b < kPer; ++b) mine[b] = 0;
}

// Keys >= threshold are chosen, of those with threshold's score only the first `ties` in index order (0: all of them).
struct Selected {
  uint64_t threshold;
  uint32_t ties;
};

// The `need` largest of the block's keys by score; key 0 (NaN, absent) does not count. If there are no more than `need`,
// kAllNumbers. `passes` < 3 stops early with a lower bound of the threshold.
template <int kThreads, int kItems>
__device__ __forceinline__ Selected SelectScores(const uint32_t (&key)[kItems], uint32_t need, int passes,
                                                 SelectShared& s) {
  uint32_t bins[kBins / kThreads];
#pragma unroll
  for (int j = 0; j < kItems; ++j)
    if (key[j] != 0) atomicAdd(&s.hist[key[j] >> 21], 1u);
  __syncthreads();
  TakeBins<kThreads>(bins, s);
  FindDigit<kThreads>(bins, need, s);
  if (s.total <= need) return {kAllNumbers, 0};
  uint32_t high = s.digit;
  need = s.need;
  if (need == s.population || passes == 1) return {uint64_t{high} << 53, 0};

#pragma unroll
  for (int j = 0; j < kItems; ++j)
    if (key[j] >> 21 == high) atomicAdd(&s.hist[key[j] >> 10 & 2047], 1u);
  __syncthreads();
  TakeBins<kThreads>(bins, s);
  FindDigit<kThreads>(bins, need, s);
  high = high << 11 | s.digit;
  need = s.need;
  if (need == s.population || passes == 2) return {uint64_t{high} << 42, 0};

#pragma unroll
  for (int j = 0; j < kItems; ++j)
    if (key[j] >> 10 == high) atomicAdd(&s.hist[key[j] & 1023], 1u);
  __syncthreads();
  TakeBins<kThreads>(bins, s);
  FindDigit<kThreads>(bins, need, s);
  high = high << 10 | s.digit;
  return {uint64_t{high} << 32, s.need == s.population ? 0 : s.need};
}

// SelectScores for keys that are all 0 or >= base, where base is close below the threshold: digits of the distance from base
// spread better than those of the key, and one pass is mostly enough. Falls back where the threshold is far above base.
template <int kThreads, int kItems>
__device__ __forceinline__ Selected SelectAbove(const uint32_t (&key)[kItems], uint32_t base, uint32_t need,
                                                SelectShared& s) {
  constexpr int kShift = 13,
                kFine = 2;  // 2^13 of the 2^23 keys of a binade to a bin: the first 2047 bins are two binades
  uint32_t bins[kBins / kThreads];
  const uint32_t wanted = need;
#pragma unroll
  for (int j = 0; j < kItems; ++j) {
    if (key[j] == 0) continue;
    const uint32_t far = (key[j] - base) >> kShift;
    atomicAdd(&s.hist[far < kBins ? far : kBins - 1], 1u);
  }
  __syncthreads();
  TakeBins<kThreads>(bins, s);
  FindDigit<kThreads>(bins, need, s);
  if (s.total <= need) return {kAllNumbers, 0};
  const uint32_t first = s.digit;
  if (first == kBins - 1) return SelectScores<kThreads, kItems>(key, wanted, 3, s);
  need = s.need;
  if (need == s.population) return {uint64_t{base + (first << kShift)} << 32, 0};

#pragma unroll
  for (int j = 0; j < kItems; ++j)
    if (key[j] != 0 && (key[j] - base) >> kShift == first)
      atomicAdd(&s.hist[(key[j] - base) >> kFine & (kBins - 1)], 1u);
  __syncthreads();
  TakeBins<kThreads>(bins, s);
  FindDigit<kThreads>(bins, need, s);
  const uint32_t second = first << (kShift - kFine) | s.digit;
  need = s.need;
  if (need == s.population) return {uint64_t{base + (second << kFine)} << 32, 0};

#pragma unroll
  for (int j = 0; j < kItems; ++j)
    if (key[j] != 0 && (key[j] - base) >> kFine == second)
      atomicAdd(&s.hist[(key[j] - base) & ((1u << kFine) - 1)], 1u);
  __syncthreads();
  TakeBins<kThreads>(bins, s);
  FindDigit<kThreads>(bins, need, s);
  return {uint64_t{base + (second << kFine | s.digit)} << 32, s.need == s.population ? 0 : s.need};
}

// Narrows the ties of SelectScores by digits of ~index, the low half of the contract's key; index(j): that of key[j], all
// below 2^index_bits. For keys that lie in no index order.
template <int kThreads, int kItems, class IndexOf>
__device__ __forceinline__ uint64_t SelectTies(const uint32_t (&key)[kItems], const IndexOf& index, int index_bits,
                                               const Selected& scores, SelectShared& s) {
  uint32_t bins[kBins / kThreads], need = scores.ties, low = 0xffffffffu >> index_bits;
  const uint32_t tie = static_cast<uint32_t>(scores.threshold >> 32);
  int left = index_bits;
#pragma unroll 1
  while (true) {
    const int bits = left < 11 ? left : 11, shift = left - bits;
#pragma unroll
    for (int j = 0; j < kItems; ++j) {
      if (key[j] != tie) continue;
      const uint32_t inverted = static_cast<uint32_t>(FullKey(0, static_cast<uint32_t>(index(j))));
      if (inverted >> left == low) atomicAdd(&s.hist[inverted >> shift & ((1u << bits) - 1)], 1u);
    }
    __syncthreads();
    TakeBins<kThreads>(bins, s);
    FindDigit<kThreads>(bins, need, s);
    low = low << bits | s.digit;
    need = s.need;
    left = shift;
    if (need == s.population) return uint64_t{tie} << 32 | uint64_t{low} << shift;
  }
}

// Bits of the largest index of a row, at least 1.
__device__ __forceinline__ int IndexBits(int32_t len) { return len <= 2 ? 1 : 32 - __clz(len - 1); }

const char* LaunchRows(const Params& p, int rows, int tuning, cudaStream_t stream);
const char* LaunchStream(const Params& p, int rows, int tuning, cudaStream_t stream);

}  // namespace samebits::topk_cuda
