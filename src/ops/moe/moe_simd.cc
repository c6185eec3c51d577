#include "ops/moe/moe_simd.h"

#include "numerics/simd.h"
#include "numerics/simd_rows.h"

namespace samebits {
namespace SB_ISA {

void CombineToken(const CombineRow& r) {
  ForLanes(r.n, [&](int64_t i, int c) {
    F32x16 y = Splat(0.0f);
    for (int64_t j = 0; j < r.k; ++j)
      y = Fma(Splat(r.weights[j]), LoadAny(r.expert_out + r.row[j] * r.row_bytes, r.expert_bf16, i, c), y);
    if (r.shared) y = Add(y, LoadAny(r.shared, r.shared_bf16, i, c));
    StoreAny(r.out, r.out_bf16, i, c, y);
  });
}

}  // namespace SB_ISA
}  // namespace samebits
