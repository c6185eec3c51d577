// The ops whose rule `prove --break` can switch off. Without a broken rule each is the plain call.
#include <algorithm>

#include "model/forward.h"

namespace samebits {

Status ForwardPass::RunGemms(std::span<const GemmArgs> batch, bool split_by_threads) {
  const bool by_threads = split_by_threads && Broken(&BreakRules::threads);
  const bool by_batch = Broken(&BreakRules::split_by_batch), twice = Broken(&BreakRules::double_rounding);
  if (!by_threads && !by_batch && !twice) return GemmBatch(context_, batch);
  for (const GemmArgs& g : batch) {
    GemmRule rule;
    // As tuned kernels do: few rows leave processors idle, so K is split until they are busy.
    if (by_batch) rule.splits = g.a.rows == 1 ? 4 : g.a.rows <= 8 ? 2 : 1;
    if (by_threads) rule.splits = context_.pool->threads();
    // Pieces shorter than the contract's blocks, or small models would hide the split.
    if (rule.splits > 1 && g.a.dtype != DType::kF8E4M3)
      rule.block = std::min<int64_t>(kGemmBlock / 2, (g.a.cols + rule.splits - 1) / rule.splits);
    rule.bf16_accumulator_store = twice && g.out.dtype == DType::kF32;
    if (rule.splits == 1 && !rule.bf16_accumulator_store) {
      SB_RETURN_IF_ERROR(Gemm(context_, g));
      continue;
    }
    SB_RETURN_IF_ERROR(CheckGemm(g));
    GemmRef(g, rule);
  }
  return Ok();
}

Status ForwardPass::RunTopk(TopkArgs args) {
  const bool unsorted = Broken(&BreakRules::topk_tie), sorted_late = Broken(&BreakRules::topk_set_sorted_late);
  if (!unsorted && !sorted_late) return Topk(context_, args);
  // Scores as engines with bf16 index scores have them: in fp32 a model of this size has few ties at the boundary.
  const View<float> rounded = b_.probe.Take<float>(args.scores.rows, args.scores.cols);
  for (int64_t r = 0; r < rounded.rows; ++r)
    for (int64_t c = 0; c < args.row_lens[r]; ++c) rounded.Row(r)[c] = ToF32(RoundToBF16(args.scores.Row(r)[c]));
  args.scores = rounded;
  // An unstable selection hands its list on best first, equals in any order.
  if (unsorted) args.output = TopkOutput::kByRank;
  SB_RETURN_IF_ERROR(CheckTopk(args));
  TopkRule rule;
  rule.shuffle_ties_seed = batch_->broken->seed | 1;
  TopkRef(args, rule);
  return Ok();
}

Status ForwardPass::RunRoute(const RouteArgs& args) {
  if (!Broken(&BreakRules::router_bf16)) return Route(context_, args);
  SB_RETURN_IF_ERROR(CheckRoute(args));
  RouteRule rule;
  rule.bf16_logits = true;
  RouteRef(args, rule);
  return Ok();
}

Status ForwardPass::RunAttention(const AttentionArgs& args, int64_t first_position) {
  const bool list_order = Broken(&BreakRules::index_order) || Broken(&BreakRules::topk_tie);
  const bool chunk = Broken(&BreakRules::chunk_blocks);
  if (!list_order && !chunk) return Attention(context_, args);
  SB_RETURN_IF_ERROR(CheckAttention(args));
  AttentionRule rule;
  rule.canonical_list = !list_order;
  rule.online = list_order;  // exact rescales alone would hide much of what an order does
  if (chunk) rule.block_offset = first_position % kAttentionBlock;
  AttentionRef(args, rule);
  return Ok();
}

}  // namespace samebits
