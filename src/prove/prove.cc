#include "prove/prove.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "base/files.h"
#include "base/progress.h"
#include "base/strings.h"
#include "numerics/random_inputs.h"
#include "prove/golden_digests.h"
#include "prove/start_up_check.h"
#include "trace/recorder.h"

namespace samebits {
namespace {

constexpr int64_t kOwner = 1000;  // RowOwner::request of the request under proof

// Everything one run of the request left behind.
struct Trial {
  std::unique_ptr<SiteDigests> sites = std::make_unique<SiteDigests>(kOwner);
  std::vector<Digest128> kv_rows;  // [layers * computed positions], read back through the page table
  std::vector<OutputToken> tokens;
  size_t prompt_tokens = 0;
  EngineStats stats;
};

struct Setup {
  ScheduleOptions schedule;
  std::vector<Request> mates_before, mates_after, warm_up;
  std::vector<int32_t> prompt;  // empty: the request's own
  int32_t max_tokens = -1;
  bool probe = true;
  bool prompt_logits = true;   // the engine takes no prefix from its cache when the logits of all rows are asked for
  ProbeSink* extra = nullptr;  // instead of the digests
  SiteValues* values = nullptr;
  uint64_t run = 1;  // what a broken rule draws from
  std::shared_ptr<DraftSource> drafts;
  bool by_contract = false;  // no rule is broken in this run, whatever the options say
};

class Prover {
 public:
  Prover(Model* model, const ProveOptions& options) : model_(model), options_(options) {}

  Result<Trial> Run(const Setup& setup) {
    Trial trial;
    EngineOptions engine_options;
    engine_options.schedule = setup.schedule;
    BreakRules broken = options_.broken;
    broken.seed = setup.run;
    if (broken.any() && !setup.by_contract) engine_options.broken = &broken;
    ProbeSink* sink = setup.values  ? static_cast<ProbeSink*>(setup.values)
                      : setup.extra ? setup.extra
                                    : trial.sites.get();
    if (setup.probe) engine_options.probe = sink;
    engine_options.on_rows_void = [&](int64_t owner, int32_t first) {
      if (owner != kOwner) return;
      trial.sites->Void(first);
      if (setup.values) setup.values->Void(first);
    };
    SB_ASSIGN(std::unique_ptr<Engine> engine, Engine::Create(model_, engine_options));
    for (const Request& warm : setup.warm_up) {
      SB_ASSIGN(const int64_t ignored, engine->Submit(warm));
      (void)ignored;
      while (engine->HasWork()) engine->Step();
      engine->TakeDeltas();
    }
    for (const Request& mate : setup.mates_before) SB_RETURN_IF_ERROR(engine->Submit(mate).status());
    Request request;
    request.prompt = setup.prompt.empty() ? options_.prompt : setup.prompt;
    trial.prompt_tokens = request.prompt.size();
    request.max_tokens = setup.max_tokens >= 0 ? setup.max_tokens : options_.max_tokens;
    request.sampling = options_.sampling;
    request.stop_at_eos = false;
    request.top_logprobs = 3;
    request.prompt_logits = setup.prompt_logits;
    request.owner = kOwner;
    SB_ASSIGN(const int64_t id, engine->Submit(request));
    for (const Request& mate : setup.mates_after) SB_RETURN_IF_ERROR(engine->Submit(mate).status());
    bool done = false;
    while (engine->HasWork() && !done) {
      engine->Step();
      if (const std::vector<int32_t>* table = engine->PageTable(id))
        ReadBack(engine.get(), *table, engine->ComputedTokens(id), &trial);
      for (Delta& delta : engine->TakeDeltas()) {
        if (delta.finish == FinishReason::kError) return delta.error;
        if (delta.id != id) continue;
        for (OutputToken& token : delta.tokens) trial.tokens.push_back(std::move(token));
        done = delta.finish != FinishReason::kNone;
      }
    }
    trial.stats = engine->stats();
    return trial;
  }

