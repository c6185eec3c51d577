// samebits record: run a request and keep what every site saw.

#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/files.h"
#include "base/strings.h"
#include "cli/cli_options.h"
#include "cli/cli_verbs.h"
#include "engine/engine.h"
#include "prove/prove.h"
#include "prove/start_up_check.h"
#include "tokenizer/chat.h"
#include "trace/recorder.h"

namespace samebits {

int Verb_record(int argc, char** argv) {
  CLI::App app(
      "Runs one request and records its sites: digests by default, statistics, or the tensors in full. Compare two\n"
      "recordings with samebits diff and samebits first. The format is in doc/trace_format.md.",
      "samebits record");
  std::string folder, out, text, level = "digest", layout = "shards", profile_name = "deepseek", sites, layers, steps,
                                 positions;
  std::vector<int32_t> ids;
  int32_t max_tokens = 8, chunk = 1024;
  SampleParams sampling;
  TraceWriterOptions options;
  CpuOptions cpu;
  app.add_option("model", folder, "checkpoint folder")->required();
  app.add_option("--out", out, "folder of the recording (must not exist)")->required();
  app.add_option("--prompt", text, "user message");
  app.add_option("--ids", ids, "token ids instead of a prompt")->delimiter(',');
  app.add_option("--max-tokens", max_tokens, "tokens to draw (default 8; 0: the prompt only)")
      ->check(CLI::Range(0, 1 << 20));
  app.add_option("--temperature", sampling.temperature, "default 0: greedy");
  app.add_option("--seed", sampling.seed, "of the request");
  app.add_option("--chunk", chunk, "rows of one prefill chunk (default 1024)")->check(CLI::Range(1, 1 << 20));
  app.add_option("--level", level, "digest, stats or full")->check(CLI::IsMember({"digest", "stats", "full"}));
  app.add_option("--layout", layout, "of full tensors: shards (one file a step) or per-tensor (classic debug_* files)")
      ->check(CLI::IsMember({"shards", "per-tensor"}));
  app.add_option("--sites", sites, "only these sites or groups, e.g. topk,attn0");
  app.add_option("--layers", layers, "only these layers, e.g. 0,3-5");
  app.add_option("--steps", steps, "only these steps");
  app.add_option("--positions", positions, "only these token positions");
  app.add_option("--profile", profile_name, "deepseek or float32");
  // A run of an engine that lacks one rule: something to look at with first and explain (examples/field_report).
  std::string broken_name;
  uint64_t broken_seed = 1;
  app.add_option("--break", broken_name, "run with one rule switched off, as prove does: " + Join(BreakNames(), ", "));
  app.add_option("--break-seed", broken_seed, "what an arbitrary choice of that engine draws from (default 1)");
  cpu.Add(&app);
  app.footer(
      "Examples:\n  samebits record models/tiny-v32 --prompt \"Hello!\" --out run-a\n"
      "  samebits record models/tiny-v32 --prompt \"Hello!\" --out run-b --chunk 3\n  samebits diff run-a run-b");
  if (const int code = ParseVerb(&app, "record", argc, argv); code >= 0) return code;
  const auto trouble = [](const Status& status) { return Trouble("record", status.text()); };
  if (text.empty() == ids.empty()) return Trouble("record", "give either --prompt or --ids");
  if (FileExists(out)) return Trouble("record", out + ": exists already; a recording is never overwritten");

  BreakRules broken;
  if (!broken_name.empty()) {
    const Result<BreakRules> rules = BreakFromName(broken_name);
    if (!rules.ok()) return trouble(rules.status());
    broken = *rules;
    broken.seed = broken_seed;
  }
  const BreakRules* const break_rules = broken.any() ? &broken : nullptr;

  Result<CpuEnvironment> environment = cpu.Open();
  if (!environment.ok()) return trouble(environment.status());
  const Result<const Profile*> profile = ProfileFromName(profile_name);
  if (!profile.ok()) return trouble(profile.status());
  if (const Status status = RequireContract(environment->context()); !status.ok()) return trouble(status);
  LoadOptions load;
  load.profile = *profile;
  Result<std::unique_ptr<Model>> model = Model::Load(folder, environment->context(), load);
  if (!model.ok()) return trouble(model.status());
  Request request;
  if (!ids.empty()) {
    request.prompt = ids;
  } else {
    const Result<TokenizerFolder> tokenizer = LoadTokenizer(folder);
    if (!tokenizer.ok()) return trouble(tokenizer.status());
    ChatMessage message;
    message.role = "user", message.content = text;
    const auto parts =
        RenderChat(GuessChatStyle((*model)->config().sparse(), tokenizer->chat_template), {message}, ChatOptions{});
    if (!parts.ok()) return trouble(parts.status());
    const auto encoded = tokenizer->tokenizer.Encode(*parts);
    if (!encoded.ok()) return trouble(encoded.status());
    request.prompt = *encoded;
  }
  request.max_tokens = max_tokens, request.sampling = sampling, request.owner = 0;

  RecorderFilter filter;
  if (!sites.empty()) {
    Result<std::vector<Site>> parsed = ParseSites(sites, "--sites");
    if (!parsed.ok()) return trouble(parsed.status());
    filter.sites = *parsed;
    options.filter["sites"] = sites;
  }
  const std::pair<const char*, std::pair<std::string*, std::vector<std::pair<int64_t, int64_t>>*>> ranges[] = {
      {"--layers", {&layers, &filter.layers}},
      {"--steps", {&steps, &filter.steps}},
      {"--positions", {&positions, &filter.positions}}};
  for (const auto& [flag, pair] : ranges) {
    if (pair.first->empty()) continue;
    auto parsed = ParseRanges(*pair.first, flag);
    if (!parsed.ok()) return trouble(parsed.status());
    *pair.second = *parsed;
    options.filter[std::string(flag).substr(2)] = *pair.first;
  }
  options.level = level == "full" ? TraceLevel::kFull : level == "stats" ? TraceLevel::kStats : TraceLevel::kDigest;
  options.layout = layout == "shards" ? TraceLayout::kShards : TraceLayout::kPerTensor;
  options.about = {{"engine", "samebits 0.1.0"},
                   {"model", folder},
                   {"contract", ContractId(**profile, break_rules)},
                   {"isa", IsaName(environment->isa)},
                   {"chunk", std::to_string(chunk)}};
  if (break_rules != nullptr) options.about["break"] = broken_name;
  options.pool = environment->pool.get();
  Result<std::unique_ptr<Recorder>> recorder = Recorder::Create(out, options, filter);
  if (!recorder.ok()) return trouble(recorder.status());
  EngineOptions engine_options;
  engine_options.probe = recorder->get();
  engine_options.broken = break_rules;
  engine_options.schedule.chunk = chunk;
  engine_options.schedule.prefix_cache = false;
  Result<std::unique_ptr<Engine>> engine = Engine::Create(model->get(), engine_options);
  if (!engine.ok()) return trouble(engine.status());
  const Result<int64_t> id = (*engine)->Submit(request);
  if (!id.ok()) return trouble(id.status());
  int64_t step = 0, drawn = 0;
  while ((*engine)->HasWork()) {
    if (const Status status = (*recorder)->BeginStep(step++); !status.ok()) return trouble(status);
    (*engine)->Step();
    if (const Status status = (*recorder)->EndStep(); !status.ok()) return trouble(status);
    for (const Delta& delta : (*engine)->TakeDeltas()) {
      if (delta.finish == FinishReason::kError) return trouble(delta.error);
      drawn += static_cast<int64_t>(delta.tokens.size());
    }
  }
  if (const Status status = (*recorder)->Finish(); !status.ok()) return trouble(status);
  std::printf("%s: %lld steps, %zu prompt tokens, %lld drawn, level %s, contract %s\n", out.c_str(),
              static_cast<long long>(step), request.prompt.size(), static_cast<long long>(drawn), level.c_str(),
              ContractId(**profile, break_rules).c_str());
  return kExitSame;
}

}  // namespace samebits
