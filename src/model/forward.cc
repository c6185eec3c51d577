#include "model/forward.h"

#include <cstring>

#include "ops/embed/embed.h"
#include "ops/moe/moe.h"
#include "ops/norm/norm.h"
#include "ops/quant/quant.h"

namespace samebits {
namespace {

template <class T>
int64_t FirstUnsound(const ConstMat& m) {
  const View<const T> v = m.As<T>();
  for (int64_t r = 0; r < v.rows; ++r)
    for (int64_t c = 0; c < v.cols; ++c)
      if (!IsSound(ToF32(v.Row(r)[c]))) return r;
  return -1;
}

// First row that holds an element that is not sound, or -1.
int64_t FirstUnsoundRow(const ConstMat& m) {
  return m.dtype == DType::kBF16 ? FirstUnsound<BF16>(m) : FirstUnsound<float>(m);
}

}  // namespace

void ForwardPass::Begin(const ForwardBatch& batch, KvCache* cache) {
  batch_ = &batch;
  cache_ = cache;
  nan_row_ = -1;
  const int64_t n = rows();
  sequences_.clear();
  positions_.resize(n);
  kv_lens_.resize(n);
  for (int64_t r = 0; r < n; ++r) {
    positions_[r] = batch.owners[r].position;
    kv_lens_[r] = positions_[r] + 1;
    const bool same = r > 0 && batch.owners[r].request == batch.owners[r - 1].request &&
                      batch.page_tables[r] == batch.page_tables[r - 1];
    SB_CHECK(!same || positions_[r] == positions_[r - 1] + 1, "rows of a sequence must ascend by position");
    if (same)
      ++sequences_.back().count;
    else
      sequences_.push_back({r, 1});
  }
  residual_ = Act(&b_.residual, n, config_.hidden_size);
  x_ = Act(&b_.x, n, config_.hidden_size);
  normed_ = Act(&b_.normed, n, config_.hidden_size);
}

bool ForwardPass::AnyFp8(std::initializer_list<const PackedWeight*> weights) {
  for (const PackedWeight* w : weights)
    if (!w->empty() && w->dtype() == DType::kF8E4M3) return true;
  return false;
}

Result<Activation> ForwardPass::Prepare(const Mat& values, bool quantise, Buffer* q8, Buffer* scales) {
  Activation a;
  a.values = values;
  if (!quantise) return a;
  QuantArgs q;
  q.x = values;
  q.power_of_two = config_.ue8m0_scales;
  q.values = q8->Take<E4M3>(values.rows, values.cols);
  q.scales = scales->Take<float>(values.rows, (values.cols + kQuantGroup - 1) / kQuantGroup);
  SB_RETURN_IF_ERROR(Quant(context_, q));
  a.quantised = q.values;
  a.scales = q.scales;
  return a;
}

GemmArgs ForwardPass::Linear(const Activation& in, const PackedWeight& weight, Mat out) {
  GemmArgs g;
  const bool fp8 = weight.dtype() == DType::kF8E4M3;
  g.a = fp8 ? in.quantised : in.values;
  if (fp8) g.a_scale = in.scales;
  g.b = &weight;
  g.out = out;
  return g;
}

void ForwardPass::ProbeHeads(Site site, int layer, const ConstMat& m, int64_t heads, int64_t offset, int64_t width) {
  if (!Wants(site, layer)) return;
  const Mat packed = b_.probe.Take(m.dtype, m.rows, heads * width);
  const int64_t head_stride = m.cols / heads, size = DTypeBits(m.dtype) / 8;
  for (int64_t r = 0; r < m.rows; ++r)
    for (int64_t h = 0; h < heads; ++h)
      std::memcpy(static_cast<uint8_t*>(packed.data) + (r * heads + h) * width * size,
                  static_cast<const uint8_t*>(m.data) + (r * m.stride + h * head_stride + offset) * size, width * size);
  Probe(site, layer, packed);
}

// Adds x to the residual stream (V3.2: the norm reads the unrounded sum; V3: the rounded one) and norms it.
Status ForwardPass::AddNorm(bool add, const std::vector<float>& weight, bool has_previous_layer, int layer, Site site) {
  RmsNormArgs n;
  n.x = residual_;
  if (add) {
    n.x = x_;
    n.residual = residual_;
    n.residual_out = residual_;
  }
  n.weight = weight.data();
  n.eps = config_.norm_eps;
  n.norm_of_rounded_sum = config_.family == ModelFamily::kV3 && profile_.norm_of_rounded_sum_v3;
  n.out = normed_;
  SB_RETURN_IF_ERROR(RmsNorm(context_, n));
  if (has_previous_layer) Probe(Site::kHidden, site == Site::kFinal ? config_.num_layers - 1 : layer - 1, residual_);
  if (site == Site::kAttnNorm) Probe(Site::kHiddenIn, layer, residual_);
  Probe(site, layer, normed_);
  return Ok();
}

Status ForwardPass::Head(std::vector<float>* logits, int64_t* bad_row) {
  SB_RETURN_IF_ERROR(AddNorm(true, weights_.final_norm, true, -1, Site::kFinal));
  // What is not sound anywhere in a row stays in its residual stream to the end.
  *bad_row = nan_row_ >= 0 ? nan_row_ : FirstUnsoundRow(residual_);
  const std::span<const int32_t> wanted = batch_->logit_rows;
  const int64_t count = static_cast<int64_t>(wanted.size());
  logits->resize(count * config_.vocab_size);
  if (count == 0) return Ok();
  Activation in;
  in.values = normed_;
  if (count != rows()) {
    const Mat picked = Act(&b_.head_in, count, config_.hidden_size);
    SB_RETURN_IF_ERROR(GatherRows(context_, {normed_, wanted.data(), picked}));
    in.values = picked;
  }
  const View<float> out(logits->data(), count, config_.vocab_size);
  SB_RETURN_IF_ERROR(RunGemm(Linear(in, weights_.head, out)));
  if (Wants(Site::kLogits, -1)) {
    std::vector<RowOwner> owners;
    for (int32_t r : wanted) owners.push_back(batch_->owners[r]);
    PROBE(batch_->probe, Site::kLogits, -1,
          {out.data, DType::kF32, out.rows, out.cols, out.stride, nullptr, owners.data()});
  }
  if (*bad_row < 0) {
    const int64_t bad = FirstUnsoundRow(out);
    if (bad >= 0) *bad_row = wanted[bad];
  }
  return Ok();
}

Status ForwardPass::Run(const ForwardBatch& batch, KvCache* cache, std::vector<float>* logits, int64_t* bad_row) {
  Begin(batch, cache);
  EmbedArgs e;
  e.ids = batch.tokens.data();
  e.table = weights_.embed;
  e.out = residual_;
  SB_RETURN_IF_ERROR(Embed(context_, e));
  Probe(Site::kEmbed, -1, residual_);
  for (int layer = 0; layer < config_.num_layers; ++layer) {
    const LayerWeights& w = weights_.layers[layer];
    SB_RETURN_IF_ERROR(AddNorm(layer > 0, w.attn_norm, layer > 0, layer, Site::kAttnNorm));
    SB_RETURN_IF_ERROR(Attend(layer));
    SB_RETURN_IF_ERROR(AddNorm(true, w.mlp_norm, false, layer, Site::kMlpNorm));
    SB_RETURN_IF_ERROR(Mlp(layer));
    Probe(Site::kMlpOut, layer, x_);
  }
  return Head(logits, bad_row);
}

}  // namespace samebits