  // Digests of the cache's rows as they stand in the pages, in position order, layer by layer.
  void ReadBack(Engine* engine, const std::vector<int32_t>& table, int64_t positions, Trial* trial) {
    const int layers = model_->config().num_layers;
    trial->kv_rows.assign(static_cast<size_t>(layers * positions), {});
    for (int layer = 0; layer < layers; ++layer) {
      const PagedRows latent = engine->cache().LatentRows(layer, table.data());
      const int64_t bytes = latent.row_stride * (DTypeBits(latent.dtype) / 8);
      PagedRows keys;
      if (model_->config().sparse()) keys = engine->cache().IndexKeyRows(layer, table.data());
      for (int64_t p = 0; p < positions; ++p) {
        Digest128& digest = trial->kv_rows[static_cast<size_t>(layer * positions + p)];
        digest =
            HashBytes(static_cast<const uint8_t*>(latent.pool) + latent.Slot(p) * bytes, static_cast<size_t>(bytes));
        if (keys.pool == nullptr) continue;
        const int64_t key_bytes = keys.row_stride * (DTypeBits(keys.dtype) / 8);
        const Digest128 key = HashBytes(static_cast<const uint8_t*>(keys.pool) + keys.Slot(p) * key_bytes,
                                        static_cast<size_t>(key_bytes));
        digest.hi ^= key.lo, digest.lo ^= key.hi;
      }
    }
  }

  Model* model() { return model_; }
  const ProveOptions& options() const { return options_; }

 private:
  Model* model_;
  const ProveOptions& options_;
};

// How two trials compare; tokens and logprobs may be absent from one side (a prompt scored without drawing).
bool SameTokens(const std::vector<OutputToken>& a, const std::vector<OutputToken>& b) {
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i].id != b[i].id || Bits(a[i].logprob) != Bits(b[i].logprob) ||
        a[i].top_logprobs.size() != b[i].top_logprobs.size())
      return false;
    for (size_t j = 0; j < a[i].top_logprobs.size(); ++j)
      if (a[i].top_logprobs[j].id != b[i].top_logprobs[j].id ||
          Bits(a[i].top_logprobs[j].logprob) != Bits(b[i].top_logprobs[j].logprob))
        return false;
  }
  return true;
}

int64_t SameKv(const Trial& a, const Trial& b, int layers, bool* differs) {
  const int64_t na = static_cast<int64_t>(a.kv_rows.size()) / layers,
                nb = static_cast<int64_t>(b.kv_rows.size()) / layers, n = std::min(na, nb);
  for (int64_t layer = 0; layer < layers; ++layer)
    for (int64_t p = 0; p < n; ++p)
      if (a.kv_rows[static_cast<size_t>(layer * na + p)] != b.kv_rows[static_cast<size_t>(layer * nb + p)])
        *differs = true;
  return n * layers;
}

struct Condition {
  int number;
  const char* name;
  const char* text;
  // Fills setups (each is one run to compare); returns why it is not run, or "".
  std::function<std::string(Prover*, const Trial& baseline, std::vector<Setup>*)> prepare;
  // What happened over the runs, or an empty string if the condition did not come about.
  std::function<std::string(const EngineStats&)> evidence;
};

std::vector<Request> Mates(const ProveOptions& options, int count, uint64_t seed) {
  RandomInputs random(seed);
  std::vector<Request> mates;
  for (int i = 0; i < count; ++i) {
    Request mate;
    const size_t length = 1 + random.Below(options.prompt.size() + 40);
    for (size_t j = 0; j < length; ++j) mate.prompt.push_back(options.prompt[random.Below(options.prompt.size())]);
    mate.max_tokens = static_cast<int32_t>(4 + random.Below(30));
    mate.stop_at_eos = false;
    mate.sampling = {.temperature = 1.0f, .seed = seed + static_cast<uint64_t>(i)};
    mates.push_back(std::move(mate));
  }
  return mates;
}

ScheduleOptions Plain() {
  ScheduleOptions s;
  s.prefix_cache = false;
  s.chunk = s.max_batch_tokens = 1 << 16;
  s.pages = 0;
  return s;
}

Setup With(const std::function<void(ScheduleOptions*)>& change, uint64_t run) {
  Setup setup;
  setup.schedule = Plain();
  setup.run = run;
  change(&setup.schedule);
  return setup;
}

