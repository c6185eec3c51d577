// One step of the forward pass of V3 and V3.2 (spec sections 4 and 5), always in absorbed form, so that prefill, decode
// and verification are the same arithmetic. Every rounding point is the dtype of the buffer an op writes to.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "model/model.h"
#include "model/weights.h"
#include "ops/attention/attention.h"
#include "ops/route/route.h"
#include "ops/topk/topk.h"

namespace samebits {

// Memory that grows to the largest step and is reused. Contents are stale: whoever takes a matrix writes all of it.
class Buffer {
 public:
  Mat Take(DType dtype, int64_t rows, int64_t cols) {
    const size_t need = static_cast<size_t>(rows * cols * DTypeBits(dtype) / 8);
    if (bytes_.size() < need) bytes_.resize(need);
    Mat m;
    m.data = bytes_.data(), m.dtype = dtype, m.rows = rows, m.cols = cols, m.stride = cols;
    return m;
  }
  template <class T>
  View<T> Take(int64_t rows, int64_t cols) {
    return Take(DTypeOf<T>::value, rows, cols).template As<T>();
  }

 private:
  std::vector<uint8_t> bytes_;
};

// False for NaN, infinities and numbers whose squares could overflow the sum of a norm (rows have up to 2^20 elements),
// which would then give zeros. No activation of a sound model comes near.
inline bool IsSound(float x) { return x < 0x1p50f && x > -0x1p50f; }

struct StepBuffers {
  Buffer residual, x, normed, normed_q8, normed_scale, probe;
  Buffer q_a, q_norm, q_norm_q8, q_norm_scale, q_b, query, kv_a, kv_row, mqa, lse, heads_out, heads_q8, heads_scale;
  Buffer index_q, index_q8, index_q_scale, index_k, index_k8, index_k_scale, index_weights, scores, nan_counts, topk;
  Buffer router, experts, expert_weights, gathered, gathered_scale, gate, up, gate_q8, gate_scale, expert_out;
  Buffer shared_gate, shared_up, shared_q8, shared_scale, shared_out, head_in, logits;
};

// Rows of a linear's input: as they are, and quantised where a weight is fp8.
struct Activation {
  ConstMat values;
  ConstMat quantised;  // E4M3, or none
  View<const float> scales;
};

class ForwardPass {
 public:
  ForwardPass(const ModelConfig& config, const Profile& profile, bool dense, const ModelWeights& weights,
              const RopeTable& rope, const CpuContext& context, StepBuffers* buffers)
      : config_(config),
        profile_(profile),
        dense_(dense),
        weights_(weights),
        rope_(rope),
        context_(context),
        b_(*buffers) {}
  // A row whose result is not sound sets *bad_row (else -1); the status is then ok.
  Status Run(const ForwardBatch& batch, KvCache* cache, std::vector<float>* logits, int64_t* bad_row);

 private:
  struct Sequence {  // its consecutive rows in this step
    int64_t begin, count;
  };

  // forward.cc
  void Begin(const ForwardBatch& batch, KvCache* cache);
  Status AddNorm(bool add, const std::vector<float>& weight, bool has_previous_layer, int layer, Site site);
  Status Head(std::vector<float>* logits, int64_t* bad_row);
  // forward_attention.cc: reads normed, writes x.
  Status Attend(int layer);
  Status Queries(int layer);
  Status KeyRows(int layer);
  Status CallAttention(int layer, View<const int32_t> lists);
  // forward_indexer.cc
  Status Select(int layer, View<const int32_t>* lists);
  Status IndexKeys(int layer);
  Status IndexQueries(int layer);
  Status ScoreAndSelect(int layer, int64_t begin, int64_t end, View<int32_t> lists);
  void ShuffleLists(int layer, View<int32_t> lists);
  // forward_moe.cc: reads normed, writes x.
  Status Mlp(int layer);
  Status DenseMlp(const MlpWeights& mlp, const Activation& in, Mat out);
  Status Experts(int layer, const Activation& in, View<const int32_t> experts, View<const float> weights);

  // forward_rules.cc: the ops whose rule `prove --break` can switch.
  Status RunGemms(std::span<const GemmArgs> batch, bool split_by_threads = false);
  Status RunGemm(const GemmArgs& args) { return RunGemms({&args, 1}); }
  Status RunTopk(TopkArgs args);
  Status RunRoute(const RouteArgs& args);
  Status RunAttention(const AttentionArgs& args, int64_t first_position);
  bool Broken(bool BreakRules::* rule) const { return batch_->broken && batch_->broken->*rule; }

  static bool AnyFp8(std::initializer_list<const PackedWeight*> weights);
  Result<Activation> Prepare(const Mat& values, bool quantise, Buffer* q8, Buffer* scales);
  static GemmArgs Linear(const Activation& in, const PackedWeight& weight, Mat out);

  // Rows [begin, begin + m.rows) of the step.
  void Probe(Site site, int layer, const ConstMat& m, const int32_t* lens = nullptr, int64_t begin = 0) const {
    PROBE(batch_->probe, site, layer, {m.data, m.dtype, m.rows, m.cols, m.stride, lens, batch_->owners.data() + begin});
  }
  bool Wants(Site site, int layer) const { return batch_->probe && batch_->probe->Wants(site, layer); }
  // The same `width` columns of every head, side by side.
  void ProbeHeads(Site site, int layer, const ConstMat& m, int64_t heads, int64_t offset, int64_t width);

  int64_t rows() const { return static_cast<int64_t>(batch_->tokens.size()); }
  Mat Act(Buffer* buffer, int64_t rows, int64_t cols) const { return buffer->Take(profile_.activation, rows, cols); }

  const ModelConfig& config_;
  const Profile& profile_;
  const bool dense_;
  const ModelWeights& weights_;
  const RopeTable& rope_;
  const CpuContext& context_;
  StepBuffers& b_;
  const ForwardBatch* batch_ = nullptr;
  KvCache* cache_ = nullptr;
  std::vector<Sequence> sequences_;
  std::vector<int32_t> positions_, kv_lens_;
  std::vector<GemmArgs> gemms_;
  std::vector<PagedRows> paged_;
  Mat residual_, x_, normed_;
  Activation normed_in_, query_in_;
  int64_t nan_row_ = -1;  // a row whose index scores held a NaN
};

}  // namespace samebits
