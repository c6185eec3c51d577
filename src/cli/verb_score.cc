// samebits score: logits and sites of given token ids, in the names of the golden references.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>

#include "base/files.h"
#include "base/strings.h"
#include "cli/cli_options.h"
#include "cli/cli_verbs.h"
#include "model/score.h"
#include "prove/start_up_check.h"
#include "store/safetensors.h"

namespace samebits {
namespace {

struct Flags {
  std::string model, tokens, out, sites = "logits,hidden,final,topk,experts,expert_weights";
  std::string profile = "deepseek", logit_rows = "all";
  int64_t chunk = 512;
  bool dense = false;
  CpuOptions cpu;
};

Result<int64_t> LastLogits(const std::string& text) {
  if (text == "all") return int64_t{0};
  if (!text.starts_with("last:")) return Error("--logit-rows must be all or last:N, not " + text);
  SB_ASSIGN(const int64_t n, ParseInt(std::string_view(text).substr(5), "--logit-rows last:N"));
  if (n < 1) return Error("--logit-rows last:N needs N of at least 1");
  return n;
}

Status RunScore(const Flags& flags) {
  ScoreOptions options;
  options.chunk = flags.chunk;
  SB_ASSIGN(options.sites, SitesFromNames(flags.sites));
  SB_ASSIGN(options.last_logits, LastLogits(flags.logit_rows));
  LoadOptions load;
  load.dense = flags.dense;
  load.show_progress = true;
  SB_ASSIGN(load.profile, ProfileFromName(flags.profile));
  SB_ASSIGN(const std::string text, ReadFile(flags.tokens));
  SB_ASSIGN(const std::vector<ScorePrompt> prompts, ParseScorePrompts(text, flags.tokens));
  SB_ASSIGN(const CpuEnvironment cpu, flags.cpu.Open());
  SB_RETURN_IF_ERROR(RequireContract(cpu.context()));
  SB_ASSIGN(const std::unique_ptr<Model> model, Model::Load(flags.model, cpu.context(), load));

  std::vector<std::pair<std::string, Tensor>> tensors;
  int64_t tokens = 0;
  const auto start = std::chrono::steady_clock::now();
  for (const ScorePrompt& prompt : prompts) {
    SB_ASSIGN(ScoredTensors scored, Score(model.get(), prompt, options));
    for (auto& [name, tensor] : scored) tensors.emplace_back(prompt.name + "." + name, std::move(tensor));
    tokens += static_cast<int64_t>(prompt.ids.size());
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::vector<NamedTensor> named;
  for (const auto& [name, tensor] : tensors) named.push_back({name, tensor.ref()});
  SB_RETURN_IF_ERROR(WriteSafetensors(
      flags.out, named, {{"contract", ContractId(model->profile())}, {"profile", model->profile().name}}));
  std::fprintf(stderr, "%s: %zu tensors; %s tokens in %.2f s, %.0f tokens/s\n", flags.out.c_str(), named.size(),
               WithCommas(tokens).c_str(), seconds, static_cast<double>(tokens) / seconds);
  return Ok();
}

}  // namespace

int Verb_score(int argc, char** argv) {
  Flags flags;
  CLI::App app(
      "Runs token ids through a model and writes logits and the values at any site of every layer.\n"
      "example: samebits score models/tiny-v32 --tokens tests/golden/tiny-v32/prompt.json --profile float32 "
      "--out mine.safetensors",
      "samebits score");
  app.add_option("model", flags.model, "checkpoint folder")->required();
  app.add_option("--tokens", flags.tokens,
                 "JSON: {\"prompts\": [{\"name\", \"ids\"}]}, {\"ids\": [...]} or a list of ids")
      ->required();
  app.add_option("--out", flags.out, "safetensors file to write; tensors are PROMPT.SITE.LAYER")->required();
  app.add_option("--sites", flags.sites, "comma-separated sites")->capture_default_str();
  app.add_option("--profile", flags.profile, "deepseek (as released) or float32 (no activation is rounded)")
      ->capture_default_str();
  app.add_option("--chunk", flags.chunk, "tokens per step; changes no bit")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->capture_default_str();
  app.add_option("--logit-rows", flags.logit_rows, "all, or last:N positions")->capture_default_str();
  app.add_flag("--dense", flags.dense, "V3.2: ignore the indexer, attend to everything");
  flags.cpu.Add(&app);
  if (const int code = ParseVerb(&app, "score", argc, argv); code >= 0) return code;
  const Status status = RunScore(flags);
  return status.ok() ? kExitSame : Trouble("score", status.text());
}

}  // namespace samebits
