#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/strings.h"
#include "case.h"
#include "engine/engine.h"
#include "engine/hash_model.h"
#include "ops/sample/sample.h"
#include "ops/topk/topk.h"

namespace samebits {
namespace {

SampleResult Greedy(const std::vector<float>& logits) {
  const int64_t n = static_cast<int64_t>(logits.size());
  return Sample(logits.data(), n, n, SampleParams{}, 0, 0);
}

void ArgmaxRows(Members& in, Members& want) {
  const Json &rows = List(in["logits_f32"]), &index = List(want["index"]);
  want.Flag("row_with_no_number_is_reported");  // token -1, which the engine turns into an error of the request
  want.Find("rows_that_may_be_refused");
  Expect(index.size() == rows.size(), "index has another length");
  for (size_t r = 0; r < rows.size(); ++r) {
    const std::vector<float> logits = Row<float>(rows[r]);
    ExpectInts(Format("index of row %zu", r), std::vector{Greedy(logits).token}, Json::array({index[r]}));
    const bool nan = std::any_of(logits.begin(), logits.end(), [](float x) { return IsNan(x); });
    Expect(Greedy(logits).nan == nan, Format("NaN in row %zu is not reported", r));
  }
}

// This sampler adds no noise: a 64-bit number picks a place in integer prefix sums. So the promise is that no hash,
// the largest included, reaches a column that must never be chosen.
void GumbelRow(Members& in, Members& want) {
  const std::vector<float> logits = Row<float>(in["logits_f32"]);
  const int64_t n = static_cast<int64_t>(logits.size());
  const std::vector<int64_t> never = Row<int64_t>(want["never_chosen"]);
  want.Flag("noise_finite_for_every_hash"), want.Find("largest_noise_allowed");
  std::vector<uint64_t> hashes = {0, UINT32_MAX};
  for (const Json& h : List(in["hash32"])) hashes.push_back(HexBits(h, 8));
  for (const float temperature : {1.0f, 1e-3f, 1e3f})
    for (const uint64_t high : hashes)
      for (const uint64_t low : hashes) {
        const int32_t token =
            SampleWith(logits.data(), n, n, SampleParams{.temperature = temperature}, high << 32 | low).token;
        Expect(token >= 0 && std::find(never.begin(), never.end(), token) == never.end(),
               Format("token %d was drawn", token));
      }
}

void TopP(Members& in, Members& want) {
  const std::vector<float> probs = Row<float>(in["probs_f32"]);
  std::vector<int32_t> order(probs.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return Before({probs[static_cast<size_t>(a)], a}, {probs[static_cast<size_t>(b)], b});
  });
  std::vector<uint64_t> weights;  // exact from 2^-38 on
  for (const int32_t i : order) {
    const float p = probs[static_cast<size_t>(i)];
    if (!(p >= 0.0f) || p > 1.0f) Malformed("a probability out of range");
    weights.push_back(static_cast<uint64_t>(double{p} * 0x1p62));
  }
  const std::vector<double> p = Row<double>(in["p"]);
  Expect(List(want["kept"]).size() == p.size(), "kept has another length");
  for (size_t i = 0; i < p.size(); ++i) {
    ExpectOk(CheckSample(SampleParams{.temperature = 1.0f, .top_p = p[i]}));
    std::vector<int32_t> kept(order.begin(),
                              order.begin() + static_cast<int64_t>(TopPKeep(weights.data(), weights.size(), p[i])));
    std::sort(kept.begin(), kept.end());
    ExpectInts(Format("kept for p = %g", p[i]), kept, want["kept"][i]);
  }
}

void Temperature(Members& in, Members& want) {
  const Json& rows = List(in["logits_f32"]);
  const std::vector<float> temperatures = Row<float>(in["temperature"]);
  const std::vector<int32_t> argmax = Row<int32_t>(want["argmax"]);
  want.Flag("no_nan");
  Expect(argmax.size() == rows.size(), "argmax has another length");
  for (size_t r = 0; r < rows.size(); ++r) {
    const std::vector<float> logits = Row<float>(rows[r]);
    const int64_t n = static_cast<int64_t>(logits.size());
    const int32_t best = Greedy(logits).token;
    ExpectInts(Format("argmax of row %zu", r), std::vector{best}, Json::array({argmax[r]}));
    for (const float t : temperatures) {
      ExpectOk(CheckSample(SampleParams{.temperature = t}));
      double total = 0;
      const float inverse = t > 0.0f ? SampleInverseTemperature(t) : 0x1p100f;
      for (const float x : logits)
        total += static_cast<double>(SampleWeight(x, logits[static_cast<size_t>(best)], inverse));
      const double probability = static_cast<double>(SampleWeight(logits[static_cast<size_t>(best)],
                                                                  logits[static_cast<size_t>(best)], inverse)) /
                                 total;
      ExpectNear(Format("probability of the argmax of row %zu at temperature %g", r, double{t}), probability,
                 want["probability_of_argmax"], Value<double>(want["abs_tol"]));
      for (uint64_t position = 0; probability > 1 - 1e-9 && position < 200; ++position)
        Expect(Sample(logits.data(), n, n, SampleParams{.temperature = t, .seed = 7}, position, 0).token == best,
               "another token was drawn");
    }
  }
}

Request RequestOf(const Json& j, float temperature, int32_t max_tokens, uint64_t other_seed) {
  Members member(j, "request");
  Request request;
  for (const char c : Value<std::string>(member["prompt"])) request.prompt.push_back(static_cast<uint8_t>(c) % 61);
  const Json* seed = member.Find("seed");
  request.sampling.seed = seed ? static_cast<uint64_t>(Value<int64_t>(*seed)) : other_seed;
  request.sampling.temperature = temperature, request.max_tokens = max_tokens, request.stop_at_eos = false;
  if (const std::string unread = member.Unread(); !unread.empty()) Unsupported(unread);
  return request;
}

// Through the engine, with a model whose logits hash the whole context: A first in the batch, then last.
void SeedIndependence(Members& in, Members& want) {
  const float temperature = Value<float>(in["temperature"]);
  const int32_t max_tokens = static_cast<int32_t>(Count(in["max_tokens"], 1024));
  want.Flag("tokens_of_A_equal_in_all_runs");
  const Request a = RequestOf(in["A"], temperature, max_tokens, 0);
  std::vector<int32_t> first;
  uint64_t unseeded = 1000;
  for (const Json& run : List(in["runs"]))
    for (const bool a_first : {true, false}) {
      std::vector<Request> batch;
      if (a_first) batch.push_back(a);
      for (const Json& mate : List(run)) batch.push_back(RequestOf(mate, temperature, max_tokens, ++unseeded));
      if (!a_first) batch.push_back(a);
      HashModel model;
      auto engine = Engine::Create(&model, EngineOptions{});
      ExpectOk(engine.status());
      const std::vector<Completion> done = RunAll(engine->get(), batch);
      const Completion& mine = a_first ? done.front() : done.back();
      ExpectOk(mine.error);
      std::vector<int32_t> tokens;
      for (const OutputToken& t : mine.tokens) tokens.push_back(t.id);
      Expect(static_cast<int32_t>(tokens.size()) == max_tokens, "A ended early");
      if (first.empty()) first = tokens;
      Expect(tokens == first, "A's tokens depend on its mates");
    }
  if (want.Flag("noise_differs_between_steps")) {
    const std::vector<float> flat(16, 0.0f);
    std::set<int32_t> drawn;
    for (uint64_t step = 0; step < 16; ++step) drawn.insert(Sample(flat.data(), 16, 16, a.sampling, step, 0).token);
    Expect(drawn.size() > 1, "every step draws the same token from equal logits");
  }
}

// A model that knows one row of logits.
class OneRowModel : public HashModel {
 public:
  explicit OneRowModel(std::vector<float> row) : row_(std::move(row)), config_(HashModel::config()) {
    config_.vocab_size = static_cast<int64_t>(row_.size());
  }
  const ModelConfig& config() const override { return config_; }
  Status Forward(const ForwardBatch& batch, KvCache&, std::vector<float>* logits) override {
    logits->clear();
    for (size_t i = 0; i < batch.logit_rows.size(); ++i) logits->insert(logits->end(), row_.begin(), row_.end());
    return Ok();
  }

