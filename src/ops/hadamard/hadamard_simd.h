// Between hadamard_cpu.cc and hadamard_simd.cc: `groups` groups of n consecutive elements of one row.
#pragma once

#include <cstdint>

#include "numerics/isa.h"

namespace samebits {
#define SB_DECLARE_HADAMARD(isa, space)                                                \
  namespace space {                                                                    \
  void HadamardGroups(const void* x, void* out, bool bf16, int64_t n, int64_t groups); \
  }
SB_FOR_EACH_ISA(SB_DECLARE_HADAMARD)
#undef SB_DECLARE_HADAMARD
}  // namespace samebits
