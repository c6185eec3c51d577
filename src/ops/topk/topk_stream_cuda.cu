// Top-k of long rows: each row is read once. A strided sample gives a bound that is almost surely below the k-th best;
// only scores above it are kept in shared memory, and the selection runs over those. If the bound proves wrong (too few or
// too many candidates: heavy ties, adversarial rows) the row is selected exactly by radix passes over memory. With a
// cluster, each block takes a contiguous part of the row and reads the others' candidates through distributed shared memory.
//
// Why any number of blocks gives the same bytes: the chosen set is the contract's unique set, whatever found it, and each
// chosen index finds its place in the output by counting the chosen indices below it, never by arrival.

#include <cooperative_groups.h>

#include "device/cuda_kernel.h"
#include "ops/topk/topk_select.cuh"

namespace samebits::topk_cuda {
namespace {

namespace cg = cooperative_groups;
constexpr int kMaxCluster = 16;

struct StreamShared {
  SelectShared select;
  uint32_t count;  // candidates met, also those beyond the capacity
  uint32_t nans;
  uint32_t lower, chosen;  // chosen candidates in lower parts of the row, and in all
  uint32_t part_count[kMaxCluster];
  uint32_t emitted;
};

template <bool kCluster>
struct Team {
  int rank = 0, size = 1;
  __device__ __forceinline__ void Init() {
#if __CUDA_ARCH__ >= 900
    if constexpr (kCluster)
      rank = static_cast<int>(cg::this_cluster().block_rank()),
      size = static_cast<int>(cg::this_cluster().num_blocks());
#endif
  }
  __device__ __forceinline__ void Sync() const {
#if __CUDA_ARCH__ >= 900
    if constexpr (kCluster) {
      cg::this_cluster().sync();
      return;
    }
#endif
    __syncthreads();
  }
  template <class T>
  __device__ __forceinline__ const T* At(const T* shared, int other) const {
#if __CUDA_ARCH__ >= 900
    if constexpr (kCluster)
      return cg::this_cluster().map_shared_rank(const_cast<T*>(shared), static_cast<unsigned>(other));
#endif
    return shared;
  }
};

// Appends the entries at(e) of `scores` whose bit e is set in hits; the order of the list does not matter. The score is read
// again, from L1: a loop over the few hits costs less than a predicated store per entry.
template <class IndexAt>
__device__ __forceinline__ void Append(uint32_t hits, const float* scores, const IndexAt& at, uint32_t capacity,
                                       uint32_t* keys, uint32_t* indices, uint32_t* count) {
  if (!__any_sync(0xffffffffu, hits != 0)) return;
  const uint32_t mine = static_cast<uint32_t>(__popc(hits)), inclusive = WarpInclusive(mine);
  uint32_t place = 0;
  if ((threadIdx.x & 31) == 31) place = atomicAdd(count, inclusive);
  place = __shfl_sync(0xffffffffu, place, 31) + inclusive - mine;
  for (; hits != 0 && place < capacity; hits &= hits - 1, ++place) {
    const int32_t i = at(__ffs(static_cast<int>(hits)) - 1);
    keys[place] = ScoreKey(__ldg(scores + i)), indices[place] = static_cast<uint32_t>(i);
  }
}

template <int kThreads, bool kCluster>
__device__ __forceinline__ void TeamDigit(const Team<kCluster>& team, uint32_t need, StreamShared& s) {
  uint32_t bins[kBins / kThreads];
  constexpr int kPer = kBins / kThreads;
  const int first = kBins - (static_cast<int>(threadIdx.x) + 1) * kPer;
  team.Sync();
#pragma unroll
  for (int b = 0; b < kPer; ++b) bins[b] = 0;
  for (int r = 0; r < team.size; ++r) {
    const uint32_t* theirs = team.At(s.select.hist, r) + first;
#pragma unroll
    for (int b = 0; b < kPer; ++b) bins[b] += theirs[b];
  }
  team.Sync();
#pragma unroll
  for (int b = 0; b < kPer; ++b) s.select.hist[first + b] = 0;
  FindDigit<kThreads>(bins, need, s.select);
}

// Exact selection by radix passes over memory, for rows whose sample misled. The team takes the row in contiguous parts.
template <int kThreads, bool kCluster>
__device__ void SelectFromMemory(const Params& p, const RowExtent& extent, int32_t begin, int32_t end,
                                 const Team<kCluster>& team, const RowOutput& out, StreamShared& s) {
  uint64_t threshold = 0;
  uint32_t high = 0, low = 0, need = static_cast<uint32_t>(p.k);
  int left = 32;  // bits still open of the score's key, then of the index
  bool scores = true;
#pragma unroll 1
  while (true) {
    const int bits = left < 11 ? left : 11, shift = left - bits;
    for (int32_t i = begin + static_cast<int32_t>(threadIdx.x); i < end; i += kThreads) {
      const uint32_t key = ScoreKey(extent.scores[i]);
      const uint32_t digits = scores ? key : static_cast<uint32_t>(FullKey(0, static_cast<uint32_t>(i))),
                     prefix = scores ? high : low;
      if (key != 0 && (scores || key == high) && (left == 32 || digits >> left == prefix))
        atomicAdd(&s.select.hist[digits >> shift & ((1u << bits) - 1)], 1u);
    }
    const bool whole = left == 32;
    TeamDigit<kThreads>(team, need, s);
    if (whole && s.select.total <= need) {
      threshold = kAllNumbers;
      break;
    }
    need = s.select.need, left = shift;
    (scores ? high : low) = (scores ? high : low) << bits | s.select.digit;
    threshold = scores ? uint64_t{high} << (32 + shift) : uint64_t{high} << 32 | uint64_t{low} << shift;
    if (need == s.select.population) break;
    if (left == 0) scores = false, left = IndexBits(extent.len), low = 0xffffffffu >> left;
  }
  // Ordered store: each warp owns a contiguous stretch; count, prefix, write.
  constexpr int kWarps = kThreads / 32;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int32_t stretch = ((end - begin + kWarps - 1) / kWarps + 31) & ~31;
  const int32_t lo = begin + warp * stretch < end ? begin + warp * stretch : end,
                hi = lo + stretch < end ? lo + stretch : end;
  const auto taken = [&](int32_t i) {
    return i < hi && FullKey(ScoreKey(extent.scores[i]), static_cast<uint32_t>(i)) >= threshold;
  };
  uint32_t count = 0, total = 0;
  for (int32_t i = lo; i < hi; i += 32)
    count += static_cast<uint32_t>(__popc(__ballot_sync(0xffffffffu, taken(i + lane))));
  uint32_t position = BlockExclusive<kThreads>(lane == 0 ? count : 0, s.select.warp_total, &total);
  position = __shfl_sync(0xffffffffu, position, 0);
  if (threadIdx.x == 0) s.emitted = total;
  team.Sync();
  uint32_t all = 0;
  for (int r = 0; r < team.size; ++r) {
    const uint32_t theirs = *team.At(&s.emitted, r);
    if (r < team.rank) position += theirs;
    all += theirs;
  }
  for (int32_t i = lo; i < hi; i += 32) {
    const bool mine = taken(i + lane);
    const uint32_t mask = __ballot_sync(0xffffffffu, mine);
    if (mine) out.Put(static_cast<int>(position + __popc(mask & ((1u << lane) - 1))), i + lane);
    position += static_cast<uint32_t>(__popc(mask));
  }
  if (team.rank == 0)
    for (int i = static_cast<int>(all + threadIdx.x); i < p.k; i += kThreads) out.Put(i, -1);
  team.Sync();
}

template <int kThreads, int kItems, int kSamples, int kBlocks, bool kCluster>
__global__ __launch_bounds__(kThreads, kBlocks) void TopkStream(const Params p, int32_t chunk_limit) {
  constexpr uint32_t kCapacity = kThreads * kItems;
  extern __shared__ __align__(16) uint8_t raw[];
  StreamShared& s = *reinterpret_cast<StreamShared*>(raw);
  uint32_t* const keys = reinterpret_cast<uint32_t*>(raw + (sizeof(StreamShared) + 15) / 16 * 16);
  uint32_t* const indices = keys + kCapacity;
  uint32_t* const map = indices + kCapacity;  // one bit per entry of this block's part
  Team<kCluster> team;
  team.Init();
  const int t = static_cast<int>(threadIdx.x), row = static_cast<int>(blockIdx.x) / team.size;
  const RowExtent extent = ExtentOf(p, row);
  const RowOutput out = OutputOf(p, row);
  const int32_t len = extent.len;
  const int32_t part = static_cast<int32_t>(((int64_t{len} + team.size - 1) / team.size + 31) & ~int64_t{31});
  const int32_t begin = int64_t{part} * team.rank < len ? part * team.rank : len;
  const int32_t end = len - begin > part ? begin + part : len;
  const int words = part <= chunk_limit ? part / 32 : 0;

  // A bound from a strided sample of the whole row (sectors of 8): the rank that exceeds the expected one by 4 deviations.
  uint32_t sample[kSamples];
  const bool keep_all = len <= static_cast<int32_t>(kCapacity);
  if (!keep_all) {
    constexpr int kSectors = kThreads * kSamples / 8;
#pragma unroll
    for (int j = 0; j < kSamples; ++j) {
      const int q = (j * kThreads + t) / 8;
      const int64_t at = int64_t{q} * (len - 8) / kSectors + (t & 7);
      sample[j] = ScoreKey(__ldg(extent.scores + at));
    }
  }
  for (int b = t; b < kBins / 4; b += kThreads) reinterpret_cast<uint4*>(s.select.hist)[b] = make_uint4(0, 0, 0, 0);
  for (int w = t; w < words; w += kThreads) map[w] = 0;
  if (t == 0) s.count = s.nans = s.lower = s.chosen = 0;
  __syncthreads();
  float bound = FromBits(0xff800000u);
  uint32_t base = OrderKey(bound);
  if (!keep_all) {
    const float expect = static_cast<float>(p.k) * static_cast<float>(kThreads * kSamples) / static_cast<float>(len);
    const uint32_t rank = static_cast<uint32_t>(expect + 4.0f * __fsqrt_rn(expect) + 3.0f);
    const uint32_t key =
        static_cast<uint32_t>(SelectScores<kThreads, kSamples>(sample, rank, 2, s.select).threshold >> 32);
    if (key > base) bound = FromOrderKey(key), base = OrderKey(bound);
  }

  // The one read of the row.
  {
    const float* const mine = extent.scores + begin;
    const int32_t size = end - begin;
    const int32_t misaligned = static_cast<int32_t>((reinterpret_cast<uintptr_t>(mine) & 15) / 4);
    const int32_t head = misaligned == 0 ? 0 : (4 - misaligned < size ? 4 - misaligned : size);
    const int32_t quads = (size - head) / 4;
    const float4* const body = reinterpret_cast<const float4*>(mine + head);
    constexpr int kUnroll = 4;
    const float absent = FromBits(kCanonicalNan);
    uint32_t nans = 0;
    for (int32_t v = t; v - (t & 31) < quads; v += kThreads * kUnroll) {
      float4 x[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u)
        x[u] = v + u * kThreads < quads ? __ldg(body + v + u * kThreads) : make_float4(absent, absent, absent, absent);
      uint32_t hits = 0;
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        hits |= x[u].x >= bound ? 1u << (4 * u) : 0u;
        hits |= x[u].y >= bound ? 2u << (4 * u) : 0u;
        hits |= x[u].z >= bound ? 4u << (4 * u) : 0u;
        hits |= x[u].w >= bound ? 8u << (4 * u) : 0u;
      }
      if (p.nan_counts) {
#pragma unroll
        for (int u = 0; u < kUnroll; ++u)
          if (v + u * kThreads < quads) nans += IsNan(x[u].x) + IsNan(x[u].y) + IsNan(x[u].z) + IsNan(x[u].w);
      }
      const auto at = [&](int e) { return begin + head + 4 * (v + (e >> 2) * kThreads) + (e & 3); };
      Append(hits, extent.scores, at, kCapacity, keys, indices, &s.count);
    }
    const int32_t rest = size - 4 * quads;  // before and after the aligned body
    if (t < 32) {
      const int32_t i = t < head ? t : t + 4 * quads;
      const float x = t < rest ? mine[i] : absent;
      nans += t < rest && IsNan(x);
      Append(x >= bound, extent.scores, [&](int) { return begin + i; }, kCapacity, keys, indices, &s.count);
    }
    if (p.nan_counts) {
      nans = __reduce_add_sync(0xffffffffu, nans);
      if ((t & 31) == 0 && nans) atomicAdd(&s.nans, nans);
    }
  }
  team.Sync();

