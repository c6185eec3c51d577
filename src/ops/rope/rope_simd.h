// Between rope_cpu.cc and rope_simd.cc: one head's rotated part, in place.
#pragma once

#include <cstdint>

#include "numerics/isa.h"

namespace samebits {
#define SB_DECLARE_ROPE(isa, space)                                                                      \
  namespace space {                                                                                      \
  void RopeHead(void* x, bool bf16, const float* cos, const float* sin, int64_t half, bool interleaved); \
  }
SB_FOR_EACH_ISA(SB_DECLARE_ROPE)
#undef SB_DECLARE_ROPE
}  // namespace samebits
