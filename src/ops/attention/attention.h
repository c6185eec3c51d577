// Attention of one query row per head over a list of cached keys, MQA form (all heads share keys and values).
//
// List. Canonical: ascending, duplicates dropped, entries outside [0, kv_len) dropped (-1 is padding). Dense: 0 ..
// kv_len-1. Plan. Blocks of 64 consecutive list entries; segments of 8 blocks.
//   score t = plan_dot(q, k) * c, c = fp32(scale * log2 e)         GEMM plan over the head dimension, one
//   multiplication n = round(t), f = t - n (exact); g = 2^f; the block's reference m = max n, an integer weight p = g *
//   2^(n - m), 0 if n - m < -100 l: ascending fma chain of p * 1; o: ascending fma chains of bf16(p) * v (both from +0)
//   -- F32 values: p unrounded merge (AttentionMerge) blocks ascending into the segment, segments ascending into the
//   total; out = o / l.
// Every rescale is by an exact power of two, so the split over segments, and prefill or decode, cannot show.
// Empty list: out = 0, lse = -inf. lse is natural: (m + log2 l) * ln 2, computed as m * ln2 + log(l).
#pragma once

#include <span>
#include <vector>

#include "numerics/mathfn.h"
#include "numerics/sum.h"
#include "ops/op.h"

namespace samebits {

inline constexpr int kAttentionBlock = 64;          // list entries
inline constexpr int kAttentionSegmentBlocks = 8;   // blocks
inline constexpr int kAttentionCut = -100;          // weights and merge factors below 2^-100 are 0
inline constexpr int kAttentionEmpty = -(1 << 22);  // reference of a state that holds nothing

struct AttentionArgs {
  ConstMat q;  // [tokens, heads * dim] BF16 | F32
  int64_t heads = 0, dim = 0, value_dim = 0;
  PagedRows keys, values;                     // [positions, dim], [positions, value_dim], q's dtype; MLA: the same rows
  const PagedRows* keys_per_token = nullptr;  // or one PagedRows per token (ragged batch); then keys/values are unused
  const PagedRows* values_per_token = nullptr;
  const int32_t* kv_lens = nullptr;  // [tokens]
  View<const int32_t> indices;       // [tokens, k] positions in any order; empty: dense
  float scale = 1.0f;                // on q.k, natural softmax
  Mat out;                           // [tokens, heads * value_dim] BF16 | F32
  float* lse = nullptr;              // [tokens, heads] or none
};

SB_HD float AttentionScoreFactor(float scale) { return Mul(scale, kLog2e); }
template <class V>
SB_HD V AttentionScore(V dot, V factor) {
  const V most = Set1<V>(0x1p21f), t = Mul(dot, factor);
  const V low = Select(Lt(t, most), t, most);
  return Select(Lt(Set1<V>(-0x1p21f), low), low, Set1<V>(-0x1p21f));
}

// Unnormalised partial result over some blocks of one (token, head): value = o * 2^m.
struct AttentionState {
  int m = kAttentionEmpty;
  float l = 0.0f;
};
// 2^d for an integral d <= 0 that brings a weight or a partial result to a larger reference; 0 below the cut. Exact.
template <class V>
SB_HD V AttentionRescale(V d) {
  const V kept = Select(Lt(d, Set1<V>(static_cast<float>(kAttentionCut))), Set1<V>(0.0f), d);
  const V power = Pow2<V>(IntegralToInt(kept));
  return Select(Lt(d, Set1<V>(static_cast<float>(kAttentionCut))), Set1<V>(0.0f), power);
}
SB_HD float AttentionRescale(int from, int to) { return AttentionRescale(static_cast<float>(from - to)); }
// One element of a merge: x at scale fx plus y at scale fy, where each product is exact.
template <class V>
SB_HD V AttentionMergeValue(V x, V fx, V y, V fy) {
  return Add(Mul(x, fx), Mul(y, fy));
}
SB_HD float AttentionLse(int m, float l) {
  if (!(l > 0.0f)) return FromBits(0xff800000u);
  const float e = static_cast<float>(m);
  return Fma(e, kLn2Hi, Fma(e, kLn2Lo, Log(l)));
}

// For the reference only: what other engines do. The defaults are the contract.
struct AttentionRule {
  bool canonical_list = true;  // false: list order and repeats as given
  bool online = false;  // the running maximum itself is the softmax reference, as flash kernels do: rescales round
  int block = kAttentionBlock;
  int segment_blocks = kAttentionSegmentBlocks;
  int64_t block_offset = 0;  // blocks begin at this many entries (a chunk that moves the blocks)
  int64_t splits = 1;        // list cut in this many pieces, merged by lse
};

// The list of one token: canonical (ascending, unique, in range), or only cleaned of what is out of range.
std::vector<int32_t> AttentionList(const AttentionArgs& args, int64_t token, bool canonical = true);

Status CheckAttention(const AttentionArgs& args);
void AttentionRef(const AttentionArgs& args, const AttentionRule& rule = {});
Status Attention(const CpuContext& context, const AttentionArgs& args);
std::span<const OpBackend<AttentionArgs>> AttentionBackends();

// Merges finished partial results (out, lse natural) over disjoint keys, ascending, by weight exp(lse - max); lse =
// -inf is the neutral element and leaves the other side's bits alone.
struct MergeStatesArgs {
  int64_t states = 0, value_dim = 0;
  const float* out = nullptr;   // [states, value_dim]
  const float* lse = nullptr;   // [states]
  float* merged_out = nullptr;  // [value_dim]
  float* merged_lse = nullptr;  // [1]
};
void MergeStates(const MergeStatesArgs& args);

}  // namespace samebits
