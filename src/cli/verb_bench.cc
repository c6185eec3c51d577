// samebits bench MODEL: end-to-end timing on this machine. Ops have their own programs (build/cpu/*_bench).

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/strings.h"
#include "cli/cli_options.h"
#include "cli/cli_verbs.h"
#include "model/model.h"
#include "prove/start_up_check.h"

namespace samebits {
namespace {

struct Timing {
  double prefill = 0, decode = 0;
};

double Median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

// Prefill in one step, then greedy decode of one stream.
Result<Timing> RunOnce(Model* model, int64_t prompt, int64_t decode, KvCache* cache,
                       const std::vector<int32_t>& table) {
  using Clock = std::chrono::steady_clock;
  const int64_t vocab = model->config().vocab_size;
  std::vector<int32_t> tokens(static_cast<size_t>(prompt));
  std::vector<RowOwner> owners(tokens.size());
  for (int64_t i = 0; i < prompt; ++i) {
    tokens[static_cast<size_t>(i)] = static_cast<int32_t>((i * 7919 + 11) % (vocab - 64) + 32);
    owners[static_cast<size_t>(i)] = RowOwner{0, static_cast<int32_t>(i)};
  }
  const std::vector<const int32_t*> tables(tokens.size(), table.data());
  std::vector<float> logits;
  Timing t;
  auto step = [&](std::span<const int32_t> ids, std::span<const RowOwner> rows) -> Status {
    const int32_t last = static_cast<int32_t>(ids.size()) - 1;
    ForwardBatch batch;
    batch.tokens = ids, batch.owners = rows;
    batch.page_tables = std::span(tables).first(ids.size());
    batch.logit_rows = std::span(&last, 1);
    return model->Forward(batch, *cache, &logits);
  };
  auto begin = Clock::now();
  SB_RETURN_IF_ERROR(step(tokens, owners));
  t.prefill = std::chrono::duration<double>(Clock::now() - begin).count();
  begin = Clock::now();
  for (int64_t i = 0; i < decode; ++i) {
    const int32_t id = static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    const RowOwner owner{0, static_cast<int32_t>(prompt + i)};
    SB_RETURN_IF_ERROR(step(std::span(&id, 1), std::span(&owner, 1)));
  }
  t.decode = std::chrono::duration<double>(Clock::now() - begin).count();
  return t;
}

}  // namespace

int Verb_bench(int argc, char** argv) {
  CLI::App app("Times prefill and single-stream decode of a model on this machine: median of the runs.",
               "samebits bench");
  std::string folder, profile_name = "deepseek";
  int64_t prompt = 2000, decode = 64, runs = 5;
  bool json = false;
  CpuOptions cpu;
  app.add_option("model", folder, "checkpoint folder")->required();
  app.add_option("--prompt-tokens", prompt, "length of the prompt (default 2000)")->check(CLI::Range(1, 1 << 20));
  app.add_option("--decode-tokens", decode, "tokens decoded after it (default 64)")->check(CLI::Range(1, 1 << 20));
  app.add_option("--runs", runs, "runs after one warm-up (default 5)")->check(CLI::Range(1, 1000));
  app.add_option("--profile", profile_name, "deepseek or float32");
  app.add_flag("--json", json, "one JSON object");
  cpu.Add(&app);
  app.footer("Example:\n  samebits bench models/tiny-v32 --json\nBeside Hugging Face: bench/peers/hf_cpu.py");
  if (const int code = ParseVerb(&app, "bench", argc, argv); code >= 0) return code;

  const Result<CpuEnvironment> environment = cpu.Open();
  if (!environment.ok()) return Trouble("bench", environment.status().text());
  if (const Status status = RequireContract(environment->context()); !status.ok())
    return Trouble("bench", status.text());
  LoadOptions load;
  const Result<const Profile*> profile = ProfileFromName(profile_name);
  if (!profile.ok()) return Trouble("bench", profile.status().text());
  load.profile = *profile;
  Result<std::unique_ptr<Model>> model = Model::Load(folder, environment->context(), load);
  if (!model.ok()) return Trouble("bench", model.status().text());
  const ModelConfig& config = (*model)->config();
  if (prompt + decode > config.max_positions)
    return Trouble("bench", Format("%lld tokens are more than the model's %d positions",
                                   static_cast<long long>(prompt + decode), config.max_positions));
  constexpr int32_t kPage = 64;
  const int64_t pages = (prompt + decode + kPage) / kPage;
  KvCache cache(config, **profile, pages, kPage);
  std::vector<int32_t> table(static_cast<size_t>(pages));
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<int32_t>(i);
  std::vector<double> prefills, decodes;
  for (int64_t run = 0; run <= runs; ++run) {
    const Result<Timing> t = RunOnce(model->get(), prompt, decode, &cache, table);
    if (!t.ok()) return Trouble("bench", t.status().text());
    if (run > 0) prefills.push_back(t->prefill), decodes.push_back(t->decode);
  }
  const double p = Median(prefills), d = Median(decodes);
  if (json) {
    std::printf("%s\n", nlohmann::ordered_json({{"model", folder},
                                                {"profile", profile_name},
                                                {"isa", IsaName(environment->isa)},
                                                {"threads", environment->pool->threads()},
                                                {"prompt_tokens", prompt},
                                                {"decode_tokens", decode},
                                                {"runs", runs},
                                                {"prefill_seconds", p},
                                                {"decode_seconds", d},
                                                {"prefill_tokens_per_s", static_cast<double>(prompt) / p},
                                                {"decode_tokens_per_s", static_cast<double>(decode) / d}})
                            .dump()
                            .c_str());
  } else {
    std::printf("%s, profile %s, %s, %d threads, median of %lld\n", folder.c_str(), profile_name.c_str(),
                IsaName(environment->isa), environment->pool->threads(), static_cast<long long>(runs));
    std::printf("  prefill  %5lld tokens  %8.1f tokens/s\n", static_cast<long long>(prompt),
                static_cast<double>(prompt) / p);
    std::printf("  decode   %5lld tokens  %8.1f tokens/s\n", static_cast<long long>(decode),
                static_cast<double>(decode) / d);
  }
  return kExitSame;
}

}  // namespace samebits
