#include <algorithm>

#include "base/strings.h"
#include "case.h"
#include "ops/route/route.h"

namespace samebits {
namespace {

RouteScore ScoringOf(const Json& j) {
  const std::string name = Value<std::string>(j);
  if (name == "sigmoid") return RouteScore::kSigmoid;
  if (name == "sqrtsoftplus" || name == "sqrt_softplus") return RouteScore::kSqrtSoftplus;
  Unsupported("scoring \"" + name + "\"");
}

struct Routed {
  std::vector<int32_t> ascending, by_rank;
  std::vector<float> weights;  // by expert
};

// The same on every context and in the reference.
Result<Routed> RouteOne(RouteArgs args) {
  Routed expected;
  auto attach = [&](Routed* r) {
    r->ascending.assign(static_cast<size_t>(args.k), -1);
    r->by_rank = r->ascending;
    r->weights.assign(r->ascending.size(), FromBits(0x7fc00000u));
    args.experts = View<int32_t>(r->ascending.data(), 1, args.k);
    args.weights = View<float>(r->weights.data(), 1, args.k);
    args.by_rank = r->by_rank.data();
  };
  attach(&expected);
  SB_RETURN_IF_ERROR(CheckRoute(args));
  RouteRef(args);
  for (const CpuContext& context : Contexts()) {
    Routed got;
    attach(&got);
    ExpectOk(Route(context, args));
    Expect(got.ascending == expected.ascending && got.by_rank == expected.by_rank &&
               SameBytesOf(got.weights, expected.weights),
           "a backend gives another route");
  }
  return expected;
}

void RouteCase(Members& in, Members& want) {
  const std::vector<float> logits = Row<float>(in["logits_f32"]);
  std::vector<float> bias;
  if (const Json* b = in.Find("bias_f32")) bias = Row<float>(*b);
  if (!bias.empty() && bias.size() != logits.size()) Malformed("bias and logits differ in length");
  RouteArgs args;
  args.logits = View<const float>(logits.data(), 1, static_cast<int64_t>(logits.size()));
  args.bias = bias.empty() ? nullptr : bias.data();
  args.scoring = ScoringOf(in["scoring"]);
  args.n_group = Value<int32_t>(in["n_group"]), args.topk_group = Value<int32_t>(in["topk_group"]);
  args.k = Value<int32_t>(in["k"]);
  args.norm_eps = Value<float>(in["norm_eps"]), args.scaling = Value<float>(in["routed_scaling"]);
  if (args.k < 1 || args.n_group < 1) Malformed("k or n_group below 1");
  const auto routed = RouteOne(args);
  if (want.Flag("error")) return Expect(!routed.ok(), "accepted");
  ExpectOk(routed.status());
  if (const Json* x = want.Find("ids_by_rank")) ExpectInts("ids_by_rank", (*routed).by_rank, *x);
  if (const Json* x = want.Find("ids_ascending")) ExpectInts("ids_ascending", (*routed).ascending, *x);
  if (const Json* x = want.Find("groups")) {
    // All experts of the kept groups: exactly those can be chosen.
    RouteArgs all = args;
    all.k = static_cast<int>(logits.size()) / args.n_group * args.topk_group;
    const auto kept = RouteOne(all);
    ExpectOk(kept.status());
    std::set<int32_t> groups;
    for (const int32_t e : (*kept).ascending) groups.insert(e / (static_cast<int32_t>(logits.size()) / args.n_group));
    ExpectInts("groups", std::vector<int32_t>(groups.begin(), groups.end()), *x);
  }
  const Json *rel = want.Find("rel_tol"), *abs = want.Find("abs_tol");
  if (const Json* x = want.Find("weights_by_rank")) {
    Expect(List(*x).size() == (*routed).by_rank.size(), "weights_by_rank has another length");
    for (size_t j = 0; j < x->size(); ++j) {
      const auto& ids = (*routed).ascending;
      const auto at = std::find(ids.begin(), ids.end(), (*routed).by_rank[j]) - ids.begin();
      ExpectNear(Format("weights_by_rank[%zu]", j), double{(*routed).weights[static_cast<size_t>(at)]}, (*x)[j],
                 abs ? Value<double>(*abs) : 0, rel ? Value<double>(*rel) : 0);
    }
  }
  if (want.Flag("no_nan"))
    for (const float w : (*routed).weights) Expect(!IsNan(w), "a weight is NaN");
}

// All experts chosen, nothing normalised: the weights are the scores.
void ScoreFn(Members& in, Members& want) {
  const std::vector<float> x = Row<float>(in["x_f32"]);
  RouteArgs args;
  args.logits = View<const float>(x.data(), 1, static_cast<int64_t>(x.size()));
  args.scoring = ScoringOf(in["scoring"]);
  args.k = static_cast<int>(x.size()), args.normalise = false;
  if (x.empty()) Malformed("no inputs");
  const auto routed = RouteOne(args);
  ExpectOk(routed.status());
  const Json &score = List(want["score"]), &tol = want["rel_tol"];
  Expect(score.size() == x.size(), "score has another length");
  const Json* abs = want.Find("abs_tol");
  for (size_t i = 0; i < x.size(); ++i)
    ExpectNear(Format("score[%zu]", i), double{(*routed).weights[i]}, score[i], abs ? Value<double>(*abs) : 0.0,
               Value<double>(tol.is_array() ? tol.at(i) : tol));
}

void HashRouteCase(Members& in, Members& want) {
  const Rows<int64_t> table = Matrix<int64_t>(in["table"]);
  const std::vector<int32_t> tokens = Row<int32_t>(in["tokens"]);
  std::vector<int32_t> ids(tokens.size() * static_cast<size_t>(table.cols));
  const Status status = HashRoute(tokens.data(), static_cast<int64_t>(tokens.size()), table.data.data(), table.rows,
                                  table.cols, Value<int64_t>(in["n_experts"]), ids.data());
  if (want.Flag("error")) return Expect(!status.ok(), "accepted");
  ExpectOk(status);
  const Json& expected = List(want["ids"]);
  Expect(expected.size() == tokens.size(), "ids has another length");
  for (size_t t = 0; t < tokens.size(); ++t) {
    const auto begin = ids.begin() + static_cast<int64_t>(t) * table.cols;
    ExpectInts(Format("ids of token %zu", t), std::vector<int32_t>(begin, begin + table.cols), expected[t]);
  }
}

void LoadBias(Members& in, Members& want) {
  const std::vector<float> bias = Row<float>(in["bias_f32"]), logits(bias.size(), 0.0f);
  RouteArgs args;
  args.logits = View<const float>(logits.data(), 1, static_cast<int64_t>(logits.size())), args.bias = bias.data();
  const auto routed = RouteOne(args);
  if (want.Flag("error")) return Expect(!routed.ok(), "a bias that is not finite was accepted");
  want.Find("accept");
  ExpectOk(routed.status());
}

constexpr CaseOp kOps[] = {
    {"route", RouteCase}, {"score_fn", ScoreFn}, {"hash_route", HashRouteCase}, {"load_bias", LoadBias}};

}  // namespace

std::span<const CaseOp> RouterCaseOps() { return kOps; }

}  // namespace samebits
