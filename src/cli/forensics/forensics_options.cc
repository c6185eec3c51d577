#include "cli/forensics/forensics_options.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "trace/recorder.h"

namespace samebits {

void Print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

void ForensicsOptions::AddPaths(CLI::App* app) {
  app->add_option("A", left, "baseline: a recording, a safetensors file or a folder of them")->required();
  app->add_option("B", right, "the other run")->required();
}

void ForensicsOptions::AddSelection(CLI::App* app) {
  app->add_option("--filter", filter, "only names in which this regular expression is found");
  app->add_option("--layer", layers, "only these layers, as 0,3-5");
  app->add_option("--step", steps, "only these steps");
  app->add_option("--rank", ranks, "only these ranks");
}

void ForensicsOptions::AddPolicy(CLI::App* app) {
  app->add_option("--policy", policy, "strict (default), tol, or set");
  app->add_option("--rtol", rtol, "tolerance |a-b| <= atol + rtol*|a|, a = baseline");
  app->add_option("--atol", atol, "see --rtol");
  app->add_option("--max-ulp", max_ulp, "at most this many steps of the dtype apart");
  app->add_option("--rule", rules,
                  "REGEX:PREDICATE for names that match as a whole; PREDICATE is strict, set, skip, "
                  "rtol=X,atol=Y or ulp=N; the first match wins")
      ->allow_extra_args(false);
  app->add_option("--expect", expect, "trouble (2) unless at least this many tensors were compared");
}

void ForensicsOptions::AddOutput(CLI::App* app) {
  app->add_option("--window", window, "elements shown on each side of the first mismatch")->check(CLI::Range(0, 1000));
  app->add_flag("--hist", histogram, "ULP histogram of differing tensors");
  app->add_flag("--json", json, "one JSON object");
  app->add_flag("--jsonl", jsonl, "one JSON object a line");
  app->add_option("--html", html, "also write a self-contained HTML report (and the same as JSON beside it)");
  app->add_flag("-q", quiet, "only the closing lines");
  app->add_flag("-v", verbose, "every tensor, and details of all that differ");
}

Result<DiffOptions> ForensicsOptions::Diff() const {
  DiffOptions out;
  Policy standard;
  const bool numbers = rtol >= 0 || atol >= 0 || max_ulp >= 0;
  if (policy == "tol" || (policy.empty() && numbers)) {
    if (!numbers) return Error("--policy tol needs --rtol, --atol or --max-ulp");
    standard.kind = PolicyKind::kTolerance;
    standard.has_tolerance = rtol >= 0 || atol >= 0;
    standard.rtol = std::max(rtol, 0.0), standard.atol = std::max(atol, 0.0);
    standard.max_ulp = max_ulp;
  } else if (policy == "set") {
    standard.kind = PolicyKind::kSet;
  } else if (!policy.empty() && policy != "strict") {
    return Error("--policy " + policy + ": there are strict, tol and set");
  }
  if (numbers && standard.kind != PolicyKind::kTolerance)
    return Error("--rtol, --atol and --max-ulp belong to --policy tol");
  out.policies = PolicyTable(standard);
  for (const std::string& rule : rules) SB_RETURN_IF_ERROR(out.policies.AddRule(rule));
  out.filter = filter;
  const auto ranges = [](const std::string& text, const char* flag,
                         std::vector<std::pair<int64_t, int64_t>>* to) -> Status {
    if (text.empty()) return Ok();
    SB_ASSIGN(*to, ParseRanges(text, flag));
    return Ok();
  };
  SB_RETURN_IF_ERROR(ranges(layers, "--layer", &out.layers));
  SB_RETURN_IF_ERROR(ranges(steps, "--step", &out.steps));
  SB_RETURN_IF_ERROR(ranges(ranks, "--rank", &out.ranks));
  out.quiet = quiet;
  return out;
}

}  // namespace samebits
