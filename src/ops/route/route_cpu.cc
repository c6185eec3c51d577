#include "ops/op_dispatch.h"
#include "ops/route/route.h"
#include "ops/route/route_simd.h"

namespace samebits {
namespace {

void RouteCpu(const CpuContext& context, const RouteArgs& args) {
  const auto kernel = SB_ISA_TABLE(RouteScoresRow).For(context);
  context.pool->Run(args.logits.rows, 16, [&](int64_t begin, int64_t end) {
    float scores[1024];
    for (int64_t t = begin; t < end; ++t) {
      kernel(args.logits.Row(t), scores, args.logits.cols, args.scoring == RouteScore::kSigmoid);
      RouteToken(args, scores, {}, args.experts.Row(t), args.weights.Row(t),
                 args.by_rank ? args.by_rank + t * args.k : nullptr);
    }
  });
}
void RouteReference(const CpuContext&, const RouteArgs& args) { RouteRef(args); }

constexpr OpBackend<RouteArgs> kBackends[] = {{"ref", RouteReference}, {"cpu", RouteCpu}};

}  // namespace

std::span<const OpBackend<RouteArgs>> RouteBackends() { return kBackends; }

Status Route(const CpuContext& context, const RouteArgs& args) {
  SB_RETURN_IF_ERROR(CheckRoute(args));
  RouteCpu(context, args);
  return Ok();
}

}  // namespace samebits
