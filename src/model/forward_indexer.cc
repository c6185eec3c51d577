// The lightning indexer of V3.2 and its selection (spec 5.2, 5.3).
#include <algorithm>
#include <cstring>

#include "model/forward.h"
#include "ops/hadamard/hadamard.h"
#include "ops/indexer/indexer.h"
#include "ops/norm/norm.h"
#include "ops/quant/quant.h"

namespace samebits {
namespace {

// Score rows are made and selected from in groups of at most this many scores (64 MB).
constexpr int64_t kScoreBudget = int64_t{1} << 24;

uint64_t Mix(uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// `heads` heads of `dim` columns as rows of their own.
Mat PerHead(const Mat& m, int64_t heads) {
  Mat r = m;
  r.rows = m.rows * heads, r.cols = r.stride = m.cols / heads;
  return r;
}

void Shuffle(int32_t* list, int64_t count, uint64_t seed) {
  for (int64_t i = count - 1; i > 0; --i) {
    seed = Mix(seed);
    std::swap(list[i], list[seed % static_cast<uint64_t>(i + 1)]);
  }
}

}  // namespace

// The key of every token, and its row in the cache.
Status ForwardPass::IndexKeys(int layer) {
  const LayerWeights& w = weights_.layers[layer];
  const int64_t n = rows(), dim = config_.index_dim;
  const Mat key = Act(&b_.index_k, n, dim);
  const View<float> weights = b_.index_weights.Take<float>(n, config_.index_heads);
  gemms_ = {Linear(normed_in_, w.index_k, key), Linear(normed_in_, w.index_weights, weights)};
  SB_RETURN_IF_ERROR(RunGemms(gemms_));
  LayerNormArgs norm;
  norm.x = norm.out = key;
  norm.weight = w.index_norm_weight.data();
  norm.bias = w.index_norm_bias.data();
  SB_RETURN_IF_ERROR(LayerNorm(context_, norm));
  RopeArgs rotate;
  rotate.x = key;
  rotate.head_stride = dim;
  rotate.positions = positions_.data();
  rotate.table = &rope_;
  rotate.layout = RopeLayout::kHalfSplit;
  SB_RETURN_IF_ERROR(Rope(context_, rotate));
  if (profile_.index_hadamard) SB_RETURN_IF_ERROR(Hadamard(context_, {key, dim, key}));
  Probe(Site::kIndexK, layer, key);

  const Mat keys = cache_->IndexKeys(layer), scales = cache_->IndexScales(layer);
  QuantArgs q;
  if (profile_.index_fp8) {
    q.x = key;
    q.power_of_two = config_.ue8m0_scales;
    q.values = b_.index_k8.Take<E4M3>(n, dim);
    q.scales = b_.index_k_scale.Take<float>(n, 1);
    SB_RETURN_IF_ERROR(Quant(context_, q));
  }
  const void* source = profile_.index_fp8 ? q.values.data : key.data;
  const int64_t bytes = dim * DTypeBits(keys.dtype) / 8;
  for (int64_t r = 0; r < n; ++r) {
    const int64_t slot = cache_->IndexKeyRows(layer, batch_->page_tables[r]).Slot(positions_[r]);
    std::memcpy(static_cast<uint8_t*>(keys.data) + slot * bytes, static_cast<const uint8_t*>(source) + r * bytes,
                bytes);
    if (profile_.index_fp8) static_cast<float*>(scales.data)[slot] = q.scales.data[r];
  }
  if (Wants(Site::kIndexKRow, layer)) {  // value and scale in one number: what the row stands for
    const View<float> row = b_.probe.Take<float>(n, dim);
    for (int64_t r = 0; r < n; ++r)
      for (int64_t c = 0; c < dim; ++c)
        row.Row(r)[c] = profile_.index_fp8 ? DequantValue(q.values.Row(r)[c], q.scales.data[r]) : MatAt(key, r, c);
    Probe(Site::kIndexKRow, layer, ConstMat(row));
  }
  return Ok();
}

// The queries (quantised per head) and the head weights with every scale folded in.
Status ForwardPass::IndexQueries(int layer) {
  const LayerWeights& w = weights_.layers[layer];
  const int64_t n = rows(), heads = config_.index_heads, dim = config_.index_dim;
  const Mat query = Act(&b_.index_q, n, heads * dim);
  SB_RETURN_IF_ERROR(RunGemm(Linear(query_in_, w.index_q, query)));
  RopeArgs rotate;
  rotate.x = query;
  rotate.heads = heads;
  rotate.head_stride = dim;
  rotate.positions = positions_.data();
  rotate.table = &rope_;
  rotate.layout = RopeLayout::kHalfSplit;
  SB_RETURN_IF_ERROR(Rope(context_, rotate));
  if (profile_.index_hadamard) SB_RETURN_IF_ERROR(Hadamard(context_, {query, dim, query}));
  Probe(Site::kIndexQ, layer, query);

  const View<float> scales = b_.index_q_scale.Take<float>(n * heads, 1);
  if (profile_.index_fp8) {
    QuantArgs q;
    q.x = PerHead(query, heads);
    q.power_of_two = config_.ue8m0_scales;
    q.values = b_.index_q8.Take<E4M3>(n * heads, dim);
    q.scales = scales;
    SB_RETURN_IF_ERROR(Quant(context_, q));
  }
  // DeepSeek's order (spec 5.2): times heads^-1/2, times q's scale, times dim^-1/2.
  const View<float> weights = b_.index_weights.Take<float>(n, heads);
  const float by_heads = Div(1.0f, Sqrt(static_cast<float>(heads)));
  const float by_dim = Div(1.0f, Sqrt(static_cast<float>(dim)));
  for (int64_t i = 0; i < n * heads; ++i) {
    float x = Mul(weights.data[i], by_heads);
    if (profile_.index_fp8) x = Mul(x, scales.data[i]);
    weights.data[i] = Mul(x, by_dim);
  }
  Probe(Site::kIndexWeights, layer, ConstMat(weights));
  return Ok();
}

// Scores and lists of rows [begin, end).
Status ForwardPass::ScoreAndSelect(int layer, int64_t begin, int64_t end, View<int32_t> lists) {
  const int64_t heads = config_.index_heads, dim = config_.index_dim, count = end - begin;
  const int64_t width = *std::max_element(kv_lens_.begin() + begin, kv_lens_.begin() + end);
  const View<float> scores = b_.scores.Take<float>(count, width);
  const ConstMat query = profile_.index_fp8 ? ConstMat(b_.index_q8.Take<E4M3>(rows(), heads * dim))
                                            : ConstMat(Act(&b_.index_q, rows(), heads * dim));
  const View<const float> weights = b_.index_weights.Take<float>(rows(), heads);
  for (const Sequence& s : sequences_) {
    const int64_t from = std::max(begin, s.begin), to = std::min(end, s.begin + s.count);
    if (from >= to) continue;
    IndexerArgs a;
    a.q = query.Rows(from, to - from);
    a.heads = heads, a.dim = dim;
    a.weights = weights.Rows(from, to - from);
    a.keys = cache_->IndexKeyRows(layer, batch_->page_tables[from]);
    if (profile_.index_fp8) a.key_scales = cache_->IndexScaleRows(layer, batch_->page_tables[from]);
    a.row_lens = kv_lens_.data() + from;
    a.scores = scores.Rows(from - begin, to - from);
    SB_RETURN_IF_ERROR(Indexer(context_, a));
  }
  Probe(Site::kIndexScores, layer, ConstMat(scores), kv_lens_.data() + begin, begin);
  TopkArgs t;
  t.scores = scores;
  t.row_lens = kv_lens_.data() + begin;
  t.indices = lists.Rows(begin, count);
  t.nan_counts = b_.nan_counts.Take<int32_t>(count, 1).data;
  SB_RETURN_IF_ERROR(RunTopk(t));
  for (int64_t r = 0; r < count && nan_row_ < 0; ++r)
    if (t.nan_counts[r] > 0) nan_row_ = begin + r;
  return Ok();
}

// Any order of a list means the same set; this makes the order arbitrary, so that `prove` can show it.
void ForwardPass::ShuffleLists(int layer, View<int32_t> lists) {
  const uint64_t seed = Broken(&BreakRules::index_order) ? batch_->broken->seed : batch_->shuffle_index_lists;
  int64_t changed = 0;
  for (int64_t r = 0; r < lists.rows; ++r) {
    int32_t* list = lists.Row(r);
    const int64_t count = std::min<int64_t>(kv_lens_[r], lists.cols);
    const RowOwner& owner = batch_->owners[r];
    Shuffle(list, count,
            Mix(seed ^ Mix(static_cast<uint64_t>(owner.request) << 32 ^ static_cast<uint64_t>(layer))) ^
                static_cast<uint64_t>(owner.position));
    changed += !std::is_sorted(list, list + count);
  }
  if (batch_->index_lists_shuffled) *batch_->index_lists_shuffled += changed;
}

Status ForwardPass::Select(int layer, View<const int32_t>* lists_out) {
  SB_RETURN_IF_ERROR(IndexKeys(layer));
  const bool every_score = Wants(Site::kIndexScores, layer);
  const int64_t n = rows(), k = config_.index_topk;
  const bool any_long = *std::max_element(kv_lens_.begin(), kv_lens_.end()) > k;
  // A token that sees no more than k positions attends to all of them, whatever the scores.
  if (every_score || any_long || Wants(Site::kIndexQ, layer) || Wants(Site::kIndexWeights, layer))
    SB_RETURN_IF_ERROR(IndexQueries(layer));
  const View<int32_t> lists = b_.topk.Take<int32_t>(n, k);
  const auto scored = [&](int64_t r) { return every_score || kv_lens_[r] > k; };
  for (int64_t r = 0; r < n;) {
    if (!scored(r)) {
      int32_t* list = lists.Row(r);
      for (int64_t i = 0; i < k; ++i) list[i] = i < kv_lens_[r] ? static_cast<int32_t>(i) : -1;
      ++r;
      continue;
    }
    int64_t end = r + 1, width = kv_lens_[r];
    while (end < n && scored(end)) {
      const int64_t wider = std::max<int64_t>(width, kv_lens_[end]);
      if (wider * (end + 1 - r) > kScoreBudget) break;
      width = wider;
      ++end;
    }
    SB_RETURN_IF_ERROR(ScoreAndSelect(layer, r, end, lists));
    r = end;
  }
  if (Broken(&BreakRules::index_order)) ShuffleLists(layer, lists);
  Probe(Site::kTopk, layer, ConstMat(View<const int32_t>(lists)));
  if (batch_->shuffle_index_lists && !Broken(&BreakRules::index_order)) ShuffleLists(layer, lists);
  *lists_out = lists;
  return Ok();
}

}  // namespace samebits
