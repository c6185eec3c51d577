// The meaning of the indexer's scores, one (token, key) at a time.

#include "ops/gemm/gemm.h"
#include "ops/indexer/indexer.h"

namespace samebits {
namespace {

float Dot(const IndexerArgs& args, int64_t t, int64_t h, int64_t s) {
  if (args.q.dtype == DType::kF8E4M3)
    return ExactDotE4M3(args.q.As<E4M3>().Row(t) + h * args.dim, args.keys.Row<E4M3>(s), static_cast<int>(args.dim));
  return GemmPlanSum(args.dim, [&](float acc, int64_t i) {
    const float k = args.q.dtype == DType::kBF16 ? ToF32(args.keys.Row<BF16>(s)[i]) : args.keys.Row<float>(s)[i];
    return Fma(MatAt(args.q, t, h * args.dim + i), k, acc);
  });
}

}  // namespace

void IndexerRef(const IndexerArgs& args) {
  for (int64_t t = 0; t < args.q.rows; ++t)
    for (int64_t s = 0; s < args.row_lens[t]; ++s) {
      float score = GemmPlanSum(args.heads, [&](float acc, int64_t h) {
        return Fma(IndexerRelu(Dot(args, t, h, s)), args.weights.Row(t)[h], acc);
      });
      if (args.key_scales.pool) score = Mul(score, args.key_scales.Row<float>(s)[0]);
      args.scores.Row(t)[s] = IndexerStore(score);
    }
}

}  // namespace samebits
