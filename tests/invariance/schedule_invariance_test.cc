// The trained model under every schedule: tokens, logprob bits and every probed row of every layer must be those of the
// plain schedule. One row per condition; each says how to see that the condition took place.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <unordered_map>

#include "base/files.h"
#include "engine/engine.h"
#include "store/digest.h"

namespace samebits {
namespace {

const std::string kRoot = SB_SOURCE_DIR;

struct TestModel {
  explicit TestModel(const Profile* profile = &kDeepseekProfile, int threads = 2, Isa isa = BestIsa()) : pool(threads) {
    LoadOptions load;
    load.profile = profile;
    auto loaded = Model::Load(kRoot + "/models/tiny-v32", CpuContext{&pool, isa}, load);
    SB_CHECK(loaded.ok(), loaded.status().text());
    model = std::move(*loaded);
  }
  ThreadPool pool;
  std::unique_ptr<Model> model;
};

const Tokenizer& TinyTokenizer() {
  static const TokenizerFolder kFolder = [] {
    auto folder = LoadTokenizer(kRoot + "/models/tiny-v32");
    SB_CHECK(folder.ok(), folder.status().text());
    return std::move(*folder);
  }();
  return kFolder.tokenizer;
}

nlohmann::json ReadJson(const std::string& path) {
  auto text = ReadFile(kRoot + path);
  SB_CHECK(text.ok(), text.status().text());
  return nlohmann::json::parse(*text);
}

// Hashes of every row of every site, by owner and position.
class RowHashes : public ProbeSink {
 public:
  bool Wants(Site, int) const override { return true; }
  void OnRows(Site site, int layer, const Rows& rows) override {
    const int64_t element = DTypeBits(rows.dtype) / 8;
    for (int64_t r = 0; r < rows.count; ++r) {
      const int64_t cols = rows.lens != nullptr ? rows.lens[r] : rows.cols;
      const Digest128 d = HashBytes(static_cast<const uint8_t*>(rows.data) + r * rows.stride * element, cols * element);
      auto& at = seen[{rows.owners[r].request, rows.owners[r].position}];
      auto [it, fresh] = at.emplace(static_cast<int>(site) * 1000 + layer + 1, d);
      if (!fresh && it->second != d) ++changed;  // computed again, with other bits
    }
  }
  void Void(int64_t owner, int32_t from) {
    seen.erase(seen.lower_bound({owner, from}), seen.lower_bound({owner + 1, 0}));
  }
  // Rows of `got` that differ from these. Rows not seen (prefix hits) do not count.
  int64_t Differing(const RowHashes& got, int64_t* compared) const {
    int64_t differ = got.changed;
    *compared = 0;
    for (const auto& [at, sites] : got.seen) {
      const auto mine = seen.find(at);
      for (const auto& [site, digest] : sites) {
        if (mine == seen.end() || !mine->second.contains(site)) {
          ++differ;
          continue;
        }
        ++*compared;
        differ += mine->second.at(site) != digest;
      }
    }
    return differ;
  }
  std::map<std::pair<int64_t, int32_t>, std::unordered_map<int, Digest128>> seen;
  int64_t changed = 0;
};

std::vector<Request> Requests() {
  std::vector<Request> requests;
  const auto prompts = ReadJson("/tests/golden/tiny-v32/prompt.json");
  for (const auto& p : prompts["prompts"]) {
    Request r;
    r.prompt = p["ids"].get<std::vector<int32_t>>();
    // Long enough to cross top-64 and several pages, short enough for a debug build.
    if (r.prompt.size() > 400) r.prompt.resize(400);
    r.max_tokens = 20;
    r.stop_at_eos = false;
    r.top_logprobs = 2;
    r.owner = static_cast<int64_t>(requests.size());
    if (requests.size() % 2 == 1) r.sampling.temperature = 0.9f, r.sampling.seed = 42;
    requests.push_back(r);
  }
  // Shares its first 150 tokens with request 1.
  Request shared = requests[1];
  shared.prompt.resize(150);
  shared.prompt.push_back(5);
  shared.owner = static_cast<int64_t>(requests.size());
  requests.push_back(shared);
  return requests;
}

struct Outcome {
  std::vector<Completion> done;
  EngineStats stats;
  RowHashes rows;
};

Outcome RunSchedule(Model* model, const ScheduleOptions& schedule, const std::vector<Request>& requests,
                    const BreakRules* broken = nullptr) {
  Outcome out;
  EngineOptions options;
  options.schedule = schedule;
  options.tokenizer = &TinyTokenizer();
  options.probe = &out.rows;
  options.broken = broken;
  options.on_rows_void = [&](int64_t owner, int32_t from) { out.rows.Void(owner, from); };
  auto engine = Engine::Create(model, options);
  SB_CHECK(engine.ok(), engine.status().text());
  out.done = RunAll(engine->get(), requests);
  out.stats = (*engine)->stats();
  return out;
}

int64_t DifferingTokens(const std::vector<Completion>& want, const std::vector<Completion>& got) {
  int64_t differ = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    differ += !got[i].error.ok() || got[i].tokens.size() != want[i].tokens.size() || got[i].text != want[i].text;
    for (size_t t = 0; t < std::min(want[i].tokens.size(), got[i].tokens.size()); ++t) {
      const OutputToken &a = want[i].tokens[t], &b = got[i].tokens[t];
      bool same = a.id == b.id && std::memcmp(&a.logprob, &b.logprob, 4) == 0;
      for (size_t k = 0; k < a.top_logprobs.size() && same; ++k)
        same = a.top_logprobs[k].id == b.top_logprobs[k].id &&
               std::memcmp(&a.top_logprobs[k].logprob, &b.top_logprobs[k].logprob, 4) == 0;
      differ += !same;
    }
  }
  return differ;
}

// One request after the other, the whole prompt in one step.
Outcome Plain(Model* model, const std::vector<Request>& requests) {
  ScheduleOptions o;
  o.max_sequences = 1;
  o.prefix_cache = false;
  return RunSchedule(model, o, requests);
}

struct Condition {
  const char* name;
  std::function<void(ScheduleOptions&)> set;
  std::function<bool(const EngineStats&)> happened;
};

void CheckAll(Model* model, const std::vector<Condition>& conditions, const std::vector<Request>& requests,
              const Outcome& plain) {
  for (const Condition& c : conditions) {
    ScheduleOptions o;
    c.set(o);
    const Outcome got = RunSchedule(model, o, requests);
    int64_t compared = 0;
    EXPECT_EQ(DifferingTokens(plain.done, got.done), 0) << c.name;
    EXPECT_EQ(plain.rows.Differing(got.rows, &compared), 0) << c.name;
    EXPECT_GT(compared, 10000) << c.name;
    EXPECT_TRUE(c.happened(got.stats)) << c.name << ": the condition did not happen";
  }
}

TEST(ScheduleInvariance, EveryScheduleGivesTheSameBits) {
  const TestModel tiny;
  const std::vector<Request> requests = Requests();
  const Outcome plain = Plain(tiny.model.get(), requests);
  std::map<int64_t, std::vector<int32_t>> whole;
  for (size_t i = 0; i < requests.size(); ++i) {
    ASSERT_TRUE(plain.done[i].error.ok()) << plain.done[i].error.text();
    whole[i] = requests[i].prompt;
    for (const OutputToken& t : plain.done[i].tokens) whole[i].push_back(t.id);
  }
  ReplayDraft right(whole, 0, 2045), wrong(whole, 3, 2045);
  CheckAll(tiny.model.get(),
           {{"again", [](auto& o) { o.max_sequences = 1, o.prefix_cache = false; },
             [](auto& s) { return s.shared_steps == 0; }},
            {"together", [](auto&) {}, [](auto& s) { return s.shared_steps > 10; }},
            {"shuffled batch", [](auto& o) { o.batch_order_seed = 9; }, [](auto& s) { return s.orders_shuffled > 5; }},
            {"chunks of 1", [](auto& o) { o.chunk = 1, o.prefix_cache = false; },
             [](auto& s) { return s.prefill_chunks > 500; }},
            {"chunks of 63", [](auto& o) { o.chunk = 63; }, [](auto& s) { return s.prompts_cut > 2; }},
            {"chunks of 129, budget 200", [](auto& o) { o.chunk = 129, o.max_batch_tokens = 200; },
             [](auto& s) { return s.prompts_cut > 1 && s.mixed_steps > 0; }},
            {"prefix hit", [](auto& o) { o.max_sequences = 1, o.page_size = 16; },
             [](auto& s) { return s.prefix_hit_tokens >= 144; }},
            {"shuffled, poisoned pages of 7",
             [](auto& o) { o.page_size = 7, o.page_shuffle_seed = 5, o.poison_pages = true; },
             [](auto& s) { return s.pages_out_of_order > 50; }},
            {"preempted", [](auto& o) { o.preempt_every = 4, o.poison_pages = true, o.prefix_cache = false; },
             [](auto& s) { return s.preemptions > 3 && s.tokens_recomputed > 300; }},
            {"too few pages", [](auto& o) { o.page_size = 16, o.pages = 40, o.poison_pages = true; },
             [](auto& s) { return s.preemptions > 0; }},
            {"right drafts", [&](auto& o) { o.draft_tokens = 4, o.drafts = &right; },
             [](auto& s) { return s.drafts_accepted > 40 && s.drafts_rejected == 0; }},
            {"wrong drafts", [&](auto& o) { o.draft_tokens = 3, o.drafts = &wrong, o.poison_pages = true; },
             [](auto& s) { return s.drafts_accepted > 10 && s.drafts_rejected > 10; }},
            {"shuffled index lists", [](auto& o) { o.shuffle_index_lists = 77; },
             [](auto& s) { return s.index_lists_shuffled > 1000; }}},
           requests, plain);
}

TEST(ScheduleInvariance, ThreadsAndInstructionSets) {
  const std::vector<Request> all = Requests();
  const std::vector<Request> requests = {all[1], all[4]};
  const Outcome plain = Plain(TestModel().model.get(), requests);
  for (const Isa isa : AvailableIsas())
    for (const int threads : {1, 3}) {
      const TestModel other(&kDeepseekProfile, threads, isa);
      const Outcome got = RunSchedule(other.model.get(), {}, requests);
      int64_t compared;
      EXPECT_EQ(DifferingTokens(plain.done, got.done), 0) << IsaName(isa) << " " << threads;
      EXPECT_EQ(plain.rows.Differing(got.rows, &compared), 0) << IsaName(isa) << " " << threads;
    }
}

// Negative controls: with a rule broken, the comparison must see it. Without bf16 rounding, which would hide most of what
// another split of the few K blocks of so small a model does.
TEST(ScheduleInvariance, BrokenRulesAreSeen) {
  const TestModel tiny(&kFloat32Profile);
  const std::vector<Request> all = Requests();
  const std::vector<Request> requests = {all[3], all[1]};
  BreakRules split, blocks;
  split.split_by_batch = true;
  blocks.chunk_blocks = true;
  for (const auto& [name, broken] : {std::pair("split by batch", split), std::pair("chunk blocks", blocks)}) {
    ScheduleOptions whole, cut;
    whole.max_sequences = 1;
    whole.prefix_cache = cut.prefix_cache = false;
    cut.chunk = 33;
    const Outcome a = RunSchedule(tiny.model.get(), whole, requests, &broken);
    const Outcome b = RunSchedule(tiny.model.get(), cut, requests, &broken);
    int64_t compared;
    EXPECT_GT(a.rows.Differing(b.rows, &compared), 0) << name;
  }
}

TEST(ScheduleInvariance, GreedyContinuationsOfTheReference) {
  const TestModel tiny(&kFloat32Profile);
  const auto golden = ReadJson("/tests/golden/tiny-v32/greedy.json");
  std::vector<Request> requests;
  for (const auto& c : golden["continuations"]) {
    Request r;
    r.prompt = c["prompt_ids"].get<std::vector<int32_t>>();
    r.max_tokens = golden["steps"];
    r.stop_at_eos = false;
    requests.push_back(r);
  }
  ScheduleOptions o;  // a hard schedule: the reference ran each prompt alone
  o.chunk = 5, o.page_size = 8, o.page_shuffle_seed = 3, o.preempt_every = 7, o.batch_order_seed = 2,
  o.draft_tokens = 3;
  const Outcome got = RunSchedule(tiny.model.get(), o, requests);
  EXPECT_GT(got.stats.preemptions, 0);
  EXPECT_GT(got.stats.drafts_accepted, 0);
  constexpr double kLogitTolerance = 3e-4;  // tests/golden/README.md
  int64_t agreed = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto& c = golden["continuations"][i];
    ASSERT_EQ(got.done[i].tokens.size(), requests[i].max_tokens);
    for (int t = 0; t < requests[i].max_tokens; ++t) {
      if (c["margins"][t].get<double>() < kLogitTolerance) break;
      ASSERT_EQ(got.done[i].tokens[t].id, c["output_ids"][t].get<int32_t>()) << "prompt " << i << " token " << t;
      ++agreed;
    }
  }
  EXPECT_GT(agreed, 900);
}

}  // namespace
}  // namespace samebits