long long LL(int64_t n) { return static_cast<long long>(n); }

// Prompt and output.
std::vector<int32_t> Whole(const Trial& baseline, const std::vector<int32_t>& prompt) {
  std::vector<int32_t> whole = prompt;
  for (const OutputToken& token : baseline.tokens) whole.push_back(token.id);
  return whole;
}

const std::vector<Condition>& Conditions() {
  using Setups = std::vector<Setup>;
  static const std::vector<Condition> kConditions = {
      {1, "again", "running again",
       [](Prover*, const Trial&, Setups* s) {
         s->push_back(With([](ScheduleOptions*) {}, 2));
         return std::string();
       },
       [](const EngineStats&) { return std::string("second run of the same request"); }},
      {2, "batch", "who shares the batch, and at which position",
       [](Prover* p, const Trial&, Setups* s) {
         Setup setup =
             With([](ScheduleOptions* o) { o->batch_order_seed = 5, o->chunk = 256, o->max_batch_tokens = 700; }, 3);
         setup.mates_before = Mates(p->options(), 3, 31), setup.mates_after = Mates(p->options(), 2, 32);
         s->push_back(std::move(setup));
         return std::string();
       },
       [](const EngineStats& e) {
         return e.shared_steps == 0 || e.orders_shuffled == 0
                    ? std::string()
                    : Format("5 mates, %lld shared steps, %lld in another order", LL(e.shared_steps),
                             LL(e.orders_shuffled));
       }},
      {3, "chunks", "how prefill is cut into chunks",
       [](Prover*, const Trial&, Setups* s) {
         for (const int32_t chunk : {37, 64, 65}) s->push_back(With([&](ScheduleOptions* o) { o->chunk = chunk; }, 4));
         return std::string();
       },
       [](const EngineStats& e) {
         return e.prompts_cut == 0 ? std::string()
                                   : Format("chunks of 37, 64 and 65: %lld chunks", LL(e.prefill_chunks));
       }},
      {4, "prefix", "a prefix-cache hit or miss",
       [](Prover* p, const Trial&, Setups* s) {
         Setup setup = With([](ScheduleOptions* o) { o->prefix_cache = true, o->page_size = 16; }, 5);
         Request warm;
         warm.prompt = p->options().prompt;
         warm.prompt.push_back(warm.prompt[0]);
         warm.max_tokens = 2, warm.stop_at_eos = false;
         setup.warm_up = {warm};
         setup.prompt_logits = false;
         s->push_back(std::move(setup));
         return std::string();
       },
       [](const EngineStats& e) {
         return e.prefix_hit_tokens == 0 ? std::string()
                                         : Format("%lld tokens came from the cache", LL(e.prefix_hit_tokens));
       }},
      {5, "decode", "prefill or decode: the same tokens scored at once and one by one",
       [](Prover* p, const Trial& baseline, Setups* s) {
         Setup whole = With([](ScheduleOptions*) {}, 6);
         whole.prompt = Whole(baseline, p->options().prompt);
         whole.prompt.pop_back();  // the last drawn token is never computed in the baseline
         whole.max_tokens = 0;
         s->push_back(std::move(whole));
         s->push_back(With([](ScheduleOptions* o) { o->chunk = 1; }, 7));
         return std::string();
       },
       [](const EngineStats& e) {
         return Format("all as one prefill; then %lld steps of one row", LL(e.prefill_chunks - 1));
       }},
      {5, "verify", "one token at a time, or k+1 at once (speculation)",
       [](Prover* p, const Trial& baseline, Setups* s) {
         Setup setup = With([](ScheduleOptions* o) { o->draft_tokens = 4; }, 8);
         const std::map<int64_t, std::vector<int32_t>> replay = {{kOwner, Whole(baseline, p->options().prompt)}};
         setup.drafts = std::make_shared<ReplayDraft>(replay, 4, static_cast<int32_t>(p->model()->config().vocab_size));
         setup.schedule.drafts = setup.drafts.get();
         s->push_back(std::move(setup));
         return std::string();
       },
       [](const EngineStats& e) {
         return e.drafts_accepted == 0 || e.drafts_rejected == 0
                    ? std::string()
                    : Format("%lld verify steps, %lld drafts accepted, %lld rejected", LL(e.verify_steps),
                             LL(e.drafts_accepted), LL(e.drafts_rejected));
       }},
      {6, "preempt", "preemption and resume",
       [](Prover*, const Trial&, Setups* s) {
         s->push_back(With([](ScheduleOptions* o) { o->preempt_every = 5, o->poison_pages = true; }, 9));
         return std::string();
       },
       [](const EngineStats& e) {
         return e.preemptions == 0 ? std::string()
                                   : Format("%lld preemptions, %lld tokens computed again", LL(e.preemptions),
                                            LL(e.tokens_recomputed));
       }},
      {7, "pages", "which physical pages hold the KV",
       [](Prover*, const Trial&, Setups* s) {
         for (const int32_t size : {16, 64})
           s->push_back(
               With([&](ScheduleOptions* o) { o->page_shuffle_seed = 77, o->page_size = size, o->poison_pages = true; },
                    10));
         return std::string();
       },
       [](const EngineStats& e) {
         return e.pages_out_of_order == 0
                    ? std::string()
                    : Format("pages of 16 and 64, %lld out of order, free ones full of NaN", LL(e.pages_out_of_order));
       }},
      {8, "index-order", "the order of the top-k index list",
       [](Prover* p, const Trial&, Setups* s) {
         if (!p->model()->config().sparse()) return std::string("this model has no index lists");
         s->push_back(With([](ScheduleOptions* o) { o->shuffle_index_lists = 99; }, 11));
         return std::string();
       },
       [](const EngineStats& e) {
         return e.index_lists_shuffled == 0
                    ? std::string()
                    : Format("%lld lists reached attention permuted", LL(e.index_lists_shuffled));
       }},
  };
  return kConditions;
}

