// samebits repro: the minimal reproducers, naive beside ours.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/strings.h"
#include "cli/cli_options.h"
#include "cli/cli_verbs.h"
#include "prove/repro.h"

namespace samebits {
namespace {

const char* Bool(bool b) { return b ? "True" : "False"; }

std::string LineText(const ReproLine& l) {
  std::string text = Format("%-8s run=%d device=cpu same=%s", l.algorithm.c_str(), l.run, Bool(l.same));
  if (l.max_diff >= 0) text += Format(" max_diff=%.9g", l.max_diff);
  if (!l.stage2.empty())
    text += Format(" same_%s=%s max_diff_%s=%.9g", l.stage2.c_str(), Bool(l.same2), l.stage2.c_str(), l.max_diff2);
  if (!l.note.empty()) text += " " + l.note;
  return text;
}

}  // namespace

int Verb_repro(int argc, char** argv) {
  CLI::App app(
      "Minimal reproducers: the naive algorithm must differ from run to run, ours must not.\n"
      "Exit code 0: naive differed and ours did not; 1: otherwise; 2: trouble.",
      "samebits repro");
  std::string name;
  ReproOptions options;
  CpuOptions cpu;
  bool json = false;
  app.add_option("name", name, "index-order, topk-tie, router-dtype, double-rounding, split-kv, batch-size, or all")
      ->required();
  app.add_option("--runs", options.runs, "runs after run 0 (default 4)")->check(CLI::Range(1, 1000));
  app.add_option("--seed", options.seed, "seed of the inputs (default 1)");
  app.add_flag("--json", json, "one JSON object per run");
  cpu.Add(&app);
  app.footer("Examples:\n  samebits repro index-order\n  samebits repro all --runs 2 --json");
  if (const int code = ParseVerb(&app, "repro", argc, argv); code >= 0) return code;
  Result<CpuEnvironment> environment = cpu.Open();
  if (!environment.ok()) return Trouble("repro", environment.status().text());

  bool found = false, as_promised = true;
  for (const Repro& repro : Repros()) {
    if (name != "all" && name != repro.name) continue;
    found = true;
    if (!json) std::printf("%s: %s\n", repro.name, repro.text);
    bool naive_differed = false, ours_same = true;
    const Status status = repro.run(environment->context(), options, [&](const ReproLine& line) {
      if (line.algorithm == "naive") naive_differed |= !line.same || !line.same2;
      if (line.algorithm == "samebits") ours_same &= line.same && line.same2;
      if (json) {
        nlohmann::ordered_json j = {{"repro", repro.name},
                                    {"algorithm", line.algorithm},
                                    {"run", line.run},
                                    {"device", "cpu"},
                                    {"same", line.same}};
        if (line.max_diff >= 0) j["max_diff"] = line.max_diff;
        if (!line.stage2.empty()) j["same_" + line.stage2] = line.same2, j["max_diff_" + line.stage2] = line.max_diff2;
        if (!line.note.empty()) j["note"] = line.note;
        std::printf("%s\n", j.dump().c_str());
      } else {
        std::printf("%s\n", LineText(line).c_str());
      }
      std::fflush(stdout);
    });
    if (!status.ok()) return Trouble("repro", status.text());
    as_promised &= naive_differed && ours_same;
  }
  if (!found) return Trouble("repro", "there is no reproducer \"" + name + "\"; samebits repro --help lists them");
  return as_promised ? kExitSame : kExitDiffer;
}

}  // namespace samebits
