// Kernels of compare.h, one set per instruction set. Plain arguments: compiled with different flags than the callers.
#pragma once

#include <cstdint>

#include "numerics/isa.h"

namespace samebits {

struct FloatCompareSums {
  // Element i adds to lane i mod 16. `same` collects a*a of blocks that are equal bit for bit.
  double same[16], aa[16], bb[16], ab[16], dd[16], abs[16];
  double max_abs, max_rel;
  int64_t max_abs_at, max_rel_at;
  int64_t bit_mismatches, first_bit, last_bit, value_mismatches, first_value, last_value;
  int64_t nan_a, nan_b, inf_a, inf_b, neg_zero_a, neg_zero_b, nan_one_side, number_pairs;
  int64_t a_larger, b_larger;
  uint64_t max_ulp;
  int64_t ulp_histogram[18];
};

enum class FloatKind { kF32, kBF16 };

// Adds elements [0, n) of a and b, which are elements [base, base + n) of their tensors; base is a multiple of 64.
using CompareFloats = void (*)(FloatKind kind, const void* a, const void* b, int64_t n, int64_t base,
                               FloatCompareSums* sums);
CompareFloats CompareFloatsFor(Isa isa);

}  // namespace samebits
