// Between indexer_cpu.cc and indexer_simd.cc. Keys are laid out in groups of 16, transposed: element (d, key) of group g at
// keys[(g * dim + d) * 16 + key], fp64 for fp8 (exact sums in any order), fp32 otherwise.
#pragma once

#include <cstdint>

#include "numerics/isa.h"

namespace samebits {

struct IndexerTask {
  const void* q;         // one token's [heads, dim]: E4M3, BF16 or F32
  int kind;              // 0 E4M3, 1 BF16, 2 F32
  const float* weights;  // [heads]
  const double* keys64;
  const float* keys32;
  const float* scales;  // [keys] gathered, or null
  int64_t heads, dim;
};

// Writes scores of keys [16 * group_begin, min(16 * group_end, len)).
#define SB_DECLARE_INDEXER(isa, space)                                                                            \
  namespace space {                                                                                               \
  void IndexerToken(const IndexerTask& task, int64_t group_begin, int64_t group_end, int64_t len, float* scores); \
  void WidenKey(const void* key, int kind, int64_t dim, float* out);                                              \
  }
SB_FOR_EACH_ISA(SB_DECLARE_INDEXER)
#undef SB_DECLARE_INDEXER

}  // namespace samebits
