// Between elementwise_cpu.cc and elementwise_simd.cc: one row of two operands.
#pragma once

#include <cstdint>

#include "numerics/isa.h"

namespace samebits {
struct PairRow {
  const void* a;
  const void* b;
  void* out;
  bool a_bf16, b_bf16, out_bf16;
  int64_t n;
};
#define SB_DECLARE_ELEMENTWISE(isa, space) \
  namespace space {                        \
  void SwigluRow(const PairRow& row);      \
  void AddRow(const PairRow& row);         \
  }
SB_FOR_EACH_ISA(SB_DECLARE_ELEMENTWISE)
#undef SB_DECLARE_ELEMENTWISE
}  // namespace samebits
