#include "ops/norm/norm_simd.h"

#include "numerics/simd.h"
#include "numerics/simd_rows.h"
#include "ops/norm/norm.h"

namespace samebits {
namespace SB_ISA {

void RmsNormRow(const NormRow& r) {
  ForLanes(r.n, [&](int64_t i, int c) {
    F32x16 u = LoadAny(r.x.data, r.x.bf16, i, c);
    if (r.residual.data) u = Add(u, LoadAny(r.residual.data, r.residual.bf16, i, c));
    if (r.residual_out.data) {
      StoreAny(r.residual_out.data, r.residual_out.bf16, i, c, u);
      if (r.norm_of_rounded_sum) u = LoadAny(r.residual_out.data, r.residual_out.bf16, i, c);
    }
    StoreAny(r.scratch, false, i, c, u);
  });
  const float sum = RowPlanSumV(r.n, [&](F32x16 acc, int64_t i, int c) {
    const F32x16 u = LoadAny(r.scratch, false, i, c);
    return Fma(u, u, acc);
  });
  const F32x16 inverse = Splat(NormInverse(sum, r.n, r.eps));
  ForLanes(r.n, [&](int64_t i, int c) {
    StoreAny(r.out.data, r.out.bf16, i, c,
             RmsNormValue(LoadAny(r.scratch, false, i, c), inverse, LoadAny(r.weight, false, i, c)));
  });
}

void LayerNormRow(const NormRow& r) {
  const float total =
      RowPlanSumV(r.n, [&](F32x16 acc, int64_t i, int c) { return Add(acc, LoadAny(r.x.data, r.x.bf16, i, c)); });
  const F32x16 mean = Splat(RowMean(total, r.n));
  ForLanes(r.n,
           [&](int64_t i, int c) { StoreAny(r.scratch, false, i, c, Sub(LoadAny(r.x.data, r.x.bf16, i, c), mean)); });
  const float sum = RowPlanSumV(r.n, [&](F32x16 acc, int64_t i, int c) {
    const F32x16 d = LoadAny(r.scratch, false, i, c);
    return Fma(d, d, acc);
  });
  const F32x16 inverse = Splat(NormInverse(sum, r.n, r.eps));
  ForLanes(r.n, [&](int64_t i, int c) {
    StoreAny(r.out.data, r.out.bf16, i, c,
             LayerNormValue(LoadAny(r.scratch, false, i, c), inverse, LoadAny(r.weight, false, i, c),
                            LoadAny(r.bias, false, i, c)));
  });
}

}  // namespace SB_ISA
}  // namespace samebits