 private:
  std::vector<float> row_;
  ModelConfig config_;
};

void ReportLogprobs(Members& in, Members& want) {
  OneRowModel model(Row<float>(in["logits_f32"]));
  want.Flag("same_for_all_params");
  const double tol = Value<double>(want["abs_tol"]);
  const Json& logprobs = List(want["logprobs"]);
  for (const Json& j : List(in["params"])) {
    Members params(j, "params");
    Request request;
    request.prompt = {0}, request.max_tokens = 1, request.stop_at_eos = false;
    request.top_logprobs = static_cast<int32_t>(Count(in["top_logprobs"], 4096));
    request.sampling.temperature = 1.0f;
    if (const Json* x = params.Find("temperature")) request.sampling.temperature = Value<float>(*x);
    if (const Json* x = params.Find("top_p")) request.sampling.top_p = Value<double>(*x);
    if (const Json* x = params.Find("top_k")) request.sampling.top_k = Value<int32_t>(*x);
    if (const Json* x = params.Find("seed")) request.sampling.seed = static_cast<uint64_t>(Value<int64_t>(*x));
    if (const std::string unread = params.Unread(); !unread.empty()) Unsupported(unread);
    auto engine = Engine::Create(&model, EngineOptions{});
    ExpectOk(engine.status());
    const std::vector<Completion> done = RunAll(engine->get(), {request});
    ExpectOk(done[0].error);
    Expect(done[0].tokens.size() == 1, "no token");
    const std::vector<TokenLogprob>& top = done[0].tokens[0].top_logprobs;
    std::vector<int32_t> ids;
    for (const TokenLogprob& t : top) ids.push_back(t.id);
    ExpectInts("top_ids with " + j.dump(), ids, want["top_ids"]);
    Expect(top.size() == logprobs.size(), "logprobs has another length");
    for (size_t i = 0; i < top.size(); ++i)
      ExpectNear(Format("logprob %zu", i), double{top[i].logprob}, logprobs[i], tol);
  }
}

constexpr CaseOp kOps[] = {{"argmax_rows", ArgmaxRows},
                           {"gumbel_row", GumbelRow},
                           {"top_p", TopP},
                           {"temperature", Temperature},
                           {"seed_independence", SeedIndependence},
                           {"report_logprobs", ReportLogprobs}};

}  // namespace

std::span<const CaseOp> SamplingCaseOps() { return kOps; }

}  // namespace samebits
