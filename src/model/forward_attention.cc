// Multi-head latent attention in absorbed form (spec 4.2, 4.3, 4.6, 5.1, 5.4).
#include <cstring>

#include "model/forward.h"
#include "ops/norm/norm.h"
#include "ops/quant/quant.h"

namespace samebits {

// q_a, kv_a and the query: query_ holds per head [absorbed nope part | rotated part].
Status ForwardPass::Queries(int layer) {
  const LayerWeights& w = weights_.layers[layer];
  const int64_t n = rows(), heads = config_.num_heads, nope = config_.nope_dim, rope = config_.rope_dim;
  const int64_t latent = config_.kv_lora_rank, head_in = nope + rope, head_out = latent + rope;
  SB_ASSIGN(normed_in_, Prepare(normed_, AnyFp8({&w.q_a, &w.kv_a, &w.index_k}), &b_.normed_q8, &b_.normed_scale));

  const Mat q_a = Act(&b_.q_a, n, config_.q_lora_rank), kv_a = Act(&b_.kv_a, n, head_out);
  gemms_ = {Linear(normed_in_, w.q_a, q_a), Linear(normed_in_, w.kv_a, kv_a)};
  SB_RETURN_IF_ERROR(RunGemms(gemms_));
  Probe(Site::kQA, layer, q_a);
  const Mat q_norm = Act(&b_.q_norm, n, config_.q_lora_rank);
  RmsNormArgs norm;
  norm.x = q_a, norm.weight = w.q_a_norm.data(), norm.eps = config_.norm_eps, norm.out = q_norm;
  SB_RETURN_IF_ERROR(RmsNorm(context_, norm));
  Probe(Site::kQANorm, layer, q_norm);
  SB_ASSIGN(query_in_, Prepare(q_norm, AnyFp8({&w.q_b, &w.index_q}), &b_.q_norm_q8, &b_.q_norm_scale));

  const Mat q_b = Act(&b_.q_b, n, heads * head_in);
  SB_RETURN_IF_ERROR(RunGemm(Linear(query_in_, w.q_b, q_b)));
  Probe(Site::kQB, layer, q_b);

  const Mat query = Act(&b_.query, n, heads * head_out);
  gemms_.clear();
  for (int64_t h = 0; h < heads; ++h) {
    Activation part;
    part.values = ConstMat(q_b).Cols(h * head_in, nope);
    gemms_.push_back(Linear(part, w.w_kc[h], query.Cols(h * head_out, latent)));
  }
  SB_RETURN_IF_ERROR(RunGemms(gemms_));
  const int64_t size = DTypeBits(query.dtype) / 8;
  for (int64_t r = 0; r < n; ++r)
    for (int64_t h = 0; h < heads; ++h)
      std::memcpy(static_cast<uint8_t*>(query.data) + (r * query.stride + h * head_out + latent) * size,
                  static_cast<const uint8_t*>(q_b.data) + (r * q_b.stride + h * head_in + nope) * size, rope * size);
  RopeArgs rotate;
  rotate.x = query;
  rotate.heads = heads;
  rotate.head_stride = head_out;
  rotate.offset = latent;
  rotate.positions = positions_.data();
  rotate.table = &rope_;
  SB_RETURN_IF_ERROR(Rope(context_, rotate));
  ProbeHeads(Site::kBmmWkc, layer, query, heads, 0, latent);
  ProbeHeads(Site::kQRope, layer, query, heads, latent, rope);
  return Ok();
}

// The cache row of every token: normed latent (V3.2: through E4M3), rotated key.
Status ForwardPass::KeyRows(int layer) {
  const LayerWeights& w = weights_.layers[layer];
  const int64_t n = rows(), latent = config_.kv_lora_rank, rope = config_.rope_dim;
  const Mat kv_a = Act(&b_.kv_a, n, latent + rope), row = Act(&b_.kv_row, n, latent + rope);
  Probe(Site::kKvA, layer, kv_a);
  RmsNormArgs norm;
  norm.x = ConstMat(kv_a).Cols(0, latent);
  norm.weight = w.kv_a_norm.data(), norm.eps = config_.norm_eps;
  norm.out = row.Cols(0, latent);
  SB_RETURN_IF_ERROR(RmsNorm(context_, norm));
  Probe(Site::kKvNorm, layer, norm.out);
  if (config_.sparse() && profile_.latent_round_trip) {
    QuantArgs q;
    q.x = norm.out;
    q.power_of_two = config_.ue8m0_scales;
    q.round_trip = norm.out;
    SB_RETURN_IF_ERROR(Quant(context_, q));
  }
  const int64_t size = DTypeBits(row.dtype) / 8, bytes = (latent + rope) * size;
  for (int64_t r = 0; r < n; ++r)
    std::memcpy(static_cast<uint8_t*>(row.data) + r * bytes + latent * size,
                static_cast<const uint8_t*>(kv_a.data) + r * bytes + latent * size, rope * size);
  RopeArgs rotate;
  rotate.x = row;
  rotate.head_stride = latent + rope;
  rotate.offset = latent;
  rotate.positions = positions_.data();
  rotate.table = &rope_;
  SB_RETURN_IF_ERROR(Rope(context_, rotate));
  Probe(Site::kKRope, layer, ConstMat(row).Cols(latent, rope));
  Probe(Site::kKvRow, layer, row);
  const Mat cache = cache_->Latent(layer);
  for (int64_t r = 0; r < n; ++r) {
    const int64_t slot = cache_->LatentRows(layer, batch_->page_tables[r]).Slot(positions_[r]);
    std::memcpy(static_cast<uint8_t*>(cache.data) + slot * bytes, static_cast<uint8_t*>(row.data) + r * bytes, bytes);
  }
  return Ok();
}

// Attention over the lists (empty: dense), in one call, or one per sequence where a broken rule needs its position.
Status ForwardPass::CallAttention(int layer, View<const int32_t> lists) {
  const int64_t heads = config_.num_heads, latent = config_.kv_lora_rank, dim = latent + config_.rope_dim;
  const Mat query = Act(&b_.query, rows(), heads * dim), mqa = Act(&b_.mqa, rows(), heads * latent);
  const bool wants_lse = Wants(Site::kLse, layer);
  const View<float> lse = b_.lse.Take<float>(rows(), heads);
  paged_.clear();
  for (int64_t r = 0; r < rows(); ++r) paged_.push_back(cache_->LatentRows(layer, batch_->page_tables[r]));

  const auto call = [&](int64_t begin, int64_t count) {
    AttentionArgs a;
    a.q = ConstMat(query).Rows(begin, count);
    a.heads = heads, a.dim = dim, a.value_dim = latent;
    if (sequences_.size() == 1) {
      a.keys = a.values = paged_[begin];
    } else {
      a.keys_per_token = a.values_per_token = paged_.data() + begin;
    }
    a.kv_lens = kv_lens_.data() + begin;
    if (!lists.empty()) a.indices = lists.Rows(begin, count);
    a.scale = config_.attention_scale;
    a.out = mqa.Rows(begin, count);
    a.lse = wants_lse ? lse.Row(begin) : nullptr;
    return RunAttention(a, positions_[begin]);
  };
  if (Broken(&BreakRules::chunk_blocks)) {
    for (const Sequence& s : sequences_) SB_RETURN_IF_ERROR(call(s.begin, s.count));
  } else {
    SB_RETURN_IF_ERROR(call(0, rows()));
  }
  Probe(Site::kMqa, layer, mqa);
  if (wants_lse) Probe(Site::kLse, layer, ConstMat(lse));
  return Ok();
}

Status ForwardPass::Attend(int layer) {
  const LayerWeights& w = weights_.layers[layer];
  const int64_t n = rows(), heads = config_.num_heads, latent = config_.kv_lora_rank, v_dim = config_.v_dim;
  SB_RETURN_IF_ERROR(Queries(layer));
  SB_RETURN_IF_ERROR(KeyRows(layer));
  View<const int32_t> lists;
  if (config_.sparse() && !dense_) SB_RETURN_IF_ERROR(Select(layer, &lists));
  SB_RETURN_IF_ERROR(CallAttention(layer, lists));

  const Mat mqa = Act(&b_.mqa, n, heads * latent), out = Act(&b_.heads_out, n, heads * v_dim);
  gemms_.clear();
  for (int64_t h = 0; h < heads; ++h) {
    Activation part;
    part.values = ConstMat(mqa).Cols(h * latent, latent);
    gemms_.push_back(Linear(part, w.w_vc[h], out.Cols(h * v_dim, v_dim)));
  }
  SB_RETURN_IF_ERROR(RunGemms(gemms_));
  Probe(Site::kBmmWkv, layer, out);
  SB_ASSIGN(const Activation in, Prepare(out, AnyFp8({&w.o}), &b_.heads_q8, &b_.heads_scale));
  const GemmArgs o_proj = Linear(in, w.o, x_);
  SB_RETURN_IF_ERROR(RunGemms({&o_proj, 1}, /*split_by_threads=*/true));
  Probe(Site::kOProj, layer, x_);
  return Ok();
}

}  // namespace samebits
