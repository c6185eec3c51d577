// Between route_cpu.cc and route_simd.cc: the scores of one token.
#pragma once

#include <cstdint>

#include "numerics/isa.h"

namespace samebits {
#define SB_DECLARE_ROUTE(isa, space)                                                \
  namespace space {                                                                 \
  void RouteScoresRow(const float* logits, float* scores, int64_t n, bool sigmoid); \
  }
SB_FOR_EACH_ISA(SB_DECLARE_ROUTE)
#undef SB_DECLARE_ROUTE
}  // namespace samebits