  uint32_t first = 0, row_nans = 0;  // candidates of all parts together
  for (int r = 0; r < team.size; ++r) {
    const StreamShared* other = team.At(&s, r);
    first += other->count;
    row_nans += other->nans;
  }
  if (p.nan_counts && team.rank == 0 && t == 0) p.nan_counts[row] = static_cast<int32_t>(row_nans);
  if (words == 0 || first > kCapacity || (!keep_all && first < static_cast<uint32_t>(p.k))) {
    team.Sync();  // nobody reads the counts any more
    SelectFromMemory<kThreads>(p, extent, begin, end, team, out, s);
    return;
  }
  if constexpr (kCluster) {
    if (t < team.size) s.part_count[t] = team.At(&s, t)->count;
    __syncthreads();
  }
  uint32_t key[kItems], far_index[kCluster ? kItems : 1];
#pragma unroll
  for (int j = 0; j < kItems; ++j) {
    uint32_t i = static_cast<uint32_t>(j * kThreads + t);
    key[j] = 0;
    if constexpr (kCluster) {
      far_index[j] = 0;
      if (i >= first) continue;
      int r = 0;
      while (i >= s.part_count[r]) i -= s.part_count[r++];
      key[j] = team.At(keys, r)[i], far_index[j] = team.At(indices, r)[i];
    } else {
      if (i < first) key[j] = keys[i];
    }
  }
  const auto index_of = [&](int j) {
    if constexpr (kCluster) return far_index[j];
    return indices[j * kThreads + t];
  };
  const Selected selected = SelectAbove<kThreads, kItems>(key, base, static_cast<uint32_t>(p.k), s.select);
  uint64_t threshold = selected.threshold;
  if (selected.ties != 0) threshold = SelectTies<kThreads, kItems>(key, index_of, IndexBits(len), selected, s.select);

