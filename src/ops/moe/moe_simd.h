// Between moe_cpu.cc and moe_simd.cc: one token's combine.
#pragma once

#include <cstdint>

#include "numerics/isa.h"

namespace samebits {
struct CombineRow {
  const uint8_t* expert_out;  // row 0
  int64_t row_bytes;
  bool expert_bf16, shared_bf16, out_bf16;
  const int32_t* row;    // [k]
  const float* weights;  // [k]
  int64_t k;
  const void* shared;  // or null
  void* out;
  int64_t n;
};
#define SB_DECLARE_MOE(isa, space)          \
  namespace space {                         \
  void CombineToken(const CombineRow& row); \
  }
SB_FOR_EACH_ISA(SB_DECLARE_MOE)
#undef SB_DECLARE_MOE
}  // namespace samebits
