#include <algorithm>
#include <memory>

#include "ops/indexer/indexer.h"
#include "ops/indexer/indexer_simd.h"
#include "ops/op_dispatch.h"

namespace samebits {
namespace {

constexpr int64_t kGroup = 16;
constexpr int64_t kMostQuery = 1 << 14;  // heads * dim the kernel widens on its stack; V3.2 has 64 * 128 = 2^13

void IndexerCpu(const CpuContext& context, const IndexerArgs& args) {
  const auto token_kernel = SB_ISA_TABLE(IndexerToken).For(context);
  const auto widen = SB_ISA_TABLE(WidenKey).For(context);
  const int kind = args.q.dtype == DType::kF8E4M3 ? 0 : args.q.dtype == DType::kBF16 ? 1 : 2;
  const int64_t size = DTypeBits(args.q.dtype) / 8, dim = args.dim;
  int64_t most = 0;
  for (int64_t t = 0; t < args.q.rows; ++t) most = std::max<int64_t>(most, args.row_lens[t]);
  if (most == 0) return;
  const int64_t groups = (most + kGroup - 1) / kGroup;

  // Transposed once for all tokens of the call.
  const size_t cells = static_cast<size_t>(groups * kGroup * dim);
  const std::unique_ptr<double[]> keys64(kind == 0 ? new double[cells] : nullptr);
  const std::unique_ptr<float[]> keys32(kind == 0 ? nullptr : new float[cells]);
  const std::unique_ptr<float[]> scales(args.key_scales.pool ? new float[static_cast<size_t>(groups * kGroup)]
                                                             : nullptr);
  context.pool->Run(groups, (1 << 13) / (kGroup * dim) + 1, [&](int64_t begin, int64_t end) {
    const std::unique_ptr<float[]> row(new float[static_cast<size_t>(dim)]);
    for (int64_t s = begin * kGroup; s < std::min(end * kGroup, groups * kGroup); ++s) {
      const int64_t at = s / kGroup * dim * kGroup + s % kGroup;
      const bool present = s < most;
      if (present)
        widen(static_cast<const uint8_t*>(args.keys.pool) + args.keys.Slot(s) * args.keys.row_stride * size, kind, dim,
              row.get());
      for (int64_t d = 0; d < dim; ++d) {
        const float x = present ? row[static_cast<size_t>(d)] : 0.0f;
        if (kind == 0) {
          keys64[static_cast<size_t>(at + d * kGroup)] = static_cast<double>(x);
        } else {
          keys32[static_cast<size_t>(at + d * kGroup)] = x;
        }
      }
      if (scales) scales[static_cast<size_t>(s)] = present ? args.key_scales.Row<float>(s)[0] : 0.0f;
    }
  });

  const auto run = [&](int64_t t, int64_t group_begin, int64_t group_end) {
    const int64_t len = args.row_lens[t];
    const IndexerTask task{static_cast<const uint8_t*>(args.q.data) + t * args.q.stride * size,
                           kind,
                           args.weights.Row(t),
                           keys64.get(),
                           keys32.get(),
                           scales.get(),
                           args.heads,
                           dim};
    token_kernel(task, group_begin, std::min(group_end, (len + kGroup - 1) / kGroup), len, args.scores.Row(t));
  };
  if (args.q.rows < context.pool->threads()) {
    for (int64_t t = 0; t < args.q.rows; ++t)
      context.pool->Run(groups, (1 << 16) / (kGroup * dim * args.heads) + 1,
                        [&](int64_t begin, int64_t end) { run(t, begin, end); });
  } else {
    context.pool->Run(args.q.rows, 1, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) run(t, 0, groups);
    });
  }
}
void IndexerReference(const CpuContext&, const IndexerArgs& args) { IndexerRef(args); }

constexpr OpBackend<IndexerArgs> kBackends[] = {{"ref", IndexerReference}, {"cpu", IndexerCpu}};

}  // namespace

std::span<const OpBackend<IndexerArgs>> IndexerBackends() { return kBackends; }

Status Indexer(const CpuContext& context, const IndexerArgs& args) {
  SB_RETURN_IF_ERROR(CheckIndexer(args));
  if (args.heads * args.dim > kMostQuery) return Error("indexer: heads * dim above 16384 is not supported");
  IndexerCpu(context, args);
  return Ok();
}

}  // namespace samebits
