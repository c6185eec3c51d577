// Between topk_cpu.cc and topk_simd.cc: one row, ascending output.
#pragma once

#include <cstdint>

#include "numerics/isa.h"

namespace samebits {
// keys: [2 * (len + 16)] scratch. Writes min(k, numbers) indices ascending, then -1; returns how many are not -1.
#define SB_DECLARE_TOPK(isa, space)                                                                               \
  namespace space {                                                                                               \
  int64_t TopkRow(const float* scores, int64_t len, int64_t k, uint32_t* keys, int32_t* out, int32_t* nan_count); \
  }
SB_FOR_EACH_ISA(SB_DECLARE_TOPK)
#undef SB_DECLARE_TOPK
}  // namespace samebits
