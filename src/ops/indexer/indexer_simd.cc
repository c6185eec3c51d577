#include "ops/indexer/indexer_simd.h"

#include "numerics/simd.h"
#include "numerics/simd_rows.h"
#include "ops/indexer/indexer.h"

namespace samebits {
namespace SB_ISA {
namespace {

typedef double F64x8 __attribute__((vector_size(64)));

// relu(dot) over 16 keys of heads h .. h+H-1. fp8: products and sums are exact in fp64 (see ExactDotE4M3), rounded once.
template <int H>
SB_HD void DotsExact(const float* q, int64_t dim, const double* keys, float (*dots)[kLanes]) {
  F64x8 acc[H][2];
  for (int h = 0; h < H; ++h) acc[h][0] = acc[h][1] = F64x8{};
  for (int64_t d = 0; d < dim; ++d) {
    F64x8 k[2];
    std::memcpy(k, keys + d * kLanes, sizeof k);
#pragma GCC unroll 4
    for (int h = 0; h < H; ++h) {
      const double x = static_cast<double>(q[h * dim + d]);
      acc[h][0] += x * k[0];
      acc[h][1] += x * k[1];
    }
  }
  for (int h = 0; h < H; ++h)
    for (int j = 0; j < kLanes; ++j) dots[h][j] = static_cast<float>(acc[h][j / 8][j % 8]);
}

template <int H>
SB_HD void DotsPlan(const float* q, int64_t dim, const float* keys, float (*dots)[kLanes]) {
  for (int h = 0; h < H; ++h)
    Store(dots[h], GemmPlanSum<F32x16>(dim, [&](F32x16 acc, int64_t d) {
            return Fma(Splat(q[h * dim + d]), Load(keys + d * kLanes), acc);
          }));
}

}  // namespace

void WidenKey(const void* key, int kind, int64_t dim, float* out) {
  ForLanes(dim, [&](int64_t i, int c) {
    if (kind == 0) {
      E4M3 bytes[kLanes] = {};
      std::memcpy(bytes, static_cast<const E4M3*>(key) + i, static_cast<size_t>(c));
      StoreAny(out, false, i, c, LoadE4M3(bytes));
    } else {
      StoreAny(out, false, i, c, LoadAny(key, kind == 1, i, c));
    }
  });
}

void IndexerToken(const IndexerTask& t, int64_t group_begin, int64_t group_end, int64_t len, float* scores) {
  float q[1 << 14];
  const int64_t q_size = t.heads * t.dim;
  WidenKey(t.q, t.kind, q_size, q);
  for (int64_t g = group_begin; g < group_end; ++g) {
    float dots[4][kLanes];
    int64_t ready = 0, first = 0;  // dots hold heads first .. first + ready - 1
    const F32x16 sum = GemmPlanSum<F32x16>(t.heads, [&](F32x16 acc, int64_t h) {
      if (h == first + ready) {
        first = h;
        ready = t.heads - h >= 4 ? 4 : 1;
        const float* qh = q + h * t.dim;
        if (t.kind == 0) {
          const double* keys = t.keys64 + g * t.dim * kLanes;
          ready == 4 ? DotsExact<4>(qh, t.dim, keys, dots) : DotsExact<1>(qh, t.dim, keys, dots);
        } else {
          const float* keys = t.keys32 + g * t.dim * kLanes;
          ready == 4 ? DotsPlan<4>(qh, t.dim, keys, dots) : DotsPlan<1>(qh, t.dim, keys, dots);
        }
      }
      float relu[kLanes];
      for (int j = 0; j < kLanes; ++j) relu[j] = IndexerRelu(dots[h - first][j]);
      return Fma(Load(relu), Splat(t.weights[h]), acc);
    });
    const int64_t key = g * kLanes;
    const int count = static_cast<int>(len - key < kLanes ? len - key : kLanes);
    F32x16 score = sum;
    if (t.scales) score = Mul(score, LoadAny(t.scales, false, key, count));
    StoreAny(scores, false, key, count, Add(score, Splat(0.0f)));
  }
}

}  // namespace SB_ISA
}  // namespace samebits