void AddStats(EngineStats* sum, const EngineStats& s) {
  sum->steps += s.steps, sum->prefill_chunks += s.prefill_chunks, sum->prompts_cut += s.prompts_cut;
  sum->shared_steps += s.shared_steps, sum->orders_shuffled += s.orders_shuffled,
      sum->prefix_hit_tokens += s.prefix_hit_tokens;
  sum->preemptions += s.preemptions, sum->tokens_recomputed += s.tokens_recomputed,
      sum->pages_out_of_order += s.pages_out_of_order;
  sum->verify_steps += s.verify_steps, sum->drafts_accepted += s.drafts_accepted,
      sum->drafts_rejected += s.drafts_rejected;
  sum->index_lists_shuffled += s.index_lists_shuffled;
}

std::string CauseOf(const SiteComparison& sites) {
  const Site site = SiteDigests::SiteOf(sites.first);
  const std::string where = SiteDigests::NameOf(sites.first);
  switch (InfoOf(site).kind) {
    case SiteKind::kIndexList:
      return sites.order_only
                 ? "the index list holds the same positions in another order, while the scores before it are equal"
                 : "the index lists hold other positions although the scores before them are equal: a tie decided "
                   "otherwise";
    case SiteKind::kExperts:
      return "other experts are chosen although the router logits before them are equal";
    case SiteKind::kToken:
      return "another token is drawn from equal logits";
    default:
      break;
  }
  if (site == Site::kMqa || site == Site::kLse)
    return "attention adds in another order: queries, keys and the set of positions before it are equal";
  if (site == Site::kExpertWeights)
    return "the router's weights differ although its fp32 logits are equal: the scores were taken from rounded logits";
  if (site == Site::kRouterLogits) return "the router logits are rounded or summed otherwise; their inputs are equal";
  return "everything before " + where + " is equal, so this operation itself adds or rounds otherwise";
}

