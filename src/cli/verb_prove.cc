// samebits prove: the main job.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/files.h"
#include "base/strings.h"
#include "cli/cli_options.h"
#include "cli/cli_verbs.h"
#include "prove/prove.h"
#include "prove/prove_report.h"
#include "prove/start_up_check.h"
#include "tokenizer/chat.h"

namespace samebits {
namespace {

constexpr char kDefaultText[] =
    "Tell me a story about a cat. Then count from 12 to 17. What is 7 + 5? Please remember that the code of the red "
    "box is 4821. "
    "The dog sees a bird near the river. The girl has three apples and the boy has two apples. Hello! "
    "Tell me a story about a bird and a tree. Count from 3 to 9. What is 21 + 14? The code of the blue box is 7390. "
    "The cat sleeps in the house. The old man walks to the market and buys bread. What is the code of the red box?";

Result<std::vector<int32_t>> PromptIds(const std::string& folder, const std::string& text, bool sparse) {
  SB_ASSIGN(const TokenizerFolder tokenizer, LoadTokenizer(folder));
  ChatMessage message;
  message.role = "user", message.content = text;
  SB_ASSIGN(const std::vector<PromptPart> parts,
            RenderChat(GuessChatStyle(sparse, tokenizer.chat_template), {message}, ChatOptions{}));
  return tokenizer.tokenizer.Encode(parts);
}

std::string SelfPath() {
  char path[4096];
  const ssize_t n = ::readlink("/proc/self/exe", path, sizeof path);
  return n > 0 ? std::string(path, static_cast<size_t>(n)) : std::string();
}

}  // namespace

int Verb_prove(int argc, char** argv) {
  CLI::App app(
      "Runs one request under every condition that must not matter and compares digests at every site of every layer, "
      "of the\n"
      "KV rows, of tokens and of logprobs. Exit code 0: same under every condition that ran; 1: a condition changed "
      "bits;\n"
      "2: trouble.",
      "samebits prove");
  std::string folder, text = kDefaultText, file, profile_name = "deepseek", broken, report_path;
  ProveOptions options;
  options.sampling = {.temperature = 0.7f, .top_p = 0.95, .seed = 1};
  CpuOptions cpu;
  bool json = false, digest_only = false, golden = false;
  app.add_option("model", folder, "checkpoint folder")->required();
  app.add_option("--prompt", text, "user message (default: a built-in one of about 250 tokens for models/tiny-v32)");
  app.add_option("--prompt-file", file, "user message from a file");
  app.add_option("--max-tokens", options.max_tokens, "tokens to draw (default 24)")->check(CLI::Range(4, 100000));
  app.add_option("--temperature", options.sampling.temperature, "default 0.7; 0 is greedy");
  app.add_option("--top-p", options.sampling.top_p, "default 0.95");
  app.add_option("--seed", options.sampling.seed, "of the request (default 1)");
  app.add_option("--profile", profile_name, "deepseek or float32");
  app.add_option("--only", options.only, "only these conditions: " + Join(ConditionNames(), ", "))->delimiter(',');
  app.add_option("--break", broken, "switch one rule off, to see it caught: " + Join(BreakNames(), ", "));
  app.add_option("--report", report_path, "write a self-contained HTML report here");
  app.add_flag("--json", json, "the report as JSON on stdout");
  app.add_flag("--golden", golden, "also print the root digest as a row of src/prove/golden_digests.h");
  app.add_flag("--digest-only", digest_only, "one plain run; print its root digest (two replicas compare this line)");
  cpu.Add(&app);
  app.footer(
      "Examples:\n  samebits prove models/tiny-v32 --report prove.html\n  samebits prove models/tiny-v32 --break "
      "topk-tie\n"
      "  samebits prove models/tiny-v32 --only chunks,prefix --prompt-file long.txt");
  if (const int code = ParseVerb(&app, "prove", argc, argv); code >= 0) return code;
  for (const char* flag : {"--prompt", "--prompt-file", "--max-tokens", "--temperature", "--top-p", "--seed"})
    options.default_request = (flag == std::string("--prompt") || options.default_request) && app.count(flag) == 0;

  Result<CpuEnvironment> environment = cpu.Open();
  if (!environment.ok()) return Trouble("prove", environment.status().text());
  if (const Status status = CheckSample(options.sampling); !status.ok()) return Trouble("prove", status.text());
  const Result<const Profile*> profile = ProfileFromName(profile_name);
  if (!profile.ok()) return Trouble("prove", profile.status().text());
  if (!broken.empty()) {
    const Result<BreakRules> rules = BreakFromName(broken);
    if (!rules.ok()) return Trouble("prove", rules.status().text());
    options.broken = *rules;
  }
  if (!file.empty()) {
    const Result<std::string> contents = ReadFile(file, 1 << 26);
    if (!contents.ok()) return Trouble("prove", contents.status().text());
    text = *contents;
  }
  if (const Status status = RequireContract(environment->context()); !status.ok())
    return Trouble("prove", status.text());
  LoadOptions load;
  load.profile = *profile;
  load.show_progress = !json;
  Result<std::unique_ptr<Model>> model = Model::Load(folder, environment->context(), load);
  if (!model.ok()) return Trouble("prove", model.status().text());
  Result<std::vector<int32_t>> prompt = PromptIds(folder, text, (*model)->config().sparse());
  if (!prompt.ok()) return Trouble("prove", prompt.status().text());
  options.prompt = *prompt;
  options.progress = !json;

  if (digest_only) {
    const Result<std::string> digest = ProofDigest(model->get(), options);
    if (!digest.ok()) return Trouble("prove", digest.status().text());
    std::printf("%s\n", digest->c_str());
    return kExitSame;
  }
  options.self = SelfPath();
  options.self_arguments = {"prove",
                            folder,
                            "--digest-only",
                            "--prompt",
                            text,
                            "--max-tokens",
                            std::to_string(options.max_tokens),
                            "--temperature",
                            Format("%.9g", static_cast<double>(options.sampling.temperature)),
                            "--top-p",
                            Format("%.17g", options.sampling.top_p),
                            "--seed",
                            std::to_string(options.sampling.seed),
                            "--profile",
                            profile_name};
  if (!broken.empty()) options.self_arguments.insert(options.self_arguments.end(), {"--break", broken});
  for (std::string& argument : options.self_arguments)  // for the shell, inside single quotes
    for (size_t at = 0; (at = argument.find('\'', at)) != std::string::npos; at += 4) argument.replace(at, 1, "'\\''");

  if (!json) {
    std::printf("model     %s, profile %s\nrequest   %zu prompt tokens, %d drawn at temperature %g, seed %llu\n",
                folder.c_str(), profile_name.c_str(), options.prompt.size(), options.max_tokens,
                static_cast<double>(options.sampling.temperature),
                static_cast<unsigned long long>(options.sampling.seed));
    if (!broken.empty()) std::printf("BROKEN    rule %s is switched off on purpose\n", broken.c_str());
    std::printf("\n%s\n", ProveTableHead().c_str());
  }
  const Result<ProveReport> report =
      Prove(model->get(), folder, environment->context(), options, [&](const ConditionResult& result) {
        if (json) return;
        std::printf("%s", ProveTableRow(result).c_str());
        std::fflush(stdout);
      });
  if (!report.ok()) return Trouble("prove", report.status().text());
  if (!report_path.empty()) {
    const Status status = WriteFile(report_path, ProveHtml(*report));
    if (!status.ok()) return Trouble("prove", status.text());
  }
  if (json) {
    std::printf("%s\n", ProveJson(*report).c_str());
  } else {
    std::printf("\n%s", ProveSummary(*report).c_str());
    if (golden) {
      const std::string name = folder.substr(folder.find_last_of('/') + 1);
      std::printf("    {\"%s %s\", \"%s\"},\n", name.c_str(), report->contract.c_str(), report->root_digest.c_str());
    }
    if (!report_path.empty()) std::printf("report    %s\n", report_path.c_str());
  }
  return report->AnyDiffers() ? kExitDiffer : kExitSame;
}

}  // namespace samebits
