#include "base/strings.h"
#include "ops/route/route.h"

namespace samebits {

Status CheckRoute(const RouteArgs& args) {
  const int64_t experts = args.logits.cols;
  if (experts < 1 || experts > 1024)
    return Error(Format("route: %lld experts; 1 to 1024 are supported", static_cast<long long>(experts)));
  if (args.n_group < 1 || experts % args.n_group != 0)
    return Error(
        Format("route: n_group %d does not divide %lld experts", args.n_group, static_cast<long long>(experts)));
  if (args.topk_group < 1 || args.topk_group > args.n_group)
    return Error(Format("route: topk_group %d is not in 1..n_group (%d)", args.topk_group, args.n_group));
  if (args.k < 1 || args.k > experts / args.n_group * args.topk_group)
    return Error(Format("route: k = %d, but the kept groups hold %lld experts", args.k,
                        static_cast<long long>(experts / args.n_group * args.topk_group)));
  if (args.experts.rows != args.logits.rows || args.experts.cols != args.k || args.weights.rows != args.logits.rows ||
      args.weights.cols != args.k)
    return Error("route: experts and weights must be [tokens, k]");
  for (int64_t e = 0; args.bias != nullptr && e < experts; ++e)
    if (args.bias[e] - args.bias[e] != 0.0f)
      return Error(Format("route: the bias of expert %lld is not finite", static_cast<long long>(e)));
  return Ok();
}

Status HashRoute(const int32_t* tokens, int64_t count, const int64_t* table, int64_t vocab, int64_t k, int64_t experts,
                 int32_t* out) {
  for (int64_t t = 0; t < count; ++t) {
    if (tokens[t] < 0 || tokens[t] >= vocab)
      return Error(Format("hash route: token %d at place %lld is outside the table of %lld", tokens[t],
                          static_cast<long long>(t), static_cast<long long>(vocab)));
    for (int64_t j = 0; j < k; ++j) {
      const int64_t e = table[tokens[t] * k + j];
      if (e < 0 || e >= experts)
        return Error(Format("hash route: the table sends token %d to expert %lld of %lld", tokens[t],
                            static_cast<long long>(e), static_cast<long long>(experts)));
      out[t * k + j] = static_cast<int32_t>(e);
    }
  }
  return Ok();
}

}  // namespace samebits
