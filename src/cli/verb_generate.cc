// samebits generate: prompts in, text out, streaming.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/strings.h"
#include "cli/cli_options.h"
#include "cli/cli_verbs.h"
#include "engine/engine.h"
#include "prove/start_up_check.h"
#include "tokenizer/chat.h"
#include "tokenizer/unicode.h"

namespace samebits {
namespace {

struct Flags {
  std::string model, system, profile = "deepseek", tools_template, seed = "0";
  std::vector<std::string> prompts, files, messages, stop;
  bool chat = false, raw = false, thinking = false, json = false, ids = false, ignore_eos = false, dense = false;
  bool verbose = false;
  double temperature = 0, top_p = 1;
  int top_k = 0, max_tokens = 256, logprobs = -1, draft = 0;
  CpuOptions cpu;
};

struct Prompt {
  std::string name;  // in errors
  std::vector<int32_t> ids;
};

// Everything that stands between the flags and the engine.
class PromptReader {
 public:
  PromptReader(const Flags& flags, const TokenizerFolder& folder, const ModelConfig& config)
      : flags_(flags), folder_(folder), config_(config) {
    const Tokenizer& t = folder.tokenizer;
    chat_ = flags.chat || (!flags.raw && t.AddedId("<｜User｜>") >= 0 && t.AddedId("<｜Assistant｜>") >= 0);
    style_ = GuessChatStyle(config.sparse(), folder.chat_template);
    options_.thinking = flags.thinking;
  }

  Result<std::vector<Prompt>> ReadAll() {
    if (!flags_.tools_template.empty()) {
      SB_ASSIGN(options_.tools_template, ReadFile(flags_.tools_template));
    }
    for (size_t i = 0; i < flags_.prompts.size(); ++i)
      SB_RETURN_IF_ERROR(AddText(flags_.prompts[i], Format("--prompt %zu", i + 1)));
    for (const std::string& file : flags_.files) {
      SB_ASSIGN(std::string text, file == "-" ? ReadStdin() : ReadFile(file));
      // The line end that editors and echo put behind the last line is not meant.
      if (text.ends_with('\n')) text.pop_back();
      SB_RETURN_IF_ERROR(AddText(text, file == "-" ? "standard input" : file));
    }
    for (const std::string& file : flags_.messages) {
      SB_ASSIGN(const std::string text, file == "-" ? ReadStdin() : ReadFile(file));
      SB_RETURN_IF_ERROR(CheckUtf8(text).At(file));
      SB_ASSIGN(const std::vector<ChatMessage> messages, ParseChat(text, file));
      SB_RETURN_IF_ERROR(AddChat(messages, file));
    }
    return std::move(prompts_);
  }

 private:
  static Result<std::string> ReadStdin() {
    if (isatty(STDIN_FILENO)) std::fputs("reading the prompt from the terminal; end it with Ctrl-D\n", stderr);
    std::string text;
    char buffer[65536];
    for (size_t n; (n = std::fread(buffer, 1, sizeof(buffer), stdin)) > 0;) {
      text.append(buffer, n);
      if (text.size() > (size_t{1} << 30)) return Error("standard input is longer than 1 GiB");
    }
    if (std::ferror(stdin)) return Error("standard input cannot be read");
    return text;
  }

  Status AddText(const std::string& text, const std::string& name) {
    SB_RETURN_IF_ERROR(CheckUtf8(text).At(name));
    if (chat_) {
      std::vector<ChatMessage> messages;
      if (!flags_.system.empty()) messages.push_back({.role = "system", .content = flags_.system});
      messages.push_back({.role = "user", .content = text});
      return AddChat(messages, name);
    }
    if (!flags_.system.empty()) return Error("--system needs the chat form (the model has none, or --raw is given)");
    // Raw text is the user's own: markers in it count.
    Prompt p{name, {}};
    SB_ASSIGN(p.ids, folder_.tokenizer.Encode(text, true));
    if (p.ids.empty() || p.ids[0] != config_.bos_id) p.ids.insert(p.ids.begin(), config_.bos_id);
    prompts_.push_back(std::move(p));
    return Ok();
  }

