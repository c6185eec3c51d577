// Named orders of addition: constexpr plans that every backend walks. A plan is a function of the contract's shape
// alone.
#pragma once

#include "numerics/hd.h"

namespace samebits {

// --- GEMM plan -------------------------------------------------------------------------------------------------------
// Per output: K blocks of 128; inside a block one ascending fma chain from +0; blocks ascending inside segments of
// 1024, a segment starts at +0; segments ascending from +0. Split-K may hand out whole segments.
inline constexpr int64_t kGemmBlock = 128;
inline constexpr int64_t kGemmSegment = 1024;

// Walks the plan for one output. term(acc, k) extends the fma chain: usually Fma(a[k], b[k], acc).
template <class V = float, class Term>
SB_HD V GemmPlanSum(int64_t k_size, const Term& term) {
  V total = Set1<V>(0.0f);
  for (int64_t s = 0; s < k_size; s += kGemmSegment) {
    const int64_t s_end = s + kGemmSegment < k_size ? s + kGemmSegment : k_size;
    V segment = Set1<V>(0.0f);
    for (int64_t b = s; b < s_end; b += kGemmBlock) {
      const int64_t b_end = b + kGemmBlock < s_end ? b + kGemmBlock : s_end;
      V block = Set1<V>(0.0f);
      for (int64_t k = b; k < b_end; ++k) block = term(block, k);
      segment = Add(segment, block);
    }
    total = Add(total, segment);
  }
  return total;
}

// --- Row plan --------------------------------------------------------------------------------------------------------
// Rows are cut into chunks of 4096. In a chunk, 64 lanes: element i belongs to lane i mod 64, each lane ascending from
// +0; then a halving tree (lane j takes lane j+32, then j+16, ... j+1). Chunks ascending from +0.
inline constexpr int kRowLanes = 64;
inline constexpr int64_t kRowChunk = 4096;

// step(acc, i) adds element i to a lane: Add(acc, x[i]) for a sum, Fma(x[i], x[i], acc) for a sum of squares.
template <class Step>
SB_HD float RowPlanSum(int64_t n, const Step& step) {
  float total = 0.0f;
  for (int64_t c = 0; c < n; c += kRowChunk) {
    const int64_t end = c + kRowChunk < n ? c + kRowChunk : n;
    float lane[kRowLanes];
    for (int j = 0; j < kRowLanes; ++j) lane[j] = 0.0f;
    for (int64_t i = c; i < end; ++i) lane[(i - c) % kRowLanes] = step(lane[(i - c) % kRowLanes], i);
    for (int half = kRowLanes / 2; half > 0; half /= 2)
      for (int j = 0; j < half; ++j) lane[j] = Add(lane[j], lane[j + half]);
    total = Add(total, lane[0]);
  }
  return total;
}

}  // namespace samebits
