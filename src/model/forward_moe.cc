// Dense MLP, router and experts (spec 4.8 - 4.10).

#include "model/forward.h"
#include "ops/elementwise/elementwise.h"
#include "ops/moe/moe.h"

namespace samebits {

Status ForwardPass::DenseMlp(const MlpWeights& mlp, const Activation& in, Mat out) {
  const int64_t n = rows();
  const Mat gate = Act(&b_.shared_gate, n, mlp.gate.n()), up = Act(&b_.shared_up, n, mlp.up.n());
  const GemmArgs gate_up[] = {Linear(in, mlp.gate, gate), Linear(in, mlp.up, up)};
  SB_RETURN_IF_ERROR(RunGemms(gate_up));
  SB_RETURN_IF_ERROR(Swiglu(context_, {gate, up, gate}));
  SB_ASSIGN(const Activation z, Prepare(gate, AnyFp8({&mlp.down}), &b_.shared_q8, &b_.shared_scale));
  return RunGemm(Linear(z, mlp.down, out));
}

Status ForwardPass::Experts(int layer, const Activation& in, View<const int32_t> experts, View<const float> weights) {
  const LayerWeights& w = weights_.layers[layer];
  const int64_t n = rows(), k = config_.experts_per_token, width = config_.moe_intermediate_size;
  const int64_t hidden = config_.hidden_size;
  const MoeDispatch plan = PlanDispatch(experts, config_.n_experts);

  // Every expert's rows side by side; quantised once per token, before they are copied.
  const bool fp8 = AnyFp8({&w.experts[0].gate});
  Activation all;
  const Mat gathered = b_.gathered.Take(fp8 ? DType::kF8E4M3 : profile_.activation, n * k, hidden);
  SB_RETURN_IF_ERROR(GatherRows(context_, {fp8 ? in.quantised : in.values, plan.token.data(), gathered}));
  if (fp8) {
    const View<float> scales = b_.gathered_scale.Take<float>(n * k, in.scales.cols);
    SB_RETURN_IF_ERROR(GatherRows(context_, {ConstMat(in.scales), plan.token.data(), scales}));
    all.scales = scales;
    all.quantised = gathered;
  } else {
    all.values = gathered;
  }
  const auto rows_of = [&](const Activation& a, int64_t begin, int64_t count) {
    Activation part;
    if (a.values) part.values = a.values.Rows(begin, count);
    if (a.quantised) part.quantised = a.quantised.Rows(begin, count), part.scales = a.scales.Rows(begin, count);
    return part;
  };
  const auto each_expert = [&](auto&& add) {
    gemms_.clear();
    for (int64_t e = 0; e < config_.n_experts; ++e)
      if (const int64_t count = plan.begin[e + 1] - plan.begin[e]; count > 0) add(w.experts[e], plan.begin[e], count);
  };

  const Mat gate = Act(&b_.gate, n * k, width), up = Act(&b_.up, n * k, width);
  each_expert([&](const MlpWeights& e, int64_t begin, int64_t count) {
    const Activation part = rows_of(all, begin, count);
    gemms_.push_back(Linear(part, e.gate, gate.Rows(begin, count)));
    gemms_.push_back(Linear(part, e.up, up.Rows(begin, count)));
  });
  SB_RETURN_IF_ERROR(RunGemms(gemms_));
  SB_RETURN_IF_ERROR(Swiglu(context_, {gate, up, gate}));
  SB_ASSIGN(const Activation z, Prepare(gate, AnyFp8({&w.experts[0].down}), &b_.gate_q8, &b_.gate_scale));
  const Mat out = Act(&b_.expert_out, n * k, hidden);
  each_expert([&](const MlpWeights& e, int64_t begin, int64_t count) {
    gemms_.push_back(Linear(rows_of(z, begin, count), e.down, out.Rows(begin, count)));
  });
  SB_RETURN_IF_ERROR(RunGemms(gemms_));
  if (Wants(Site::kExpertOut, layer)) {
    const Mat by_token = b_.probe.Take(out.dtype, n * k, hidden);
    SB_RETURN_IF_ERROR(GatherRows(context_, {out, plan.row.data(), by_token}));
    Mat joined = by_token;
    joined.rows = n, joined.cols = joined.stride = k * hidden;
    Probe(Site::kExpertOut, layer, joined);
  }

  CombineArgs c;
  c.expert_out = out;
  c.row = plan.row.data();
  c.weights = weights;
  c.out = x_;
  if (!w.mlp.gate.empty()) {
    const Mat shared = Act(&b_.shared_out, n, hidden);
    SB_RETURN_IF_ERROR(DenseMlp(w.mlp, in, shared));
    Probe(Site::kSharedOut, layer, shared);
    c.shared = shared;
  }
  return Combine(context_, c);
}

Status ForwardPass::Mlp(int layer) {
  const LayerWeights& w = weights_.layers[layer];
  const bool moe = layer >= config_.first_k_dense;
  const bool fp8 = AnyFp8({&w.mlp.gate, &w.mlp.up}) || (moe && AnyFp8({&w.experts[0].gate, &w.experts[0].up}));
  SB_ASSIGN(const Activation in, Prepare(normed_, fp8, &b_.normed_q8, &b_.normed_scale));
  if (!moe) return DenseMlp(w.mlp, in, x_);

  RouteArgs r;
  const View<float> logits = b_.router.Take<float>(rows(), config_.n_experts);
  SB_RETURN_IF_ERROR(RunGemm(Linear(in, w.router, logits)));
  Probe(Site::kRouterLogits, layer, ConstMat(logits));
  r.logits = logits;
  r.bias = w.correction_bias.empty() ? nullptr : w.correction_bias.data();
  r.n_group = config_.n_group, r.topk_group = config_.topk_group, r.k = config_.experts_per_token;
  r.norm_eps = profile_.route_norm_eps;
  r.normalise = config_.norm_topk_prob;
  r.scaling = config_.routed_scaling;
  r.experts = b_.experts.Take<int32_t>(rows(), r.k);
  r.weights = b_.expert_weights.Take<float>(rows(), r.k);
  SB_RETURN_IF_ERROR(RunRoute(r));
  Probe(Site::kExperts, layer, ConstMat(View<const int32_t>(r.experts)));
  Probe(Site::kExpertWeights, layer, ConstMat(r.weights));
  return Experts(layer, in, r.experts, r.weights);
}

}  // namespace samebits
