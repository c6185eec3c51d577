// Compares two tensors of one dtype and shape: every metric in one pass, nothing copied, bits decided by bits.
//
// Bit mismatches compare bytes. Value mismatches compare numbers: NaN equals NaN, -0 equals +0. Distances are over
// number pairs: pairs in which neither side is NaN. Integers are compared as integers at every width, booleans are only
// counted. Sums run in 16 double lanes (element i in lane i mod 16) that are added in order at the end, so no result
// depends on the instruction set.
#pragma once

#include <cstdint>
#include <string>

#include "numerics/isa.h"
#include "tensor/tensor.h"

namespace samebits {

inline constexpr int kUlpBuckets = 18;  // bucket k: 2^k <= ulp < 2^(k+1); the last one takes everything above

struct SideCounts {
  int64_t nan = 0, inf = 0, neg_zero = 0;
};

struct CompareStats {
  int64_t elements = 0;
  int64_t bit_mismatches = 0, first_bit = -1, last_bit = -1;  // flat indices, -1: none
  int64_t value_mismatches = 0, first_value = -1, last_value = -1;
  int64_t number_pairs = 0;
  SideCounts a, b;
  int64_t nan_one_side = 0;
  // Floating types. Relative: |a - b| / |b| where b is not 0.
  double max_abs = 0, max_rel = 0;
  int64_t max_abs_at = -1, max_rel_at = -1;
  double sum_abs = 0, sum_diff2 = 0, sum_a2 = 0, sum_b2 = 0, sum_ab = 0;
  int64_t a_larger = 0, b_larger = 0;  // sign balance of the differences
  uint64_t max_ulp = 0;
  int64_t ulp_histogram[kUlpBuckets] = {};
  // Integer types but BOOL: the largest distance, exact.
  uint64_t max_abs_integer = 0;

  double MeanAbs() const { return number_pairs > 0 ? sum_abs / static_cast<double>(number_pairs) : 0; }
  // norm(a - b) / norm(b); 0 when the difference is 0, infinity when only b is.
  double RelativeL2() const;
  double Cosine() const;  // 1 when both are all zero
};

enum class CompareStatus { kEqualBits, kEqualValues, kDifferent, kShapeMismatch, kDtypeMismatch };
const char* CompareStatusName(CompareStatus status);  // "equal_bits", ...

struct Comparison {
  CompareStatus status = CompareStatus::kEqualBits;
  // Dtype mismatch with equal shapes: whether every pair holds exactly the same value.
  bool exact_values_equal = false;
  CompareStats stats;  // of equal dtype and shape
};

Comparison CompareTensors(const TensorRef& a, const TensorRef& b);
// For tests and benchmarks.
Comparison CompareTensorsWith(Isa isa, const TensorRef& a, const TensorRef& b);

// Distance on the line of all floats of the dtype; 0 for NaN and for types without one.
uint64_t UlpDistance(const TensorRef& a, const TensorRef& b, int64_t i);
// The bits of element i, right-aligned.
uint64_t ElementBits(const TensorRef& t, int64_t i);
// "1666", "0.0039062500", "true": shortest form that tells the value apart from its neighbours.
std::string ElementText(const TensorRef& t, int64_t i);
// "[319, 1285]"
std::string CoordinateText(const Shape& shape, int64_t flat);

}  // namespace samebits
