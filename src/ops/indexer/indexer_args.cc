#include "base/strings.h"
#include "ops/indexer/indexer.h"

namespace samebits {

Status CheckIndexer(const IndexerArgs& args) {
  const DType d = args.q.dtype;
  if (d != DType::kF8E4M3 && d != DType::kBF16 && d != DType::kF32)
    return Error(Format("indexer: q is %s", DTypeName(d)));
  if (args.keys.dtype != d)
    return Error(Format("indexer: q is %s but keys are %s", DTypeName(d), DTypeName(args.keys.dtype)));
  if (args.heads < 1 || args.dim < 1 || args.q.cols != args.heads * args.dim)
    return Error(Format("indexer: q has %lld columns, expected %lld heads of %lld", static_cast<long long>(args.q.cols),
                        static_cast<long long>(args.heads), static_cast<long long>(args.dim)));
  if (d == DType::kF8E4M3 && args.dim > kGemmBlock)
    return Error(Format("indexer: fp8 heads of %lld; one exact block holds 128", static_cast<long long>(args.dim)));
  if (args.weights.rows != args.q.rows || args.weights.cols != args.heads)
    return Error("indexer: weights must be [tokens, heads]");
  if (args.key_scales.pool && args.key_scales.dtype != DType::kF32)
    return Error(Format("indexer: key scales are %s; F32 is needed", DTypeName(args.key_scales.dtype)));
  if (args.row_lens == nullptr && args.q.rows > 0) return Error("indexer: row_lens are needed");
  for (int64_t t = 0; t < args.q.rows; ++t)
    if (args.row_lens[t] > args.scores.cols)
      return Error(Format("indexer: token %lld sees %d keys, the score rows hold %lld", static_cast<long long>(t),
                          args.row_lens[t], static_cast<long long>(args.scores.cols)));
  return Ok();
}

}  // namespace samebits
