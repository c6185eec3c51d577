// The router, one warp per token. Every choice goes through the contract's TopkKey: the largest key not yet taken.

#include "device/cuda_kernel.h"
#include "ops/route/route.h"
#include "ops/topk/topk.h"

namespace samebits {
namespace {

constexpr int kMostExperts = 1024;
constexpr unsigned kAll = 0xffffffffu;

__device__ uint64_t WarpMax(uint64_t key) {
  for (int d = 16; d > 0; d /= 2) {
    const uint64_t other = __shfl_xor_sync(kAll, key, d);
    key = other > key ? other : key;
  }
  return key;
}

// Index of the best value not taken by TopkKey, over the warp; marks it taken.
__device__ int TakeBest(const float* value, int n, uint8_t* taken) {
  uint64_t best = 0;
  for (int i = threadIdx.x; i < n; i += 32) {
    const uint64_t key = TopkKey(value[i], i);
    if (!taken[i] && key > best) best = key;
  }
  best = WarpMax(best);
  const int index = TopkKeyIndex(best);
  __syncwarp();
  if (threadIdx.x == 0) taken[index] = 1;
  __syncwarp();
  return index;
}

__global__ __launch_bounds__(32) void RouteKernel(RouteArgs a) {
  __shared__ float score[kMostExperts], choice[kMostExperts], group[kMostExperts];
  __shared__ uint8_t taken[kMostExperts];
  const int64_t token = blockIdx.x;
  const int lane = static_cast<int>(threadIdx.x), n = static_cast<int>(a.logits.cols), size = n / a.n_group;
  for (int e = lane; e < n; e += 32) {
    score[e] = RouteScoreOf(a.scoring, a.logits.data[token * a.logits.stride + e]);
    choice[e] = a.bias ? Add(score[e], a.bias[e]) : score[e];
    taken[e] = 0;
  }
  __syncwarp();
  if (a.topk_group < a.n_group) {
    for (int g = lane; g < a.n_group; g += 32) {
      const float* c = choice + g * size;
      uint64_t first = 0, second = 0;
      for (int i = 0; i < size; ++i) {
        const uint64_t key = TopkKey(c[i], i);
        if (key > first) {
          second = first, first = key;
        } else if (key > second) {
          second = key;
        }
      }
      group[g] = second == 0 ? c[TopkKeyIndex(first)] : Add(c[TopkKeyIndex(first)], c[TopkKeyIndex(second)]);
    }
    __syncwarp();
    for (int i = 0; i < a.topk_group; ++i) TakeBest(group, a.n_group, taken);
    for (int e = lane; e < n; e += 32)
      if (!taken[e / size]) choice[e] = FromBits(0xff800000u);
    __syncwarp();
    for (int g = lane; g < a.n_group; g += 32) taken[g] = 0;
    __syncwarp();
  }
  int32_t* const experts = a.experts.data + token * a.experts.stride;
  for (int j = 0; j < a.k; ++j) {
    const int e = TakeBest(choice, n, taken);
    if (lane == 0 && a.by_rank) a.by_rank[token * a.k + j] = e;
  }
  if (lane != 0) return;
  int j = 0;
  float sum = 0.0f;
  for (int e = 0; e < n; ++e)
    if (taken[e]) experts[j++] = e, sum = Add(sum, score[e]);
  for (j = 0; j < a.k; ++j)
    a.weights.data[token * a.weights.stride + j] =
        RouteWeight(score[experts[j]], sum, a.norm_eps, a.normalise, a.scaling);
}

const char* RunRoute(const RouteArgs& a, cudaStream_t stream) {
  if (a.logits.rows == 0) return nullptr;
  if (a.logits.cols > kMostExperts) return "router on the GPU: up to 1024 experts";
  RouteKernel<<<static_cast<unsigned>(a.logits.rows), 32, 0, stream>>>(a);
  return CudaSentence(cudaGetLastError(), "router");
}

SB_CUDA_KERNEL(route, "route", "route/cuda", "portable-1", RouteArgs, RunRoute);

}  // namespace
}  // namespace samebits
