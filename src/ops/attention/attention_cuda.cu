// Attention on CUDA cores, one block per (token, head), by the contract's own walk: blocks of 64 list entries, segments of
// 8 blocks, every rescale a power of two. Slow beside tensor cores; it is the device's proof of portable-1.

#include "device/cuda_kernel.h"
#include "device/cuda_rows.cuh"
#include "ops/attention/attention.h"

namespace samebits {
namespace {

constexpr int kThreads = 128, kMostValues = 8;  // value_dim up to kThreads * kMostValues

__device__ int64_t SlotOf(const PagedRows& rows, int64_t position) {
  return rows.page_table
             ? int64_t{rows.page_table[position / rows.page_size]} * rows.page_size + position % rows.page_size
             : position;
}

// Sorts the token's list, drops what repeats or lies outside [0, len). size: a power of two >= k.
__device__ int CanonicalList(const int32_t* entries, int k, int32_t len, int32_t* list, int size) {
  __shared__ int count;
  for (int i = threadIdx.x; i < size; i += kThreads)
    list[i] = i < k && entries[i] >= 0 && entries[i] < len ? entries[i] : INT32_MAX;
  for (int width = 2; width <= size; width *= 2)
    for (int step = width / 2; step > 0; step /= 2) {
      __syncthreads();
      for (int i = threadIdx.x; i < size; i += kThreads) {
        const int other = i ^ step;
        if (other <= i) continue;
        const int32_t a = list[i], b = list[other];
        if ((a > b) == ((i & width) == 0)) list[i] = b, list[other] = a;
      }
    }
  __syncthreads();
  if (threadIdx.x == 0) {
    int n = 0;
    for (int i = 0; i < size && list[i] != INT32_MAX; ++i)
      if (n == 0 || list[n - 1] != list[i]) list[n++] = list[i];
    count = n;
  }
  __syncthreads();
  return count;
}

struct Partial {
  AttentionState state;
  float o[kMostValues];
};
__device__ __forceinline__ void Merge(Partial* into, const Partial& from) {
  const int m = into->state.m < from.state.m ? from.state.m : into->state.m;
  const float a = AttentionRescale(into->state.m, m), b = AttentionRescale(from.state.m, m);
  into->state.m = m;
  into->state.l = AttentionMergeValue(into->state.l, a, from.state.l, b);
#pragma unroll
  for (int v = 0; v < kMostValues; ++v) into->o[v] = AttentionMergeValue(into->o[v], a, from.o[v], b);
}
__device__ __forceinline__ void Clear(Partial* p) {
  p->state.m = kAttentionEmpty, p->state.l = 0.0f;
#pragma unroll
  for (int v = 0; v < kMostValues; ++v) p->o[v] = 0.0f;
}

__global__ __launch_bounds__(kThreads) void AttentionKernel(AttentionArgs args, int list_size) {
  extern __shared__ int32_t list[];
  __shared__ float n[kAttentionBlock], weight[kAttentionBlock];
  const int64_t token = blockIdx.y, head = blockIdx.x;
  const int t = static_cast<int>(threadIdx.x);
  const PagedRows keys = args.keys_per_token ? args.keys_per_token[token] : args.keys;
  const PagedRows values = args.values_per_token ? args.values_per_token[token] : args.values;
  const int32_t len = args.kv_lens[token];
  const bool dense = args.indices.data == nullptr || args.indices.cols == 0;
  const int count = dense ? (len > 0 ? len : 0)
                          : CanonicalList(args.indices.data + token * args.indices.stride,
                                          static_cast<int>(args.indices.cols), len, list, list_size);
  const auto entry = [&](int j) { return dense ? j : list[j]; };
  const float factor = AttentionScoreFactor(args.scale);

  Partial total, segment, block;
  Clear(&total), Clear(&segment);
  int blocks = 0;
  for (int at = 0; at < count; at += kAttentionBlock) {
    const int size = count - at < kAttentionBlock ? count - at : kAttentionBlock;
    float power = 0.0f;
    if (t < size) {
      const int64_t key = SlotOf(keys, entry(at + t)) * keys.row_stride;
      const float dot = GemmPlanSum(args.dim, [&](float acc, int64_t i) {
        return Fma(LoadAt(args.q, token, head * args.dim + i), Load(keys.pool, keys.dtype, key + i), acc);
      });
      const float score = AttentionScore(dot, factor);
      n[t] = RoundToInt(score);
      power = Exp2Fraction(Sub(score, n[t]));
    }
    __syncthreads();
    float most = static_cast<float>(kAttentionEmpty);
    for (int j = 0; j < size; ++j) most = most < n[j] ? n[j] : most;
    if (t < size) weight[t] = Mul(power, AttentionRescale(n[t] - most));
    __syncthreads();
    Clear(&block);
    block.state.m = static_cast<int>(most);
    for (int j = 0; j < size; ++j) {
      block.state.l = Add(block.state.l, weight[j]);
      const float w = values.dtype == DType::kBF16 ? ToF32(RoundToBF16(weight[j])) : weight[j];
      const int64_t row = SlotOf(values, entry(at + j)) * values.row_stride;
#pragma unroll
      for (int v = 0; v < kMostValues; ++v)
        if (t + v * kThreads < args.value_dim)
          block.o[v] = Fma(w, Load(values.pool, values.dtype, row + t + v * kThreads), block.o[v]);
    }
    __syncthreads();
    Merge(&segment, block);
    if (++blocks == kAttentionSegmentBlocks) Merge(&total, segment), Clear(&segment), blocks = 0;
  }
  if (blocks > 0) Merge(&total, segment);
#pragma unroll
  for (int v = 0; v < kMostValues; ++v)
    if (t + v * kThreads < args.value_dim)
      StoreAt(args.out, token, head * args.value_dim + t + v * kThreads,
              total.state.l > 0.0f ? Div(total.o[v], total.state.l) : 0.0f);
  if (t == 0 && args.lse) args.lse[token * args.heads + head] = AttentionLse(total.state.m, total.state.l);
}

const char* RunAttention(const AttentionArgs& args, cudaStream_t stream) {
  if (args.q.rows == 0 || args.heads == 0) return nullptr;
  if (args.value_dim > kThreads * kMostValues) return "attention on CUDA cores: value_dim up to 1024 is supported";
  if (args.indices.cols > 32768) return "attention on CUDA cores: lists of up to 32768 entries are supported";
  if (args.q.rows > 65535) return "attention on CUDA cores: up to 65535 tokens";
  int size = args.indices.data ? 1 : 0;
  while (size && size < args.indices.cols) size *= 2;
  if (const char* e = CudaSentence(
          cudaFuncSetAttribute(AttentionKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 4 * size), "attention"))
    return e;
  AttentionKernel<<<dim3(static_cast<unsigned>(args.heads), static_cast<unsigned>(args.q.rows)), kThreads,
                    static_cast<size_t>(size) * 4, stream>>>(args, size);
  return CudaSentence(cudaGetLastError(), "attention");
}

SB_CUDA_KERNEL(attention, "attention", "attention/cuda", "portable-1", AttentionArgs, RunAttention);

}  // namespace
}  // namespace samebits