  uint32_t lower = 0, chosen = 0;
#pragma unroll
  for (int j = 0; j < kItems; ++j) {
    if (key[j] == 0) continue;
    const int32_t i = static_cast<int32_t>(index_of(j));
    const bool take = FullKey(key[j], static_cast<uint32_t>(i)) >= threshold;
    if (!take) key[j] = 0;
    chosen += take;
    lower += take && i < begin;
    if (take && i >= begin && i < end) atomicOr(&map[(i - begin) >> 5], 1u << ((i - begin) & 31));
  }
  lower = __reduce_add_sync(0xffffffffu, lower), chosen = __reduce_add_sync(0xffffffffu, chosen);
  if ((t & 31) == 0) atomicAdd(&s.lower, lower), atomicAdd(&s.chosen, chosen);
  __syncthreads();

  // before[w]: chosen entries of this part in words below w. It lies over the histogram, which is free now.
  uint16_t* const before = reinterpret_cast<uint16_t*>(s.select.hist);
  const int per = (words + kThreads - 1) / kThreads;
  const int w_begin = t * per < words ? t * per : words, w_end = w_begin + per < words ? w_begin + per : words;
  uint32_t sum = 0, unused;
  for (int w = w_begin; w < w_end; ++w) sum += static_cast<uint32_t>(__popc(map[w]));
  uint32_t at = BlockExclusive<kThreads>(sum, s.select.warp_total, &unused);
  for (int w = w_begin; w < w_end; ++w) {
    before[w] = static_cast<uint16_t>(at);
    at += static_cast<uint32_t>(__popc(map[w]));
  }
  __syncthreads();
#pragma unroll
  for (int j = 0; j < kItems; ++j) {
    if (key[j] == 0) continue;
    const int32_t i = static_cast<int32_t>(index_of(j));
    if (kCluster && (i < begin || i >= end)) continue;
    const int w = (i - begin) >> 5, bit = (i - begin) & 31;
    out.Put(static_cast<int>(s.lower + before[w] + __popc(map[w] & ((1u << bit) - 1))), i);
  }
  if (team.rank == 0)
    for (int i = static_cast<int>(s.chosen) + t; i < p.k; i += kThreads) out.Put(i, -1);
  if constexpr (kCluster) team.Sync();  // the others may still be reading this block's candidates
}

template <int kThreads, int kItems, int kSamples, int kBlocks, bool kCluster>
const char* Launch(const Params& p, int rows, int cluster, cudaStream_t stream) {
  const auto kernel = TopkStream<kThreads, kItems, kSamples, kBlocks, kCluster>;
  const int64_t part = ((int64_t{p.n} + cluster - 1) / cluster + 31) / 32 * 32;
  const int64_t limit = part < kTopkStreamChunk ? part : kTopkStreamChunk;
  const size_t bytes =
      (sizeof(StreamShared) + 15) / 16 * 16 + 8 * size_t{kThreads} * kItems + static_cast<size_t>(limit) / 8;
  cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  if (error == cudaSuccess && cluster > 8)
    error = cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
  if (error != cudaSuccess) return CudaSentence(error, "top-k (stream)");
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(rows * cluster));
  config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = bytes;
  config.stream = stream;
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = static_cast<unsigned>(cluster),
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  config.attrs = &attribute;
  config.numAttrs = kCluster ? 1 : 0;
  error = cudaLaunchKernelEx(&config, kernel, p, static_cast<int32_t>(limit));
  return CudaSentence(error == cudaSuccess ? cudaGetLastError() : error, "top-k (stream)");
}

}  // namespace

