// Top-k of rows of scores, exact, with one answer.
//
// Order. Larger score first; equal scores (-0 equals +0), lower index first; NaN is never selected. Before() is the one
// definition: every backend, the router, the sampler and forensics call it. Keys are unique, so any exact algorithm
// returns the same set.
// Output: kAscending (attention: chosen indices ascending) or kByRank (sampling: best first); unused places hold -1 at
// the tail. Indices count from the row's start. Nothing outside [start, start + len) is read; len <= 0 is an empty row.
#pragma once

#include <span>

#include "numerics/float_order.h"
#include "ops/op.h"

namespace samebits {

struct Candidate {
  float score;
  int32_t index;
};

// Sort key of a candidate: descending key = better. NaN gives 0, below every number including -inf.
SB_HD uint64_t TopkKey(float score, int32_t index) {
  const uint64_t order = IsNan(score) ? 0 : OrderKey(score);
  return order << 32 | static_cast<uint32_t>(~index);
}
SB_HD bool Before(Candidate a, Candidate b) { return TopkKey(a.score, a.index) > TopkKey(b.score, b.index); }
SB_HD int32_t TopkKeyIndex(uint64_t key) { return static_cast<int32_t>(~static_cast<uint32_t>(key)); }

enum class TopkOutput { kAscending, kByRank };

struct TopkArgs {
  View<const float> scores;             // [rows, n]; n < 2^31
  const int32_t* row_starts = nullptr;  // [rows] or none (0)
  const int32_t* row_lens = nullptr;    // [rows] or none (n)
  TopkOutput output = TopkOutput::kAscending;
  View<int32_t> indices;          // [rows, k]
  int32_t* nan_counts = nullptr;  // [rows] or none: NaN scores seen in the row (0 where all of the row is chosen
                                  // unseen is not allowed: every score in the extent is looked at if this is given)
};

// For the reference only.
struct TopkRule {
  bool high_index_wins_ties = false;
  uint64_t shuffle_ties_seed = 0;  // not 0: equal scores in an arbitrary (seeded) order, as an unstable selection does
};

Status CheckTopk(const TopkArgs& args);
void TopkRef(const TopkArgs& args, const TopkRule& rule = {});
Status Topk(const CpuContext& context, const TopkArgs& args);
std::span<const OpBackend<TopkArgs>> TopkBackends();

// Local indices to cache slots: slot = table[row][i / page_size] * page_size + i % page_size; -1 stays -1.
struct PageTransformArgs {
  View<const int32_t> indices;       // [rows, k]
  View<const int32_t> page_table;    // [requests, pages]
  const int32_t* request = nullptr;  // [rows] row of page_table, or none (row r uses table row r)
  int32_t page_size = 64;
  View<int32_t> slots;  // [rows, k]; may alias indices
};
Status CheckPageTransform(const PageTransformArgs& args);
void PageTransformRef(const PageTransformArgs& args);
Status PageTransform(const CpuContext& context, const PageTransformArgs& args);

}  // namespace samebits
