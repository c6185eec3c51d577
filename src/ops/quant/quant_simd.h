// Between quant_cpu.cc and quant_simd.cc: one row.
#pragma once

#include <cstdint>

#include "numerics/format.h"
#include "numerics/isa.h"

namespace samebits {

struct QuantRow {
  const void* x;
  bool x_bf16, power_of_two, out_bf16;
  E4M3* values;      // or null
  float* scales;     // or null
  void* round_trip;  // or null
  int64_t n;
};

#define SB_DECLARE_QUANT(isa, space)     \
  namespace space {                      \
  void QuantizeRow(const QuantRow& row); \
  }
SB_FOR_EACH_ISA(SB_DECLARE_QUANT)
#undef SB_DECLARE_QUANT

}  // namespace samebits