const char* LaunchStream(const Params& p, int rows, int tuning, cudaStream_t stream) {
  const TopkTuning& t = kTopkTunings[tuning];
  const int key = t.threads * 10000 + t.items * 100 + t.samples;
  if (t.cluster == 1) switch (key) {
      case 2560802:
        return Launch<256, 8, 2, 5, false>(p, rows, 1, stream);
      case 2560804:
        return Launch<256, 8, 4, 4, false>(p, rows, 1, stream);
      case 2561608:
        return Launch<256, 16, 8, 4, false>(p, rows, 1, stream);
      case 5120402:
        return Launch<512, 4, 2, 2, false>(p, rows, 1, stream);
      case 5120804:
        return Launch<512, 8, 4, 2, false>(p, rows, 1, stream);
      case 5121204:
        return Launch<512, 12, 4, 2, false>(p, rows, 1, stream);
      case 5121208:
        return Launch<512, 12, 8, 2, false>(p, rows, 1, stream);
    }
  switch (key) {
    case 5121208:
      return Launch<512, 12, 8, 2, true>(p, rows, t.cluster, stream);
    case 5121616:
      return Launch<512, 16, 16, 2, true>(p, rows, t.cluster, stream);
    default:
      return "top-k: the tuning table names a stream kernel that was not built";
  }
}

}  // namespace samebits::topk_cuda