// Growth over layers of the residual stream, and the values around the first difference.
Status Explain(Prover* prover, Setup baseline_setup, Setup other_setup, ConditionResult* result) {
  const Site first = SiteDigests::SiteOf(result->sites.first);
  SiteValues a(kOwner, {Site::kHidden, first}), b(kOwner, {Site::kHidden, first});
  baseline_setup.values = &a, other_setup.values = &b;
  baseline_setup.probe = other_setup.probe = true;
  SB_RETURN_IF_ERROR(prover->Run(baseline_setup).status());
  SB_RETURN_IF_ERROR(prover->Run(other_setup).status());
  for (const auto& [key, rows] : a.values()) {
    const auto other = b.values().find(key);
    if (SiteDigests::SiteOf(key) != Site::kHidden || other == b.values().end()) continue;
    GrowthPoint point{key.first, 0, 0};
    double sum = 0;
    int64_t count = 0;
    for (const auto& [position, values] : rows) {
      const auto at = other->second.find(position);
      if (at == other->second.end() || static_cast<size_t>(position) >= result->same_inputs) continue;
      for (size_t i = 0; i < std::min(values.size(), at->second.size()); ++i) {
        const double d = std::fabs(double{values[i]} - double{at->second[i]});
        point.max_abs = std::max(point.max_abs, d);
        sum += d * d, ++count;
      }
    }
    point.rms = count ? std::sqrt(sum / static_cast<double>(count)) : 0;
    result->growth.push_back(point);
  }
  const auto va = a.values().find(result->sites.first), vb = b.values().find(result->sites.first);
  if (va == a.values().end() || vb == b.values().end()) return Ok();
  const auto ra = va->second.find(result->first_position), rb = vb->second.find(result->first_position);
  if (ra == va->second.end() || rb == vb->second.end()) return Ok();
  for (size_t i = 0; i < std::min(ra->second.size(), rb->second.size()) && result->window.size() < 12; ++i)
    if (Bits(ra->second[i]) != Bits(rb->second[i]))
      result->window.push_back({static_cast<int32_t>(i), {ra->second[i], rb->second[i]}});
  return Ok();
}

// Positions whose input token is the same in both runs: up to the first token drawn differently.
size_t SameInputs(const Trial& a, const Trial& b) {
  for (size_t i = 0; i < std::min(a.tokens.size(), b.tokens.size()); ++i)
    if (a.tokens[i].id != b.tokens[i].id) return a.prompt_tokens + i;
  return SIZE_MAX;
}

// Compares one run with the baseline into `result`; true if they differ.
bool Compare(const Trial& baseline, const Trial& other, int layers, ConditionResult* result) {
  SiteComparison sites = CompareSites(*baseline.sites, *other.sites, SameInputs(baseline, other));
  bool kv_differs = false;
  result->rows_compared += sites.compared;
  result->kv_rows_compared += SameKv(baseline, other, layers, &kv_differs);
  const bool tokens_same = SameTokens(baseline.tokens, other.tokens);
  if (!sites.differs && !kv_differs && tokens_same) {
    if (result->verdict != Verdict::kDiffers) result->sites = std::move(sites);
    return false;
  }
  if (result->verdict == Verdict::kDiffers) return true;
  result->verdict = Verdict::kDiffers;
  result->first_site = sites.differs ? SiteDigests::NameOf(sites.first)
                       : kv_differs  ? "KV rows in the cache"
                                     : "tokens or logprobs";
  result->first_position = sites.first_position;
  result->same_inputs = SameInputs(baseline, other);
  result->cause = sites.differs ? CauseOf(sites)
                  : kv_differs  ? "the pages hold other bytes than were written"
                                : "equal logits gave other output";
  result->sites = std::move(sites);
  return true;
}

std::string RootDigest(const Trial& trial) {
  HashStream stream;
  for (const auto& [key, rows] : trial.sites->rows()) {
    stream.Update(&key, sizeof key);
    for (const SiteDigests::Row& row : rows)
      if (row.seen) stream.Update(&row.digest, sizeof row.digest);
  }
  stream.Update(trial.kv_rows.data(), trial.kv_rows.size() * sizeof(Digest128));
  for (const OutputToken& token : trial.tokens)
    stream.Update(&token.id, sizeof token.id), stream.Update(&token.logprob, sizeof token.logprob);
  return stream.Digest().Hex();
}

