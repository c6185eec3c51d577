#include "engine/engine.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>

#include "engine/hash_model.h"

namespace samebits {
namespace {

struct Outcome {
  std::vector<Completion> done;
  EngineStats stats;
};

std::vector<Request> Requests() {
  std::vector<Request> requests;
  for (int i = 0; i < 5; ++i) {
    Request r;
    // Lengths around page and chunk edges; requests 0 to 2 share their first 70 tokens.
    const int lengths[] = {129, 128, 90, 63, 1};
    for (int t = 0; t < lengths[i]; ++t) r.prompt.push_back((t * 7 + (i >= 3 || t >= 70 ? i : 0)) % 60);
    r.max_tokens = 24 + i;
    r.stop_at_eos = i == 3;
    if (i % 2 == 1) {
      r.sampling.temperature = 0.8f;
      r.sampling.top_p = 0.9f;
      r.sampling.seed = 42 + i;
    }
    r.top_logprobs = 3;
    requests.push_back(r);
  }
  return requests;
}

Outcome RunWith(const ScheduleOptions& schedule, const std::vector<Request>& requests, HashModel* given = nullptr) {
  HashModel own;
  EngineOptions options;
  options.schedule = schedule;
  auto engine = Engine::Create(given != nullptr ? given : &own, options);
  SB_CHECK(engine.ok(), engine.status().text());
  Outcome run;
  run.done = RunAll(engine->get(), requests);
  run.stats = (*engine)->stats();
  return run;
}

bool SameLogprobs(const OutputToken& a, const OutputToken& b) {
  if (a.id != b.id || std::memcmp(&a.logprob, &b.logprob, 4) != 0 || a.top_logprobs.size() != b.top_logprobs.size())
    return false;
  for (size_t i = 0; i < a.top_logprobs.size(); ++i)
    if (a.top_logprobs[i].id != b.top_logprobs[i].id ||
        std::memcmp(&a.top_logprobs[i].logprob, &b.top_logprobs[i].logprob, 4) != 0)
      return false;
  return true;
}

void ExpectSame(const Completion& want, const Completion& got, const std::string& what) {
  EXPECT_TRUE(got.error.ok()) << what << ": " << got.error.text();
  EXPECT_EQ(want.finish, got.finish) << what;
  ASSERT_EQ(want.tokens.size(), got.tokens.size()) << what;
  for (size_t i = 0; i < want.tokens.size(); ++i)
    ASSERT_TRUE(SameLogprobs(want.tokens[i], got.tokens[i])) << what << ": token " << i;
}

// Each request alone, one token a step, pages in order: what every schedule must reproduce.
std::vector<Completion> Plain(const std::vector<Request>& requests) {
  std::vector<Completion> plain;
  for (const Request& r : requests) {
    ScheduleOptions o;
    o.chunk = 1;
    o.prefix_cache = false;
    plain.push_back(RunWith(o, {r}).done[0]);
  }
  return plain;
}

TEST(Engine, NoScheduleReachesTheOutput) {
  const std::vector<Request> requests = Requests();
  const std::vector<Completion> plain = Plain(requests);
  std::map<int64_t, std::vector<int32_t>> whole;
  for (size_t i = 0; i < requests.size(); ++i) {
    ASSERT_TRUE(plain[i].error.ok()) << plain[i].error.text();
    whole[i] = requests[i].prompt;
    for (const OutputToken& t : plain[i].tokens) whole[i].push_back(t.id);
  }
  ReplayDraft right(whole, 0, 64), wrong(whole, 3, 64), all_wrong(whole, 1, 64);

  struct Row {
    const char* name;
    std::function<void(ScheduleOptions&)> set;
    std::function<bool(const EngineStats&)> happened;
  };
  const Row kRows[] = {
      {"together", [](auto&) {}, [](auto& s) { return s.shared_steps > 0; }},
      {"chunks of 7", [](auto& o) { o.chunk = 7; }, [](auto& s) { return s.prompts_cut == 4; }},
      {"chunks of 64", [](auto& o) { o.chunk = 64; }, [](auto& s) { return s.prompts_cut == 3; }},
      {"13 rows a step", [](auto& o) { o.max_batch_tokens = 13; }, [](auto& s) { return s.mixed_steps > 0; }},
      {"1 row a step", [](auto& o) { o.max_batch_tokens = 1; }, [](auto& s) { return s.shared_steps == 0; }},
      {"2 at once", [](auto& o) { o.max_sequences = 2; }, [](auto& s) { return s.prefix_hit_tokens >= 64; }},
      {"pages of 1", [](auto& o) { o.page_size = 1, o.max_sequences = 1; },
       [](auto& s) { return s.prefix_hit_tokens >= 140; }},
      {"pages of 5", [](auto& o) { o.page_size = 5; }, [](auto&) { return true; }},
      {"shuffled pages", [](auto& o) { o.page_size = 8, o.page_shuffle_seed = 5, o.poison_pages = true; },
       [](auto& s) { return s.pages_out_of_order > 10; }},
      {"preempted", [](auto& o) { o.preempt_every = 3, o.poison_pages = true, o.prefix_cache = false; },
       [](auto& s) { return s.preemptions > 5 && s.tokens_recomputed > 100; }},
      {"preempted every step", [](auto& o) { o.preempt_every = 1, o.chunk = 10; },
       [](auto& s) { return s.preemptions > 20; }},
      {"few pages", [](auto& o) { o.page_size = 4, o.pages = 60, o.poison_pages = true; },
       [](auto& s) { return s.preemptions > 0 && s.prefix_evictions > 0; }},
      {"shuffled batch", [](auto& o) { o.batch_order_seed = 9; }, [](auto& s) { return s.orders_shuffled > 5; }},
      {"right drafts", [&](auto& o) { o.draft_tokens = 4, o.drafts = &right; },
       [](auto& s) { return s.drafts_accepted > 40 && s.drafts_rejected == 0; }},
      {"some wrong drafts", [&](auto& o) { o.draft_tokens = 4, o.drafts = &wrong, o.page_size = 2; },
       [](auto& s) { return s.drafts_accepted > 20 && s.drafts_rejected > 20; }},
      {"wrong drafts", [&](auto& o) { o.draft_tokens = 3, o.drafts = &all_wrong, o.poison_pages = true; },
       [](auto& s) { return s.drafts_accepted == 0 && s.drafts_rejected > 100; }},
      {"n-gram drafts", [](auto& o) { o.draft_tokens = 2; }, [](auto& s) { return s.verify_steps > 0; }},
      {"everything",
       [&](auto& o) {
         o.chunk = 9, o.max_batch_tokens = 21, o.page_size = 4, o.pages = 70, o.page_shuffle_seed = 3;
         o.poison_pages = true, o.preempt_every = 5, o.batch_order_seed = 4, o.draft_tokens = 3, o.drafts = &wrong;
       },
       [](auto& s) {
         return s.prompts_cut > 0 && s.preemptions > 0 && s.drafts_rejected > 0 && s.orders_shuffled > 0 &&
                s.prefix_hit_tokens > 0;
       }}};
  for (const Row& row : kRows) {
    ScheduleOptions o;
    row.set(o);
    const Outcome run = RunWith(o, requests);
    for (size_t i = 0; i < requests.size(); ++i)
      ExpectSame(plain[i], run.done[i], std::string(row.name) + ", request " + std::to_string(i));
    EXPECT_TRUE(row.happened(run.stats)) << row.name << ": the condition did not happen";
  }
}

// The negative control: a model that can see the batch is caught by the comparison above.
TEST(Engine, AModelThatSeesTheBatchIsCaught) {
  struct Leaky : HashModel {
    Status Forward(const ForwardBatch& batch, KvCache& cache, std::vector<float>* logits) override {
      const Status s = HashModel::Forward(batch, cache, logits);
      if (batch.tokens.size() > 3)
        for (float& x : *logits) x = x == 0.0f ? 100.0f : x;
      return s;
    }
  } leaky;
  const std::vector<Request> requests = Requests();
  const Outcome run = RunWith({}, requests, &leaky);
  int differ = 0;
  const std::vector<Completion> plain = Plain(requests);
  for (size_t i = 0; i < requests.size(); ++i)
    for (size_t t = 0; t < plain[i].tokens.size(); ++t)
      differ += t >= run.done[i].tokens.size() || !SameLogprobs(plain[i].tokens[t], run.done[i].tokens[t]);
  EXPECT_GT(differ, 0);
}

TEST(Engine, SeedsAreIndependentOfMates) {
  std::vector<Request> mates = Requests();
  Request a = mates[2];
  a.sampling.temperature = 0.8f;
  a.sampling.seed = 42;
  const Completion alone = RunWith({}, {a}).done[0];
  mates[0].sampling.temperature = mates[1].sampling.temperature = 0.8f;
  mates[0].sampling.seed = mates[1].sampling.seed = 42;
  ExpectSame(alone, RunWith({}, {a, mates[0], mates[1]}).done[0], "first");
  ExpectSame(alone, RunWith({}, {mates[0], mates[1], a}).done[2], "last");
  Request other = a;
  other.sampling.seed = 43;
  const Completion b = RunWith({}, {other}).done[0];
  bool differs = false;
  for (size_t i = 0; i < alone.tokens.size(); ++i) differs |= alone.tokens[i].id != b.tokens[i].id;
  EXPECT_TRUE(differs);
}

TEST(Engine, BadRequestsAreRefusedAndLeaveTheOthersAlone) {
  HashModel model(256);
  model.poison_token = 61;
  EngineOptions options;
  options.schedule.pages = 3;
  options.schedule.page_size = 64;
  auto engine = *Engine::Create(&model, options);
  const auto error = [&](const std::function<void(Request&)>& edit) {
    Request r;
    r.prompt = {1, 2, 3};
    edit(r);
    auto id = engine->Submit(r);
    return id.ok() ? std::string() : id.status().text();
  };
  EXPECT_NE(error([](Request& r) { r.prompt.clear(); }).find("no tokens"), std::string::npos);
  EXPECT_NE(error([](Request& r) { r.prompt[1] = 64; }).find("token 1 of the prompt is 64"), std::string::npos);
  EXPECT_NE(error([](Request& r) { r.prompt[1] = -1; }).find("-1"), std::string::npos);
  EXPECT_NE(error([](Request& r) { r.prompt.assign(257, 1); }).find("context is 256"), std::string::npos);
  EXPECT_NE(error([](Request& r) { r.prompt.assign(200, 1); }).find("KV cache"), std::string::npos);
  EXPECT_NE(error([](Request& r) { r.sampling.top_p = 0; }).find("top_p"), std::string::npos);
  EXPECT_NE(error([](Request& r) { r.max_tokens = -1; }).find("max_tokens"), std::string::npos);
  EXPECT_NE(error([](Request& r) { r.stop = {"x"}; }).find("tokenizer"), std::string::npos);
  EXPECT_FALSE(engine->HasWork());

  std::vector<Request> requests(3);
  for (Request& r : requests) r.prompt = {1, 2, 3}, r.max_tokens = 5, r.stop_at_eos = false;
  const Completion want = RunAll(engine.get(), {requests[0]})[0];
  requests[1].prompt = {5, 61, 6};    // the forward pass fails
  requests[2].prompt.assign(150, 2);  // outgrows three pages
  requests[2].max_tokens = 100;
  const auto done = RunAll(engine.get(), requests);
  ExpectSame(want, done[0], "beside bad mates");
  EXPECT_EQ(done[1].finish, FinishReason::kError);
  EXPECT_NE(done[1].error.text().find("NaN at layer 0"), std::string::npos);
  EXPECT_EQ(done[2].finish, FinishReason::kError);
  EXPECT_NE(done[2].error.text().find("3 pages"), std::string::npos);
  model.nan_logits = true;
  const auto nan = RunAll(engine.get(), {requests[0]});
  EXPECT_EQ(nan[0].finish, FinishReason::kError);
  EXPECT_NE(nan[0].error.text().find("NaN"), std::string::npos);
}

TEST(Engine, EndsAndCancels) {
  HashModel model(40);
  EngineOptions options;
  options.schedule.page_size = 8;
  options.schedule.prefix_cache = false;
  auto engine = *Engine::Create(&model, options);
  Request r;
  r.prompt = {1, 2, 3};
  r.stop_at_eos = false;
  r.max_tokens = 0;
  EXPECT_EQ(RunAll(engine.get(), {r})[0].tokens.size(), 0u);
  r.max_tokens = 1000;
  const Completion to_the_end = RunAll(engine.get(), {r})[0];
  EXPECT_EQ(to_the_end.tokens.size(), 37u);
  EXPECT_EQ(to_the_end.finish, FinishReason::kLength);
  const int64_t id = *engine->Submit(r);
  engine->Step();
  engine->Step();
  EXPECT_EQ(engine->ComputedTokens(id), 4);
  EXPECT_EQ(engine->PageTable(id)->size(), 1u);
  engine->Cancel(id);
  EXPECT_FALSE(engine->HasWork());
  const auto news = engine->TakeDeltas();
  ASSERT_EQ(news.size(), 1u);
  EXPECT_EQ(news[0].finish, FinishReason::kCancelled);
  EXPECT_EQ(news[0].tokens.size(), 2u);
  EXPECT_EQ(engine->free_pages(), engine->cache().pages());
  engine->Cancel(12345);
  EXPECT_TRUE(engine->TakeDeltas().empty());
}

TEST(Engine, StopStringsCutTheTextWhereverTokensEnd) {
  std::vector<int32_t> byte_ids(256, -1);
  for (int i = 0; i < 64; ++i) byte_ids['0' + i] = i;
  auto tokenizer = Tokenizer::FromBytes(byte_ids, {});
  ASSERT_TRUE(tokenizer.ok());
  for (const int drafts : {0, 3}) {
    HashModel model;
    EngineOptions options;
    options.tokenizer = &*tokenizer;
    options.schedule.draft_tokens = drafts;
    auto engine = *Engine::Create(&model, options);
    Request r;
    r.prompt = {1, 2, 3};
    r.max_tokens = 30;
    r.stop_at_eos = false;
    const Completion all = RunAll(engine.get(), {r})[0];
    ASSERT_EQ(all.text.size(), 30u);
    r.stop = {all.text.substr(10, 3), "not there"};
    const Completion cut = RunAll(engine.get(), {r})[0];
    EXPECT_EQ(cut.finish, FinishReason::kStop);
    EXPECT_EQ(cut.text, all.text.substr(0, all.text.find(r.stop[0])));
    // A near miss at the very end is given back.
    r.stop = {all.text.substr(28) + "#"};
    EXPECT_EQ(RunAll(engine.get(), {r})[0].text, all.text);
  }
}

// Probes see every row; rows of rejected drafts are declared void and then seen again.
TEST(Engine, ProbesSeeEveryPositionOnceVoidRowsAreTakenBack) {
  struct Sink : ProbeSink {
    bool Wants(Site, int) const override { return true; }
    void OnRows(Site, int, const Rows& rows) override {
      for (int64_t i = 0; i < rows.count; ++i) {
        std::vector<uint8_t> bytes(static_cast<const uint8_t*>(rows.data), static_cast<const uint8_t*>(rows.data) + 16);
        auto [it, fresh] = seen.try_emplace(rows.owners[i].position, bytes);
        if (!fresh) {
          EXPECT_EQ(it->second, bytes);
        }
      }
    }
    std::map<int32_t, std::vector<uint8_t>> seen;
  };
  Request r = Requests()[2];
  r.owner = 7;
  std::map<int32_t, std::vector<uint8_t>> first;
  for (const bool draft : {false, true}) {
    Sink sink;
    std::vector<int32_t> zeros(300, 0);
    ReplayDraft wrong({{7, zeros}}, 0, 64);
    HashModel model;
    EngineOptions options;
    options.probe = &sink;
    options.schedule.draft_tokens = draft ? 3 : 0;
    options.schedule.drafts = &wrong;
    options.on_rows_void = [&](int64_t owner, int32_t position) {
      EXPECT_EQ(owner, 7);
      sink.seen.erase(sink.seen.lower_bound(position), sink.seen.end());
    };
    auto engine = *Engine::Create(&model, options);
    RunAll(engine.get(), {r});
    if (draft) {
      EXPECT_GT(engine->stats().drafts_rejected, 10);
      EXPECT_EQ(sink.seen, first);
    } else {
      first = sink.seen;
      EXPECT_EQ(first.size(), r.prompt.size() + r.max_tokens - 1);
    }
  }
}

}  // namespace
}  // namespace samebits
