// Walsh-Hadamard transform of rows in natural order, y[i] = n^-1/2 * sum_j (-1)^popcount(i & j) x[j], n a power of two.
//
// Plan: fp32 butterflies (a, b) -> (a + b, a - b), strides 1, 2, 4, ... n/2; then one multiplication by fp32(n^-1/2);
// one rounding at the store.
#pragma once

#include "ops/op.h"

namespace samebits {

struct HadamardArgs {
  ConstMat x;       // [rows, groups * n] BF16 | F32: each group of n columns is transformed alone
  int64_t n = 128;  // power of two, 1 .. 1024; divides x.cols
  Mat out;          // same shape and dtype; may alias x
};

Status CheckHadamard(const HadamardArgs& args);
void HadamardRef(const HadamardArgs& args);
Status Hadamard(const CpuContext& context, const HadamardArgs& args);

}  // namespace samebits
