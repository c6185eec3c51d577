#include "ops/quant/quant_simd.h"

#include "numerics/simd.h"
#include "numerics/simd_rows.h"
#include "ops/quant/quant.h"

namespace samebits {
namespace SB_ISA {

void QuantizeRow(const QuantRow& row) {
  for (int64_t begin = 0; begin < row.n; begin += kQuantGroup) {
    const int64_t n = begin + kQuantGroup < row.n ? kQuantGroup : row.n - begin;
    F32x16 most = Splat(0.0f);
    ForLanes(n, [&](int64_t i, int c) { most = Max(AbsF(LoadAny(row.x, row.x_bf16, begin + i, c)), most); });
    const float scale = QuantScale(MaxOf(most), row.power_of_two);
    if (row.scales) row.scales[begin / kQuantGroup] = scale;
    ForLanes(n, [&](int64_t i, int c) {
      E4M3 bytes[kLanes] = {};
      StoreE4M3(bytes, Div(LoadAny(row.x, row.x_bf16, begin + i, c), Splat(scale)), c);
      if (row.values) std::memcpy(row.values + begin + i, bytes, static_cast<size_t>(c));
      if (row.round_trip) StoreAny(row.round_trip, row.out_bf16, begin + i, c, Mul(LoadE4M3(bytes), Splat(scale)));
    });
  }
}

}  // namespace SB_ISA
}  // namespace samebits
