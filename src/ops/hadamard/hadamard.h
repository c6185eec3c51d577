// Walsh-Hadamard transform of rows in natural order, y[i] = n^-1/2 * sum_j (-1)^popcount(i & j) x[j], n a power of two.
//
// Plan: fp32 butterflies (a, b) -> (a + b, a - b), strides 1, 2, 4, ... n/2; then one multiplication by fp32(n^-1/2);
// one rounding at the store.
#pragma once

#include "numerics/mathfn.h"
#include "ops/op.h"

namespace samebits {

// fp32(n^-1/2) for n a power of two: exact for even powers, correctly rounded otherwise.
SB_HD float HadamardScale(int64_t n) { return Rsqrt(static_cast<float>(n)); }

// The butterflies of one group, in place. V = float with n elements, or 16 lanes each holding one group of its own.
template <class V>
SB_HD void HadamardButterflies(V* x, int64_t n) {
  for (int64_t stride = 1; stride < n; stride *= 2)
    for (int64_t i = 0; i < n; i += 2 * stride)
      for (int64_t j = i; j < i + stride; ++j) {
        const V a = x[j], b = x[j + stride];
        x[j] = Add(a, b);
        x[j + stride] = Sub(a, b);
      }
}

struct HadamardArgs {
  ConstMat x;       // [rows, groups * n] BF16 | F32: each group of n columns is transformed alone
  int64_t n = 128;  // power of two, 1 .. 1024; divides x.cols
  Mat out;          // same shape and dtype; may alias x
};

Status CheckHadamard(const HadamardArgs& args);
void HadamardRef(const HadamardArgs& args);
Status Hadamard(const CpuContext& context, const HadamardArgs& args);

}  // namespace samebits