// Runs this program again and reads the digest it prints last.
Result<std::string> DigestOfAnotherProcess(const ProveOptions& options) {
  std::string command = "'" + options.self + "'";
  for (const std::string& argument : options.self_arguments) command += " '" + argument + "'";
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return Error("cannot start " + options.self);
  std::string output;
  char buffer[256];
  while (std::fgets(buffer, sizeof buffer, pipe) != nullptr) output += buffer;
  if (::pclose(pipe) != 0) return Error("the other process failed");
  const std::vector<std::string> lines = Split(output, '\n');
  return lines.size() < 2 ? Error("the other process printed nothing") : Result<std::string>(lines[lines.size() - 2]);
}

struct BreakName {
  const char* name;
  bool BreakRules::* flag;
};
constexpr BreakName kBreaks[] = {
    {"index-order", &BreakRules::index_order},
    {"topk-tie", &BreakRules::topk_tie},
    {"topk-set-sorted-late", &BreakRules::topk_set_sorted_late},
    {"router-bf16", &BreakRules::router_bf16},
    {"double-rounding", &BreakRules::double_rounding},
    {"split-by-batch", &BreakRules::split_by_batch},
    {"chunk-blocks", &BreakRules::chunk_blocks},
    {"threads", &BreakRules::threads},
};

}  // namespace

bool ProveReport::AnyDiffers() const {
  bool differs = golden_differs || kernels_differ;
  for (const ConditionResult& c : conditions) differs |= c.verdict == Verdict::kDiffers;
  return differs;
}

std::vector<std::string> ConditionNames() {
  std::vector<std::string> names = {"contract"};
  for (const Condition& c : Conditions()) names.push_back(c.name);
  for (const char* name : {"threads", "graph", "recording", "process", "parallel", "device"}) names.push_back(name);
  return names;
}

std::vector<std::string> BreakNames() {
  std::vector<std::string> names;
  for (const BreakName& b : kBreaks) names.push_back(b.name);
  return names;
}

Result<BreakRules> BreakFromName(const std::string& name) {
  for (const BreakName& b : kBreaks)
    if (name == b.name) {
      BreakRules rules;
      rules.*b.flag = true;
      return rules;
    }
  return Error("--break " + name + ": there is no such rule; " + Join(BreakNames(), ", "));
}

Result<std::string> ProofDigest(Model* model, const ProveOptions& options) {
  Prover prover(model, options);
  SB_ASSIGN(const Trial trial, prover.Run(With([](ScheduleOptions*) {}, 1)));
  return RootDigest(trial);
}

