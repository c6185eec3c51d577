// MoE router: scores, group-limited choice, weights (spec 4.9; V4: spec deepseek-v4).
//
// Rule: score = sigmoid(logit) or sqrt(softplus(logit)) in fp32; choice = score + bias (one addition, selection only).
//   groups of n/n_group consecutive experts; a group's value is the sum of its two best choices (one fp32 addition,
//   best first); the topk_group best groups stay, all others are masked with -inf (not 0); the k best choices win. Both
//   selections use Before() of topk.h: ties to the lower number.
//   weight_e = score_e / (sum + norm_eps) * scaling, the sum over the chosen scores ascending by expert from +0.
// Output ascending by expert.
#pragma once

#include <span>

#include "numerics/mathfn.h"
#include "ops/op.h"

namespace samebits {

enum class RouteScore { kSigmoid, kSqrtSoftplus };

template <class V>
SB_HD V RouteScoreOf(RouteScore kind, V logit) {
  return kind == RouteScore::kSigmoid ? Sigmoid(logit) : Sqrt(Softplus(logit));
}
SB_HD float RouteWeight(float score, float sum, float norm_eps, bool normalise, float scaling) {
  return Mul(normalise ? Div(score, Add(sum, norm_eps)) : score, scaling);
}

struct RouteArgs {
  View<const float> logits;     // [tokens, experts], experts <= 1024
  const float* bias = nullptr;  // [experts], finite, or none
  RouteScore scoring = RouteScore::kSigmoid;
  int n_group = 1, topk_group = 1, k = 1;  // n_group divides experts; k <= experts in the kept groups
  float norm_eps = 0.0f;                   // [O]: 0; Hugging Face: 1e-20
  bool normalise = true;
  float scaling = 1.0f;
  View<int32_t> experts;       // [tokens, k] ascending
  View<float> weights;         // [tokens, k]
  int32_t* by_rank = nullptr;  // [tokens, k] best first, or none
};

// For the reference only.
struct RouteRule {
  bool bf16_logits = false;  // round the logits to bf16 before the scores (the downgrade of product.md, document 2)
  bool high_index_wins_ties = false;
  bool mask_with_zero = false;
};

// Everything after the scores for one token: choice, groups, weights. experts, weights [k]; by_rank [k] or null. One
// definition for reference and backends; `scores` [experts] are unbiased.
void RouteToken(const RouteArgs& args, const float* scores, const RouteRule& rule, int32_t* experts, float* weights,
                int32_t* by_rank);

Status CheckRoute(const RouteArgs& args);
void RouteRef(const RouteArgs& args, const RouteRule& rule = {});
Status Route(const CpuContext& context, const RouteArgs& args);
std::span<const OpBackend<RouteArgs>> RouteBackends();

// V4's hash layers: experts = table[token]. Errors name the token or entry out of range.
Status HashRoute(const int32_t* tokens, int64_t count, const int64_t* table, int64_t vocab, int64_t k, int64_t experts,
                 int32_t* out);

}  // namespace samebits
