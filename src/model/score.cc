#include "model/score.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "base/strings.h"

namespace samebits {
namespace {

using Json = nlohmann::json;

// Keeps copies of the rows of the wanted sites, by site and layer, in the order of the positions.
class Collector : public ProbeSink {
 public:
  explicit Collector(const std::set<Site>& sites) : sites_(sites) {}
  bool Wants(Site site, int) const override { return sites_.count(site) != 0; }
  void OnRows(Site site, int layer, const Rows& rows) override {
    Table& table = tables_[{site, layer}];
    table.is_int = rows.dtype == DType::kI32;
    ConstMat m;
    m.data = rows.data, m.dtype = rows.dtype, m.rows = rows.count, m.cols = rows.cols, m.stride = rows.stride;
    for (int64_t r = 0; r < rows.count; ++r) {
      const int64_t cols = rows.lens ? rows.lens[r] : rows.cols;
      std::vector<uint32_t>& row = table.rows[rows.owners[r].position];
      row.resize(cols);
      for (int64_t c = 0; c < cols; ++c)
        row[c] = table.is_int ? static_cast<uint32_t>(static_cast<const int32_t*>(rows.data)[r * rows.stride + c])
                              : Bits(MatAt(m, r, c));
    }
  }

  ScoredTensors Take() {
    ScoredTensors out;
    for (auto& [key, table] : tables_) {
      std::string name = InfoOf(key.first).name;
      if (key.second >= 0) name += Format(".%d", key.second);
      size_t cols = 0;
      for (const auto& [position, row] : table.rows) cols = std::max(cols, row.size());
      Tensor t(table.is_int ? DType::kI32 : DType::kF32,
               {static_cast<int64_t>(table.rows.size()), static_cast<int64_t>(cols)});
      uint32_t* to = static_cast<uint32_t*>(t.raw());
      for (const auto& [position, row] : table.rows) {
        std::copy(row.begin(), row.end(), to);
        std::fill(to + row.size(), to + cols, 0xff800000u);
        to += cols;
      }
      out.emplace_back(std::move(name), std::move(t));
    }
    return out;
  }

 private:
  struct Table {
    bool is_int = false;
    std::map<int32_t, std::vector<uint32_t>> rows;  // by position
  };
  const std::set<Site>& sites_;
  std::map<std::pair<Site, int>, Table> tables_;
};

Tensor PositionsFrom(int64_t begin, int64_t end) {
  Tensor t(DType::kI32, {end - begin});
  for (int64_t p = begin; p < end; ++p) t.As<int32_t>()[p - begin] = static_cast<int32_t>(p);
  return t;
}

Status ParseIds(const Json& list, const std::string& place, std::vector<int32_t>* ids) {
  if (!list.is_array() || list.empty()) return Error(place + " must be a list of token ids that is not empty");
  for (const Json& id : list) {
    if (!id.is_number_integer() || id < 0 || id > 0x7fffffff)
      return Error(place + ": \"" + id.dump(-1, ' ', true, Json::error_handler_t::replace) + "\" is not a token id");
    ids->push_back(id.get<int32_t>());
  }
  return Ok();
}

}  // namespace

Result<std::set<Site>> SitesFromNames(const std::string& comma_separated) {
  std::set<Site> sites;
  for (const std::string& name : Split(comma_separated, ',')) {
    const std::optional<Site> site = SiteFromName(name);
    if (site && *site != Site::kToken) {
      sites.insert(*site);
      continue;
    }
    std::string all;
    for (int i = 0; i < kSiteCount; ++i)
      if (static_cast<Site>(i) != Site::kToken)
        all += std::string(all.empty() ? "" : ", ") + InfoOf(static_cast<Site>(i)).name;
    return Error("there is no site \"" + name + "\" to score; there are " + all);
  }
  return sites;
}

Result<std::vector<ScorePrompt>> ParseScorePrompts(const std::string& json, const std::string& path) {
  const Json root = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded()) return Error(path + ": not valid JSON");
  std::vector<ScorePrompt> prompts;
  if (root.is_array() || (root.is_object() && root.contains("ids"))) {
    prompts.push_back({"prompt", {}});
    SB_RETURN_IF_ERROR(ParseIds(root.is_array() ? root : root["ids"], path + ": the ids", &prompts[0].ids));
    return prompts;
  }
  if (!root.is_object() || !root.contains("prompts") || !root["prompts"].is_array() || root["prompts"].empty())
    return Error(path + ": must hold {\"prompts\": [{\"name\", \"ids\"}]}, {\"ids\": [...]} or a list of ids");
  std::set<std::string> names;
  for (const Json& p : root["prompts"]) {
    if (!p.is_object() || !p.contains("name") || !p["name"].is_string() || !p.contains("ids"))
      return Error(path + ": every prompt needs a \"name\" and \"ids\"");
    ScorePrompt prompt{p["name"].get<std::string>(), {}};
    if (!names.insert(prompt.name).second) return Error(path + ": two prompts are named \"" + prompt.name + "\"");
    SB_RETURN_IF_ERROR(ParseIds(p["ids"], path + ": prompt \"" + prompt.name + "\"", &prompt.ids));
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

Result<ScoredTensors> Score(Model* model, const ScorePrompt& prompt, const ScoreOptions& options) {
  const int64_t n = static_cast<int64_t>(prompt.ids.size());
  if (n > model->config().max_positions)
    return Error(Format("prompt \"%s\" has %lld tokens, but the model's context is %d", prompt.name.c_str(),
                        static_cast<long long>(n), model->config().max_positions));
  constexpr int32_t kPage = 64;
  const int64_t pages = (n + kPage - 1) / kPage;
  KvCache cache(model->config(), model->profile(), pages, kPage);
  std::vector<int32_t> table(pages);
  for (int64_t i = 0; i < pages; ++i) table[i] = static_cast<int32_t>(i);
  std::vector<RowOwner> owners(n);
  for (int64_t i = 0; i < n; ++i) owners[i].position = static_cast<int32_t>(i);
  const std::vector<const int32_t*> tables(n, table.data());

  const bool wants_logits = options.sites.count(Site::kLogits) != 0;
  const int64_t first_logit = options.last_logits > 0 ? std::max<int64_t>(0, n - options.last_logits) : 0;
  Collector collector(options.sites);
  std::vector<float> logits;
  for (int64_t begin = 0; begin < n; begin += options.chunk) {
    const int64_t count = std::min(options.chunk, n - begin);
    std::vector<int32_t> rows;
    for (int64_t r = 0; r < count; ++r)
      if (wants_logits && begin + r >= first_logit) rows.push_back(static_cast<int32_t>(r));
    ForwardBatch batch;
    batch.tokens = {prompt.ids.data() + begin, static_cast<size_t>(count)};
    batch.owners = {owners.data() + begin, static_cast<size_t>(count)};
    batch.page_tables = {tables.data() + begin, static_cast<size_t>(count)};
    batch.logit_rows = rows;
    batch.probe = &collector;
    batch.broken = options.broken;
    SB_RETURN_IF_ERROR(model->Forward(batch, cache, &logits).At("prompt \"" + prompt.name + "\""));
  }
  ScoredTensors out = collector.Take();
  out.emplace_back("positions", PositionsFrom(0, n));
  if (wants_logits) out.emplace_back("logit_positions", PositionsFrom(first_logit, n));
  return out;
}

}  // namespace samebits
