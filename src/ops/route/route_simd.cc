#include "ops/route/route_simd.h"

#include "numerics/simd.h"
#include "numerics/simd_rows.h"
#include "ops/route/route.h"

namespace samebits {
namespace SB_ISA {

void RouteScoresRow(const float* logits, float* scores, int64_t n, bool sigmoid) {
  const RouteScore kind = sigmoid ? RouteScore::kSigmoid : RouteScore::kSqrtSoftplus;
  ForLanes(n,
           [&](int64_t i, int c) { StoreAny(scores, false, i, c, RouteScoreOf(kind, LoadAny(logits, false, i, c))); });
}

}  // namespace SB_ISA
}  // namespace samebits
