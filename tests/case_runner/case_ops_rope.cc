#include <algorithm>

#include "base/strings.h"
#include "case.h"
#include "engine/engine.h"
#include "engine/hash_model.h"
#include "ops/rope/rope.h"

namespace samebits {
namespace {

constexpr int64_t kMostPositions = 1 << 22;

// The tolerance of entry i, where it may be one number or one for each.
double ToleranceAt(const Json& tol, size_t i) { return Value<double>(tol.is_array() ? tol.at(i) : tol); }

YarnConfig ConfigOf(Members& in, const char* dim_name) {
  YarnConfig config;
  config.theta = Value<float>(in["theta"]);
  config.dim = static_cast<int>(Count(in[dim_name], 1 << 16));
  if (config.dim < 2 || config.dim % 2 != 0 || !(config.theta > 1.0f)) Malformed("an odd dim or theta not above 1");
  return config;
}

void RopeCase(Members& in, Members& want) {
  const YarnConfig config = ConfigOf(in, "rope_dim");
  const std::vector<float> x = Row<float>(in["x"]);
  const int64_t n = static_cast<int64_t>(x.size());
  const int32_t position = static_cast<int32_t>(Count(in["position"], kMostPositions));
  const std::string place = Value<std::string>(in["place"]);
  if (config.dim > n) Malformed("rope_dim is larger than x");
  if (place != "first" && place != "last") Unsupported("place \"" + place + "\"");
  const RopeTable table(config, int64_t{position} + 1);
  const double tol = Value<double>(want["abs_tol"]);
  for (const auto& [name, layout] :
       {std::pair{"interleaved", RopeLayout::kInterleaved}, {"half_split", RopeLayout::kHalfSplit}}) {
    const Json* expected = want.Find(name);
    if (expected == nullptr) continue;
    std::vector<float> first;
    for (const CpuContext& context : Contexts()) {
      std::vector<float> y = x;
      RopeArgs args;
      args.x = View<float>(y.data(), 1, n), args.head_stride = n, args.offset = place == "last" ? n - config.dim : 0;
      args.positions = &position, args.table = &table, args.layout = layout;
      ExpectOk(Rope(context, args));
      if (first.empty()) first = y;
      Expect(SameBytesOf(first, y), "a backend gives other bits");
    }
    Expect(List(*expected).size() == first.size(), std::string(name) + " has another length");
    for (size_t i = 0; i < first.size(); ++i)
      ExpectNear(Format("%s[%zu]", name, i), double{first[i]}, (*expected)[i], tol);
  }
}

void RopeTableCase(Members& in, Members& want) {
  const YarnConfig config = ConfigOf(in, "dim");
  const std::vector<int64_t> positions = Row<int64_t>(in["positions"]);
  int64_t most = 0;
  for (const int64_t p : positions) {
    if (p < 0 || p > kMostPositions) Malformed("a position out of range");
    most = std::max(most, p);
  }
  const RopeTable table(config, most + 1);
  for (const auto& [name, of] : {std::pair{"cos", &RopeTable::Cos}, {"sin", &RopeTable::Sin}}) {
    const Json& rows = List(want[name]);
    Expect(rows.size() == positions.size(), std::string(name) + " has another length");
    for (size_t p = 0; p < positions.size(); ++p) {
      Expect(List(rows[p]).size() == static_cast<size_t>(config.dim / 2), std::string(name) + " has another width");
      for (size_t i = 0; i < rows[p].size(); ++i)
        ExpectNear(Format("%s of position %lld, %zu", name, (long long)positions[p], i),
                   double{(table.*of)(positions[p])[i]}, rows[p][i], ToleranceAt(want["abs_tol"], p));
    }
  }
}

void Yarn(Members& in, Members& want) {
  YarnConfig config = ConfigOf(in, "dim");
  config.factor = Value<float>(in["factor"]);
  config.beta_fast = Value<float>(in["beta_fast"]), config.beta_slow = Value<float>(in["beta_slow"]);
  config.original_length = static_cast<int>(Count(in["original_length"], INT32_MAX));
  config.mscale = config.mscale_all_dim = Value<float>(in["mscale"]);
  const std::vector<float> frequencies = RopeInverseFrequencies(config);
  const double tol = Value<double>(want["rel_tol"]);
  if (const Json* x = want.Find("inv_freq")) {
    Expect(List(*x).size() == frequencies.size(), "inv_freq has another length");
    for (size_t i = 0; i < frequencies.size(); ++i)
      ExpectNear(Format("inv_freq[%zu]", i), double{frequencies[i]}, (*x)[i], 0, tol);
  }
  if (const Json* x = want.Find("ramp_low")) ExpectNear("ramp_low", YarnRampOf(config).low, *x, 0);
  if (const Json* x = want.Find("ramp_high")) ExpectNear("ramp_high", YarnRampOf(config).high, *x, 0);
  if (const Json* x = want.Find("softmax_scale_multiplier"))
    ExpectNear("softmax_scale_multiplier", double{YarnSoftmaxMultiplier(config)}, *x, 0, tol);
  int64_t most = 0;
  for (const int64_t p : Row<int64_t>(in["positions"])) most = std::max(most, p);
  if (most > kMostPositions) Malformed("a position out of range");
  const RopeTable table(config, most + 1);
  if (const Json* x = want.Find("cos_first_three")) {
    const double cos_tol = Value<double>(want["cos_abs_tol"]);
    for (const auto& [position, values] : x->items()) {
      const int64_t p = Value<int64_t>(Json(position));
      if (p < 0 || p > most) Malformed("cos_first_three names a position that is not listed");
      for (size_t i = 0; i < List(values).size(); ++i)
        ExpectNear(Format("cos of position %lld, %zu", (long long)p, i), double{table.Cos(p)[i]}, values[i], cos_tol);
    }
  }
}

// Keeps the positions of every forward pass.
class PositionModel : public HashModel {
 public:
  Status Forward(const ForwardBatch& batch, KvCache& cache, std::vector<float>* logits) override {
    passes.emplace_back();
    for (const RowOwner& owner : batch.owners) passes.back().push_back(static_cast<int32_t>(owner.position));
    return HashModel::Forward(batch, cache, logits);
  }
  std::vector<std::vector<int32_t>> passes;
};

// The engine itself: one request leaves its pages in the prefix cache, a second continues behind them in chunks.
void ChunkPositions(Members& in, Members& want) {
  const int64_t cached = Count(in["cached_tokens"], 2000), fresh = Count(in["new_tokens"], 2000);
  const int64_t chunk = Count(in["chunk"], 2000);
  if (chunk < 1 || fresh < 1) Malformed("chunk or new_tokens is 0");
  PositionModel model;
  EngineOptions options;
  options.schedule.page_size = 1, options.schedule.pages = 4096;
  options.schedule.chunk = static_cast<int32_t>(chunk);
  auto engine = Engine::Create(&model, options);
  ExpectOk(engine.status());
  Request request;
  // Two tokens: a request that ends with its prompt leaves the pages of its last chunk to nobody.
  request.max_tokens = 2, request.stop_at_eos = false;
  for (int64_t i = 0; i < cached; ++i) request.prompt.push_back(static_cast<int32_t>(i % 61));
  if (cached > 0) ExpectOk(RunAll(engine->get(), {request})[0].error);
  for (int64_t i = 0; i < fresh; ++i) request.prompt.push_back(static_cast<int32_t>(i * 7 % 61));
  // Now the first token is drawn from the prompt's last row and the second from the next position.
  model.passes.clear();
  ExpectOk(RunAll(engine->get(), {request})[0].error);
  const Json& expected = List(want["positions"]);
  Expect(model.passes.size() == expected.size() + 1,
         Format("%zu forward passes, expected %zu chunks and one token", model.passes.size(), expected.size()));
  for (size_t c = 0; c < expected.size(); ++c) ExpectInts(Format("chunk %zu", c), model.passes[c], expected[c]);
  ExpectInts("next_position", model.passes.back(), Json::array({want["next_position"]}));
}

constexpr CaseOp kOps[] = {
    {"rope", RopeCase}, {"rope_table", RopeTableCase}, {"yarn", Yarn}, {"chunk_positions", ChunkPositions}};

}  // namespace

std::span<const CaseOp> RopeCaseOps() { return kOps; }

}  // namespace samebits
