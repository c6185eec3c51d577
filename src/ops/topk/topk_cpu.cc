#include <algorithm>
#include <memory>

#include "ops/op_dispatch.h"
#include "ops/topk/topk.h"
#include "ops/topk/topk_simd.h"

namespace samebits {
namespace {

void TopkCpu(const CpuContext& context, const TopkArgs& args) {
  const auto kernel = SB_ISA_TABLE(TopkRow).For(context);
  const int64_t k = args.indices.cols;
  context.pool->Run(args.scores.rows, (1 << 14) / (args.scores.cols + 1) + 1, [&](int64_t begin, int64_t end) {
    const std::unique_ptr<uint32_t[]> keys(new uint32_t[static_cast<size_t>(2 * (args.scores.cols + 16))]);
    for (int64_t r = begin; r < end; ++r) {
      const int64_t start = args.row_starts ? args.row_starts[r] : 0;
      const int64_t len = args.row_lens ? args.row_lens[r] : args.scores.cols - start;
      const float* scores = args.scores.Row(r) + (len > 0 ? start : 0);
      int32_t* out = args.indices.Row(r);
      const int64_t chosen =
          kernel(scores, len > 0 ? len : 0, k, keys.get(), out, args.nan_counts ? args.nan_counts + r : nullptr);
      if (args.output == TopkOutput::kByRank)
        std::sort(out, out + chosen, [&](int32_t a, int32_t b) { return Before({scores[a], a}, {scores[b], b}); });
    }
  });
}
void TopkReference(const CpuContext&, const TopkArgs& args) { TopkRef(args); }

constexpr OpBackend<TopkArgs> kBackends[] = {{"ref", TopkReference}, {"cpu", TopkCpu}};

}  // namespace

std::span<const OpBackend<TopkArgs>> TopkBackends() { return kBackends; }

Status Topk(const CpuContext& context, const TopkArgs& args) {
  SB_RETURN_IF_ERROR(CheckTopk(args));
  TopkCpu(context, args);
  return Ok();
}

Status PageTransform(const CpuContext&, const PageTransformArgs& args) {
  SB_RETURN_IF_ERROR(CheckPageTransform(args));
  PageTransformRef(args);
  return Ok();
}

}  // namespace samebits
