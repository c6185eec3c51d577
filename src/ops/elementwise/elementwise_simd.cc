#include "ops/elementwise/elementwise_simd.h"

#include "numerics/simd.h"
#include "numerics/simd_rows.h"
#include "ops/elementwise/elementwise.h"

namespace samebits {
namespace SB_ISA {

void SwigluRow(const PairRow& r) {
  ForLanes(r.n, [&](int64_t i, int c) {
    StoreAny(r.out, r.out_bf16, i, c, SwigluValue(LoadAny(r.a, r.a_bf16, i, c), LoadAny(r.b, r.b_bf16, i, c)));
  });
}

void AddRow(const PairRow& r) {
  ForLanes(r.n, [&](int64_t i, int c) {
    StoreAny(r.out, r.out_bf16, i, c, Add(LoadAny(r.a, r.a_bf16, i, c), LoadAny(r.b, r.b_bf16, i, c)));
  });
}

}  // namespace SB_ISA
}  // namespace samebits
