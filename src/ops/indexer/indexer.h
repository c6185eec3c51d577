// Lightning indexer scores: I[t, s] = k_scale[s] * sum_h max(q[t,h] . k[s], 0) * w[t,h]   (spec 5.2).
//
// Rule: the dot product by the GEMM contract of its operands (E4M3: exact, rounded once; BF16 / F32: the GEMM plan);
// ReLU (a negative or -0 dot gives +0); heads by the GEMM plan with fma(relu, w, acc) steps; one multiplication by
// k_scale (absent: none); -0 stored as +0. A query sees key positions [0, row_lens[t]); nothing past it is read or
// written.
#pragma once

#include <span>

#include "numerics/sum.h"
#include "ops/op.h"

namespace samebits {

struct IndexerArgs {
  ConstMat q;                         // [tokens, heads * dim] E4M3 | BF16 | F32
  int64_t heads = 0, dim = 0;         // E4M3: dim <= 128
  View<const float> weights;          // [tokens, heads], q's scale and all constants folded in
  PagedRows keys;                     // rows of dim, same dtype as q
  PagedRows key_scales;               // F32 rows of 1 in the same pages; pool == nullptr: none
  const int32_t* row_lens = nullptr;  // [tokens]
  View<float> scores;                 // [tokens, >= max row_len]
};

SB_HD float IndexerRelu(float dot) { return dot > 0.0f ? dot : 0.0f; }
// The stored score: -0 becomes +0.
SB_HD float IndexerStore(float score) { return Add(score, 0.0f); }

Status CheckIndexer(const IndexerArgs& args);
void IndexerRef(const IndexerArgs& args);
Status Indexer(const CpuContext& context, const IndexerArgs& args);
std::span<const OpBackend<IndexerArgs>> IndexerBackends();

}  // namespace samebits
