// The meaning of the router. RouteToken is shared with the CPU backend: only the scores are worth a vector kernel.

#include <algorithm>

#include "numerics/format.h"
#include "ops/route/route.h"
#include "ops/topk/topk.h"

namespace samebits {
namespace {

// Takes the best candidate not yet taken, by Before(); -1 if none is left.
int32_t TakeBest(const float* value, int64_t n, bool* taken, bool high_index) {
  int32_t best = -1;
  for (int32_t i = 0; i < n; ++i) {
    if (taken[i]) continue;
    if (best < 0 || (high_index ? !(value[i] < value[best]) : Before({value[i], i}, {value[best], best}))) best = i;
  }
  if (best >= 0) taken[best] = true;
  return best;
}

}  // namespace

void RouteToken(const RouteArgs& args, const float* scores, const RouteRule& rule, int32_t* experts, float* weights,
                int32_t* by_rank) {
  const int64_t n = args.logits.cols, group_size = n / args.n_group;
  float choice[1024];
  for (int64_t e = 0; e < n; ++e) choice[e] = args.bias ? Add(scores[e], args.bias[e]) : scores[e];

  if (args.topk_group < args.n_group) {
    float value[1024];
    for (int g = 0; g < args.n_group; ++g) {
      const float* c = choice + g * group_size;
      bool taken[1024] = {};
      const int32_t first = TakeBest(c, group_size, taken, false), second = TakeBest(c, group_size, taken, false);
      value[g] = second < 0 ? c[first] : Add(c[first], c[second]);
    }
    bool kept[1024] = {};
    for (int i = 0; i < args.topk_group; ++i) TakeBest(value, args.n_group, kept, rule.high_index_wins_ties);
    const float masked = rule.mask_with_zero ? 0.0f : FromBits(0xff800000u);
    for (int g = 0; g < args.n_group; ++g)
      if (!kept[g]) std::fill_n(choice + g * group_size, group_size, masked);
  }

  bool taken[1024] = {};
  for (int j = 0; j < args.k; ++j) {
    experts[j] = TakeBest(choice, n, taken, rule.high_index_wins_ties);
    if (by_rank) by_rank[j] = experts[j];
  }
  std::sort(experts, experts + args.k);
  float sum = 0.0f;
  for (int j = 0; j < args.k; ++j) sum = Add(sum, scores[experts[j]]);
  for (int j = 0; j < args.k; ++j)
    weights[j] = RouteWeight(scores[experts[j]], sum, args.norm_eps, args.normalise, args.scaling);
}

void RouteRef(const RouteArgs& args, const RouteRule& rule) {
  float scores[1024];
  for (int64_t t = 0; t < args.logits.rows; ++t) {
    for (int64_t e = 0; e < args.logits.cols; ++e) {
      const float logit = args.logits.Row(t)[e];
      scores[e] = RouteScoreOf(args.scoring, rule.bf16_logits ? ToF32(RoundToBF16(logit)) : logit);
    }
    RouteToken(args, scores, rule, args.experts.Row(t), args.weights.Row(t),
               args.by_rank ? args.by_rank + t * args.k : nullptr);
  }
}

}  // namespace samebits
