#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/files.h"
#include "base/strings.h"
#include "cli/cli_options.h"
#include "cli/cli_verbs.h"
#include "cli/forensics/forensics_options.h"
#include "forensics/diff_text.h"
#include "forensics/report/run_report.h"
#include "forensics/topk_check.h"

namespace samebits {
namespace {

constexpr int kDetailed = 8;  // differing tensors shown in full without -v

Result<int> Diff(const ForensicsOptions& options, bool topk) {
  SB_ASSIGN(const DiffOptions diff_options, options.Diff());
  SB_ASSIGN(const auto left, TensorSource::Open(options.left));
  SB_ASSIGN(const auto right, TensorSource::Open(options.right));
  if (topk) {
    SB_ASSIGN(const TopkCheck check, CheckTopkFiles(*left, *right, options.window));
    Print(check.text);
    return check.same ? kExitSame : kExitDiffer;
  }
  const bool text = !options.json && !options.jsonl;
  std::string all = "[";
  int detailed = 0;
  RunReportBuilder report("samebits diff", options.left, options.right);
  const auto visit = [&](const TensorDiff& d, TensorSource& a, TensorSource& b) -> Status {
    const bool differs = !d.passed || d.verdict == DiffVerdict::kEqualValues || d.verdict == DiffVerdict::kSameSet;
    if (!text) {
      const std::string line = DiffJson(d, a, b, options.window);
      if (options.jsonl)
        Print(line + "\n");
      else
        all += (all.size() > 1 ? ",\n" : "\n") + line;
    } else if (!options.quiet && (options.verbose || d.verdict != DiffVerdict::kSkipped)) {
      Print(DiffLine(d) + "\n");
      if (differs && (options.verbose || detailed++ < kDetailed))
        Print(DiffDetails(d, a, b, options.window, options.histogram));
    }
    if (!options.html.empty()) report.Add(d, a, b, options.window);
    return Ok();
  };
  SB_ASSIGN(const DiffSums sums, DiffSources(*left, *right, diff_options, visit));
  int code = sums.failed > 0 ? kExitDiffer : kExitSame;
  std::string trouble;
  if (sums.compared == 0) {
    trouble = "nothing was compared: no tensor has the same name on both sides and passes the filters";
  } else if (sums.compared < options.expect) {
    trouble = Format("compared %lld tensors, --expect asked for at least %lld", static_cast<long long>(sums.compared),
                     static_cast<long long>(options.expect));
  }
  if (!trouble.empty()) code = kExitTrouble;
  if (options.jsonl) Print(DiffSumsJson(sums, diff_options.policies) + "\n");
  if (options.json)
    Print("{\"tensors\": " + all + "],\n\"summary\": " + DiffSumsJson(sums, diff_options.policies) + "}\n");
  if (text) {
    for (const TensorSource* side : {left.get(), right.get()})
      for (const std::string& notice : side->notices()) Print("notice   " + side->path() + ": " + notice + "\n");
    Print(DiffClosing(sums, diff_options.policies));
  }
  if (!options.html.empty()) {
    const RunComparison run = report.Finish(sums, diff_options.policies, code);
    SB_RETURN_IF_ERROR(WriteFile(options.html, ReportHtml(run)));
    SB_RETURN_IF_ERROR(WriteFile(options.html + ".json", ReportJson(run)));
  }
  if (!trouble.empty()) return Error(trouble);
  return code;
}

}  // namespace

int Verb_diff(int argc, char** argv) {
  CLI::App app(
      "Compare two runs or files tensor by tensor. Exit code: 0 same under the policy, 1 differ, 2 trouble.\n"
      "  samebits diff a.safetensors b.safetensors\n"
      "  samebits diff runA runB --layer 7 --window 3 --hist\n"
      "  samebits diff --topk debug_a_file_7_tp1.safetensors debug_b_file_7_tp1.safetensors");
  ForensicsOptions options;
  options.AddPaths(&app);
  options.AddSelection(&app);
  options.AddPolicy(&app);
  options.AddOutput(&app);
  bool topk = false;
  app.add_flag("--topk", topk, "the field report's checks of top-k lists: A vs B, A vs ref, B vs ref");
  const int parsed = ParseVerb(&app, "diff", argc, argv);
  if (parsed >= 0) return parsed;
  const Result<int> code = Diff(options, topk);
  return code.ok() ? *code : Trouble("diff", code.status().text());
}

}  // namespace samebits
