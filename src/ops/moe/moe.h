// MoE dispatch and combine. Dispatch groups (token, expert) pairs by expert, tokens ascending inside; it moves bytes
// only.
//
// Combine rule: y = +0; y = fma(weight_e, y_e, y) over the chosen experts in ascending number; then the shared expert
// is added last; one rounding at the store (spec 4.10).
#pragma once

#include <vector>

#include "ops/op.h"

namespace samebits {

struct MoeDispatch {
  // Expert e owns dispatched rows [begin[e], begin[e + 1]).
  std::vector<int64_t> begin;  // [experts + 1]
  std::vector<int32_t> token;  // [tokens * k] token of each dispatched row
  std::vector<int32_t> row;    // [tokens * k] dispatched row of (token, j), j-th chosen expert ascending
};
MoeDispatch PlanDispatch(View<const int32_t> experts, int64_t expert_count);

// Copies rows: out[r] = x[token[r]].
struct GatherRowsArgs {
  ConstMat x;                      // [tokens, n]
  const int32_t* token = nullptr;  // [rows]
  Mat out;                         // [rows, n], same dtype
};
Status GatherRows(const CpuContext& context, const GatherRowsArgs& args);

struct CombineArgs {
  ConstMat expert_out;           // [tokens * k, n] BF16 | F32, dispatched order
  const int32_t* row = nullptr;  // [tokens, k] dispatched row, experts ascending
  View<const float> weights;     // [tokens, k]
  ConstMat shared;               // [tokens, n] or none
  Mat out;                       // [tokens, n] BF16 | F32
};
Status CheckCombine(const CombineArgs& args);
void CombineRef(const CombineArgs& args);
Status Combine(const CpuContext& context, const CombineArgs& args);

}  // namespace samebits