  Status AddChat(const std::vector<ChatMessage>& messages, const std::string& name) {
    auto parts = RenderChat(style_, messages, options_);
    SB_RETURN_IF_ERROR(parts.status().At(name));
    Prompt p{name, {}};
    auto ids = folder_.tokenizer.Encode(*parts);
    SB_RETURN_IF_ERROR(ids.status().At(name));
    p.ids = std::move(*ids);
    prompts_.push_back(std::move(p));
    return Ok();
  }

  const Flags& flags_;
  const TokenizerFolder& folder_;
  const ModelConfig& config_;
  bool chat_;
  ChatStyle style_;
  ChatOptions options_;
  std::vector<Prompt> prompts_;
};

// The shortest decimal that reads back as the same float.
nlohmann::json FloatJson(float x) {
  if (x - x != 0) return nullptr;  // -inf: an impossible token
  for (int digits = 6; digits < 9; ++digits) {
    const std::string text = Format("%.*g", digits, static_cast<double>(x));
    if (std::strtof(text.c_str(), nullptr) == x) return std::strtod(text.c_str(), nullptr);
  }
  return std::strtod(Format("%.9g", static_cast<double>(x)).c_str(), nullptr);
}

std::string JsonLine(const Prompt& prompt, const Completion& c, const Tokenizer& tokenizer, const std::string& contract,
                     int logprobs) {
  nlohmann::ordered_json j;
  const auto token_text = [&](int32_t id) { return tokenizer.Decode(std::span(&id, 1)); };
  j["prompt"] = prompt.name;
  j["text"] = c.text;
  j["ids"] = nlohmann::json::array();
  for (const OutputToken& t : c.tokens) j["ids"].push_back(t.id);
  j["finish_reason"] = FinishReasonName(c.finish);
  if (!c.error.ok()) j["error"] = c.error.text();
  j["prompt_tokens"] = prompt.ids.size();
  j["completion_tokens"] = c.tokens.size();
  j["contract"] = contract;
  if (logprobs >= 0) {
    j["logprobs"] = nlohmann::json::array();
    for (const OutputToken& t : c.tokens) {
      nlohmann::ordered_json row = {{"id", t.id}, {"token", token_text(t.id)}, {"logprob", FloatJson(t.logprob)}};
      row["top"] = nlohmann::json::array();
      for (const TokenLogprob& top : t.top_logprobs)
        row["top"].push_back(
            nlohmann::ordered_json{{"id", top.id}, {"token", token_text(top.id)}, {"logprob", FloatJson(top.logprob)}});
      j["logprobs"].push_back(std::move(row));
    }
  }
  return j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

// Writes to stdout. A reader that went away ends the run quietly; anything else that fails is an error.
class Output {
 public:
  Output() { std::signal(SIGPIPE, SIG_IGN); }
  void Write(const std::string& text) {
    if (failed_ != 0 || text.empty()) return;
    errno = 0;
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
      failed_ = errno != 0 ? errno : EIO;
  }
  bool closed() const { return failed_ != 0; }
  Status status() const {
    if (failed_ == 0 || failed_ == EPIPE) return Ok();
    return Error(std::string("standard output cannot be written: ") + std::strerror(failed_));
  }

 private:
  int failed_ = 0;
};

double Seconds(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
}

Result<uint64_t> ParseSeed(const std::string& text) {
  uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error != std::errc() || end != text.data() + text.size())
    return Error("--seed " + text + ": it must be an integer from 0 to 18446744073709551615");
  return seed;
}

// All prompts run together; their text comes out in order, the first unfinished one as it grows.
Status Generate(const Flags& flags, Engine* engine, const std::vector<Prompt>& prompts, const Tokenizer& tokenizer,
                const std::string& contract) {
  Request request;
  request.sampling.temperature = static_cast<float>(flags.temperature);
  request.sampling.top_p = static_cast<float>(flags.top_p);
  request.sampling.top_k = flags.top_k;
  SB_ASSIGN(request.sampling.seed, ParseSeed(flags.seed));
  request.max_tokens = flags.max_tokens;
  request.stop = flags.stop;
  request.stop_at_eos = !flags.ignore_eos;
  request.top_logprobs = flags.logprobs;
  int64_t prompt_tokens = 0;
  for (const Prompt& p : prompts) {  // the engine is fresh: ids are 0, 1, ...
    request.prompt = p.ids;
    prompt_tokens += static_cast<int64_t>(p.ids.size());
    SB_RETURN_IF_ERROR(engine->Submit(request).status().At(p.name));
  }
  std::vector<Completion> done(prompts.size());
  Output out;
  Status first_error;
  size_t current = 0, shown = 0, shown_ids = 0;
  bool headed = false;
  const auto show = [&] {
    for (; current < prompts.size(); ++current, shown = shown_ids = 0, headed = false) {
      Completion& c = done[current];
      const bool finished = c.finish != FinishReason::kNone;
      if (flags.json) {
        if (!finished) return;
        out.Write(JsonLine(prompts[current], c, tokenizer, contract, flags.logprobs));
        continue;
      }
      if (prompts.size() > 1 && !headed)
        out.Write(Format("== %zu of %zu: %s\n", current + 1, prompts.size(), prompts[current].name.c_str()));
      headed = true;
      if (flags.ids) {
        for (; shown_ids < c.tokens.size(); ++shown_ids)
          out.Write(Format(shown_ids > 0 ? " %d" : "%d", c.tokens[shown_ids].id));
      } else {
        out.Write(c.text.substr(shown));
        shown = c.text.size();
      }
      if (!finished) return;
      out.Write("\n");
    }
  };
  const auto start = std::chrono::steady_clock::now();
  double prefill_seconds = 0;
  while (engine->HasWork() && !out.closed()) {
    engine->Step();
    for (Delta& d : engine->TakeDeltas()) {
      Completion& c = done[d.id];
      std::move(d.tokens.begin(), d.tokens.end(), std::back_inserter(c.tokens));
      c.text += d.text;
      c.finish = d.finish;
      c.error = d.error;
      if (!d.error.ok() && first_error.ok()) first_error = d.error.At(prompts[d.id].name);
    }
    if (engine->stats().output_tokens == 0 || prefill_seconds == 0) prefill_seconds = Seconds(start);
    show();
  }
  if (flags.verbose) {
    const EngineStats& s = engine->stats();
    const double seconds = Seconds(start), decode = seconds - prefill_seconds;
    std::fprintf(stderr, "prompts: %zu, %s tokens; first token after %.3f s (%.0f tokens/s)\n", prompts.size(),
                 WithCommas(prompt_tokens).c_str(), prefill_seconds,
                 static_cast<double>(prompt_tokens) / prefill_seconds);
    std::fprintf(stderr, "output:  %s tokens in %.3f s", WithCommas(s.output_tokens).c_str(), seconds);
    if (decode > 0 && s.output_tokens > 1)
      std::fprintf(stderr, "; after the first %.1f tokens/s", static_cast<double>(s.output_tokens - 1) / decode);
    std::fprintf(stderr,
                 "\nsteps:   %lld, %lld rows; prefix hits %lld tokens; drafts accepted %lld of %lld\ncontract %s\n",
                 static_cast<long long>(s.steps), static_cast<long long>(s.rows),
                 static_cast<long long>(s.prefix_hit_tokens), static_cast<long long>(s.drafts_accepted),
                 static_cast<long long>(s.drafts_accepted + s.drafts_rejected), contract.c_str());
  }
  SB_RETURN_IF_ERROR(out.status());
  return first_error;
}

Status RunGenerate(Flags flags) {
  if (flags.chat && flags.raw) return Error("--chat and --raw exclude each other");
  if (flags.json && flags.ids) return Error("--json has the ids already; leave out --ids");
  if (flags.logprobs >= 0 && !flags.json) return Error("--logprobs needs --json");
  if (flags.prompts.empty() && flags.files.empty() && flags.messages.empty()) flags.files = {"-"};
  SB_ASSIGN(const TokenizerFolder folder, LoadTokenizer(flags.model));
  LoadOptions load;
  load.dense = flags.dense;
  load.show_progress = isatty(STDERR_FILENO) != 0;
  SB_ASSIGN(load.profile, ProfileFromName(flags.profile));
  SB_ASSIGN(const CpuEnvironment cpu, flags.cpu.Open());
  SB_RETURN_IF_ERROR(RequireContract(cpu.context()));
  const std::string config_path = JoinPath(flags.model, "config.json");
  SB_ASSIGN(const std::string config_text, ReadFile(config_path));
  SB_ASSIGN(const ModelConfig config, ParseModelConfig(config_text, config_path));
  // Prompts first: a bad one should not wait for the weights.
  SB_ASSIGN(const std::vector<Prompt> prompts, PromptReader(flags, folder, config).ReadAll());
  SB_ASSIGN(const std::unique_ptr<Model> model, Model::Load(flags.model, cpu.context(), load));
  EngineOptions options;
  options.tokenizer = &folder.tokenizer;
  options.schedule.draft_tokens = flags.draft;
  SB_ASSIGN(const std::unique_ptr<Engine> engine, Engine::Create(model.get(), options));
  return Generate(flags, engine.get(), prompts, folder.tokenizer, ContractId(model->profile()));
}

}  // namespace

int Verb_generate(int argc, char** argv) {
  Flags f;
  CLI::App app(
      "Continues prompts. The same request gives the same bits whatever runs beside it, on any number of threads.\n"
      "A model with chat markers gets each prompt as a user's message; --raw continues the text itself.\n"
      "examples:\n"
      "  samebits generate models/tiny-v32 --prompt \"What is 7 + 5?\"\n"
      "  echo \"Tell me a story about a cat.\" | samebits generate models/tiny-v32 --temperature 0.7 --seed 42 -v\n"
      "  samebits generate models/tiny-v32 --raw --prompt \"Once upon a time\" --max-tokens 40 --stop .\n"
      "  samebits generate models/tiny-v32 --messages chat.json --json --logprobs 3",
      "samebits generate");
  app.add_option("model", f.model, "checkpoint folder")->required();
  app.add_option("--prompt", f.prompts, "a prompt; may be repeated, all run in one batch")->expected(1)->take_all();
  app.add_option("--file", f.files, "a file with one prompt, - for standard input; may be repeated")
      ->expected(1)
      ->take_all();
  app.add_option("--messages", f.messages, "a JSON file of chat messages (OpenAI form), - for standard input")
      ->expected(1)
      ->take_all();
  app.add_flag("--chat", f.chat, "the chat form, also where the tokenizer lacks the markers");
  app.add_flag("--raw", f.raw, "no chat form: begin of sentence, then the text; markers in it count");
  app.add_option("--system", f.system, "system text of the chat");
  app.add_flag("--thinking", f.thinking, "let the model reason first");
  app.add_option("--tools-template", f.tools_template, "V3.2: text that introduces tools, with {tool_schemas}");
  app.add_option("--temperature", f.temperature, "0: the most probable token")->capture_default_str();
  app.add_option("--top-p", f.top_p, "draw from the smallest set with this probability")->capture_default_str();
  app.add_option("--top-k", f.top_k, "draw from the k best; 0: no limit")->capture_default_str();
  app.add_option("--seed", f.seed, "0 to 2^64 - 1; the draw depends on it and the position alone")
      ->capture_default_str();
  app.add_option("--max-tokens", f.max_tokens, "tokens per prompt, at most")->capture_default_str();
  app.add_option("--stop", f.stop, "end before this text; may be repeated")->expected(1)->take_all();
  app.add_flag("--ignore-eos", f.ignore_eos, "go on behind the end of sentence");
  app.add_flag("--json", f.json, "one JSON object a prompt and line, when it is complete");
  app.add_option("--logprobs", f.logprobs, "with --json: log-probabilities of each token and the N best")
      ->check(CLI::Range(0, 1000));
  app.add_flag("--ids", f.ids, "print token ids instead of text");
  app.add_option("--draft", f.draft, "guess N tokens ahead from the text so far; changes no bit")
      ->check(CLI::Range(0, 64));
  app.add_option("--profile", f.profile, "deepseek (as released) or float32 (no activation is rounded)")
      ->capture_default_str();
  app.add_flag("--dense", f.dense, "V3.2: ignore the indexer, attend to everything");
  app.add_flag("-v,--verbose", f.verbose, "tokens per second and counters on stderr");
  f.cpu.Add(&app);
  if (const int code = ParseVerb(&app, "generate", argc, argv); code >= 0) return code;
  const Status status = RunGenerate(std::move(f));
  return status.ok() ? kExitSame : Trouble("generate", status.text());
}

}  // namespace samebits
