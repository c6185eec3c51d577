// Between norm_cpu.cc and norm_simd.cc. A row is n elements of bf16 (or fp32) at the given address; null: absent.
#pragma once

#include <cstdint>

#include "numerics/isa.h"

namespace samebits {

struct RowPtr {
  void* data = nullptr;
  bool bf16 = true;
};
struct NormRow {
  RowPtr x, residual, residual_out, out;
  const float* weight = nullptr;
  const float* bias = nullptr;  // LayerNorm
  float* scratch = nullptr;     // [n]
  int64_t n = 0;
  float eps = 0;
  bool norm_of_rounded_sum = false;
};

#define SB_DECLARE_NORM(isa, space)      \
  namespace space {                      \
  void RmsNormRow(const NormRow& row);   \
  void LayerNormRow(const NormRow& row); \
  }
SB_FOR_EACH_ISA(SB_DECLARE_NORM)
#undef SB_DECLARE_NORM

}  // namespace samebits