Result<ProveReport> Prove(Model* model, const std::string& model_name, const CpuContext& context,
                          const ProveOptions& options, const std::function<void(const ConditionResult&)>& on_result) {
  for (const std::string& name : options.only) {
    const std::vector<std::string> names = ConditionNames();
    if (std::find(names.begin(), names.end(), name) == names.end())
      return Error("--only " + name + ": there is no such condition; " + Join(names, ", "));
  }
  const auto wanted = [&](const char* name) {
    return options.only.empty() || std::find(options.only.begin(), options.only.end(), name) != options.only.end();
  };
  const int layers = model->config().num_layers;
  Prover prover(model, options);
  ProveReport report;
  report.model = model_name;
  report.contract = ContractId(model->profile(), options.broken.any() ? &options.broken : nullptr);
  report.stamp = NumericsStamp(report.contract);
  report.isa = IsaName(context.isa), report.threads = context.pool->threads(), report.layers = layers;
  for (const BreakName& b : kBreaks)
    if (options.broken.*b.flag) report.broken = b.name;

  Progress progress("prove", "runs", static_cast<int64_t>(ConditionNames().size()) + 1, options.progress);
  const Setup plain = With([](ScheduleOptions*) {}, 1);
  KernelLog log;
  CpuContext logged = context;
  logged.log = &log;
  model->SetContext(logged);
  Result<Trial> first = prover.Run(plain);
  model->SetContext(context);
  if (!first.ok()) return first.status();
  const Trial baseline = std::move(*first);
  progress.Add(1);
  std::string other_kernels;
  for (const auto& [kernel, isa] : log.ran())
    if (isa != context.isa) other_kernels += " " + kernel + " ran as " + IsaName(isa);
  report.kernels_differ = !other_kernels.empty() || log.ran().empty();
  report.kernels = report.kernels_differ
                       ? "not those of the manifest:" + other_kernels
                       : Format("%zu ran, all cpu/%s as the manifest says", log.ran().size(), IsaName(context.isa));
  report.prompt_tokens = static_cast<int64_t>(options.prompt.size());
  report.output_tokens = static_cast<int64_t>(baseline.tokens.size());
  report.sites = static_cast<int64_t>(baseline.sites->rows().size());
  report.root_digest = RootDigest(baseline);
  if (baseline.sites->rows().empty() || baseline.kv_rows.empty())
    return Error("the baseline run left no rows to compare");

  const auto finish = [&](ConditionResult result) {
    progress.Add(1);
    report.conditions.push_back(result);
    on_result(report.conditions.back());
  };
  const auto not_run = [&](int number, const char* name, const char* text, std::string why) {
    ConditionResult r;
    r.number = number, r.name = name, r.text = text, r.evidence = std::move(why);
    finish(std::move(r));
  };

  if (options.broken.any() && wanted("contract")) {
    // Some broken rules are wrong in the same way every time: only the contract's own run can tell.
    ConditionResult result;
    result.name = "contract", result.text = "the rule of the contract";
    Setup contract = plain;
    contract.by_contract = true;
    SB_ASSIGN(const Trial trial, prover.Run(contract));
    result.evidence = "the same request with the rule in force";
    result.verdict = Verdict::kSame;
    if (Compare(baseline, trial, layers, &result) && result.sites.differs)
      SB_RETURN_IF_ERROR(Explain(&prover, contract, plain, &result));
    finish(std::move(result));
  }
  for (const Condition& condition : Conditions()) {
    if (!wanted(condition.name)) continue;
    ConditionResult result;
    result.number = condition.number, result.name = condition.name, result.text = condition.text;
    std::vector<Setup> setups;
    const std::string why_not = condition.prepare(&prover, baseline, &setups);
    if (!why_not.empty()) {
      result.evidence = why_not;
      finish(std::move(result));
      continue;
    }
    EngineStats stats;
    for (const Setup& setup : setups) {
      SB_ASSIGN(const Trial trial, prover.Run(setup));
      AddStats(&stats, trial.stats);
      if (Compare(baseline, trial, layers, &result) && result.growth.empty() && result.sites.differs)
        SB_RETURN_IF_ERROR(Explain(&prover, plain, setup, &result));
    }
    result.evidence = condition.evidence(stats);
    if (result.evidence.empty())
      return Error(Format("condition %s did not come about with this prompt (%lld tokens); use a longer one, or --only",
                          condition.name, LL(report.prompt_tokens)));
    if (result.verdict != Verdict::kDiffers) result.verdict = Verdict::kSame;
    finish(std::move(result));
  }

  if (wanted("threads")) {
    ConditionResult result;
    result.number = 9, result.name = "threads", result.text = "threads and SIMD width";
    std::string ran;
    for (const Isa isa : AvailableIsas())
      for (const int threads : {1, 2, 3}) {
        ThreadPool pool(threads);
        model->SetContext(CpuContext{&pool, isa});
        Result<Trial> trial = prover.Run(plain);
        bool differs = false;
        Status status = trial.status();
        if (trial.ok()) {
          differs = Compare(baseline, *trial, layers, &result);
          if (differs && result.growth.empty() && result.sites.differs) {
            // Only this side runs on the other threads; the baseline's values are computed where it was.
            SiteValues other(kOwner, {Site::kHidden});
            Setup setup = plain;
            setup.values = &other;
            status = prover.Run(setup).status();
            model->SetContext(context);
            SiteValues base(kOwner, {Site::kHidden});
            setup.values = &base;
            if (status.ok()) status = prover.Run(setup).status();
            for (const auto& [key, rows] : base.values()) {
              GrowthPoint point{key.first, 0, 0};
              for (const auto& [position, values] : rows)
                for (size_t i = 0; i < values.size(); ++i)
                  point.max_abs = std::max(
                      point.max_abs, std::fabs(double{values[i]} - double{other.values().at(key).at(position)[i]}));
              result.growth.push_back(point);
            }
          }
        }
        model->SetContext(context);
        SB_RETURN_IF_ERROR(status);
        if (threads == 1) ran += std::string(ran.empty() ? "" : ", ") + IsaName(isa);
      }
    result.evidence = ran + "; 1, 2 and 3 threads each";
    if (result.verdict != Verdict::kDiffers) result.verdict = Verdict::kSame;
    finish(std::move(result));
  }
  if (wanted("graph")) not_run(10, "graph", "eager or CUDA graph", "the CPU has no graphs");
  if (wanted("recording")) {
    ConditionResult result;
    result.number = 11, result.name = "recording", result.text = "recording on or off";
    Setup off = plain;
    off.probe = false;
    SB_ASSIGN(Trial bare, prover.Run(off));
    char folder[] = "/tmp/samebits-prove-XXXXXX";
    if (::mkdtemp(folder) == nullptr) return Error("cannot create a temporary folder under /tmp for the recording");
    const std::string recording = std::string(folder) + "/recording";
    const auto remove = [&] { return std::system(("rm -rf '" + std::string(folder) + "'").c_str()); };
    Result<std::unique_ptr<Recorder>> recorder = Recorder::Create(recording, TraceWriterOptions{}, {});
    if (!recorder.ok()) return remove(), recorder.status();
    Status status = (*recorder)->BeginStep(0);
    Setup on = plain;
    on.extra = recorder->get();
    Result<Trial> recorded = prover.Run(on);
    if (status.ok()) status = (*recorder)->EndStep();
    if (status.ok()) status = (*recorder)->Finish();
    if (remove() != 0) return Error(std::string(folder) + ": cannot be removed");
    SB_RETURN_IF_ERROR(status);
    if (!recorded.ok()) return recorded.status();
    for (const Trial* trial : {&bare, &*recorded}) Compare(baseline, *trial, layers, &result);
    result.evidence = "no probe at all, and a recorder that wrote every site's digests";
    if (result.verdict != Verdict::kDiffers) result.verdict = Verdict::kSame;
    finish(std::move(result));
  }
  if (wanted("process")) {
    ConditionResult result;
    result.number = 12, result.name = "process", result.text = "another process on the same kind of machine";
    if (options.self.empty()) {
      result.evidence = "this program does not know its own path";
    } else {
      SB_ASSIGN(const std::string digest, DigestOfAnotherProcess(options));
      result.rows_compared = CompareSites(*baseline.sites, *baseline.sites).compared;
      result.verdict = digest == report.root_digest ? Verdict::kSame : Verdict::kDiffers;
      result.evidence = "root digest " + digest.substr(0, 16) + " from another process";
      if (result.verdict == Verdict::kDiffers)
        result.first_site = "root digest", result.cause = "two processes disagree; record both and run samebits first";
    }
    finish(std::move(result));
  }
  if (wanted("parallel")) not_run(13, "parallel", "tensor- and expert-parallel size", "this version runs on one rank");
  if (wanted("device"))
    not_run(14, "device", "CPU or GPU",
            "the engine runs on the CPU in this version; GPU ops are checked by make gpu-test");

  const bool compared = std::any_of(report.conditions.begin(), report.conditions.end(),
                                    [](const ConditionResult& r) { return r.verdict != Verdict::kNotRun; });
  if (!compared) return Error("no condition was run, so nothing was compared");

  report.golden = "no golden digest for this model, prompt and profile";
  const std::string key = model_name.substr(model_name.find_last_of('/') + 1) + " " + report.contract;
  for (const GoldenDigest& golden : kGoldenDigests) {
    if (!options.default_request || options.broken.any() || key != golden.what) continue;
    report.golden_differs = report.root_digest != golden.hex;
    report.golden = report.golden_differs ? "differs from the repository's " + std::string(golden.hex)
                                          : "same as in the repository";
  }
  return report;
}

}  // namespace samebits
