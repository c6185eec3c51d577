#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/strings.h"
#include "cli/cli_options.h"
#include "cli/cli_verbs.h"
#include "cli/forensics/forensics_options.h"
#include "forensics/diff_text.h"
#include "forensics/explain/explain.h"
#include "forensics/report/run_report.h"

namespace samebits {
namespace {

constexpr size_t kShown = 10;

std::string GrowthText(const std::vector<TensorDiff>& differing) {
  std::map<int, const TensorDiff*> worst;  // per layer
  for (const TensorDiff& d : differing) {
    if (d.item.layer < 0 || d.by_digest || !IsFloat(d.item.dtype)) continue;
    const TensorDiff*& at = worst[d.item.layer];
    if (at == nullptr || d.comparison.stats.RelativeL2() > at->comparison.stats.RelativeL2()) at = &d;
  }
  if (worst.size() < 2) return "";
  std::string text = "growth per layer (the largest relative L2)\n";
  for (const auto& [layer, d] : worst)
    text += Format("  layer %-4d %-12.4g %s\n", layer, d->comparison.stats.RelativeL2(), d->item.site.c_str());
  return text;
}

Result<int> First(const ForensicsOptions& options, const std::string& noise_path, bool explain) {
  SB_ASSIGN(DiffOptions diff_options, options.Diff());
  SB_ASSIGN(const auto left, TensorSource::Open(options.left));
  SB_ASSIGN(const auto right, TensorSource::Open(options.right));
  std::unique_ptr<TensorSource> noise;
  if (!noise_path.empty()) {
    SB_ASSIGN(noise, TensorSource::Open(noise_path));
  }
  RunReportBuilder report(explain ? "samebits explain" : "samebits first", options.left, options.right);
  const bool html = !options.html.empty();
  SB_ASSIGN(const Located located, Locate(*left, *right, diff_options, noise.get(),
                                          [&](const TensorDiff& d, TensorSource& a, TensorSource& b) -> Status {
                                            if (html) report.Add(d, a, b, options.window);
                                            return Ok();
                                          }));
  if (located.sums.compared == 0 && located.sums.failed == 0)
    return Error("nothing was compared: no tensor has the same name on both sides and passes the filters");
  if (located.sums.compared < options.expect)
    return Error(Format("compared %lld tensors, --expect asked for at least %lld",
                        static_cast<long long>(located.sums.compared), static_cast<long long>(options.expect)));
  int code =
      located.differing.empty() && located.sums.only_left + located.sums.only_right == 0 ? kExitSame : kExitDiffer;
  Explanation explanation;
  if (explain || html) {
    SB_ASSIGN(explanation, Explain(*left, *right, located));
    if (explain) code = explanation.exit_code;
  }
  std::string text;
  if (options.json || options.jsonl) {
    nlohmann::ordered_json j = {{"exit_code", code},
                                {"origins", nlohmann::ordered_json::array()},
                                {"propagated", nlohmann::ordered_json::array()},
                                {"noise", located.noise}};
    for (const Origin& o : located.origins)
      j["origins"].push_back(
          {{"tensor", nlohmann::ordered_json::parse(DiffJson(o.diff, *left, *right, options.window))},
           {"same_inputs", o.same_inputs}});
    for (const Propagated& p : located.propagated)
      j["propagated"].push_back({{"name", p.name}, {"because", p.because}});
    for (const Finding& f : explanation.findings)
      j["findings"].push_back({{"verdict", f.verdict},
                               {"at", f.at},
                               {"sentence", f.sentence},
                               {"evidence", f.evidence},
                               {"refute", f.refute}});
    j["summary"] = nlohmann::ordered_json::parse(DiffSumsJson(located.sums, diff_options.policies));
    text = j.dump(options.json ? 1 : -1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  } else {
    if (explain) {
      size_t shown = 0;
      for (const Finding& f : explanation.findings) {
        if (shown++ == kShown && !options.verbose) {
          text += Format("and %zu more (-v shows all)\n", explanation.findings.size() - kShown);
          break;
        }
        text += FindingText(f);
      }
      if (located.origins.size() > 1 && explanation.exit_code == 1)
        text += Format(
            "There are %zu independent origins: replacing one of these operations alone does not remove the "
            "difference.\n",
            located.origins.size());
    } else {
      if (!located.known_sites && !located.differing.empty())
        text +=
            "The inputs of these tensors are not known here, so the first difference in order is called the origin.\n";
      size_t shown = 0;
      for (const Origin& o : located.origins) {
        if (shown++ == kShown && !options.verbose) {
          text += Format("and %zu more origins (-v shows all)\n", located.origins.size() - kShown);
          break;
        }
        text += "origin   " + DiffLine(o.diff) + "\n";
        if (!o.same_inputs.empty()) text += "    inputs the same: " + Join(o.same_inputs, ", ") + "\n";
        if (!options.quiet) text += DiffDetails(o.diff, *left, *right, options.window, options.histogram);
      }
      shown = 0;
      for (const Propagated& p : located.propagated)
        if (options.verbose || shown++ < kShown) text += "follows  " + p.name + ", because " + p.because + " differs\n";
      if (!options.verbose && located.propagated.size() > kShown)
        text += Format("and %zu more that follow (-v shows all)\n", located.propagated.size() - kShown);
      for (const std::string& name : located.noise)
        text += "noise    " + name + " differs between two runs of A already\n";
      text += GrowthText(located.differing);
      text += Format("origins %zu, propagated %zu, noise %zu\n", located.origins.size(), located.propagated.size(),
                     located.noise.size());
    }
    text += DiffClosing(located.sums, diff_options.policies);
  }
  Print(text);
  if (html) {
    report.SetOrigins(located, explanation, *left, *right);
    const RunComparison run = report.Finish(located.sums, diff_options.policies, code);
    SB_RETURN_IF_ERROR(WriteFile(options.html, ReportHtml(run)));
    SB_RETURN_IF_ERROR(WriteFile(options.html + ".json", ReportJson(run)));
  }
  return code;
}

int Run(int argc, char** argv, const char* verb, const char* text, bool explain) {
  CLI::App app(text);
  ForensicsOptions options;
  std::string noise;
  options.AddPaths(&app);
  options.AddSelection(&app);
  options.AddPolicy(&app);
  options.AddOutput(&app);
  app.add_option("--noise", noise, "a second run of A: what differs between the two is noise, not an origin");
  const int parsed = ParseVerb(&app, verb, argc, argv);
  if (parsed >= 0) return parsed;
  const Result<int> code = First(options, noise, explain);
  return code.ok() ? *code : Trouble(verb, code.status().text());
}

}  // namespace

int Verb_first(int argc, char** argv) {
  return Run(argc, argv, "first",
             "Find where two runs part: operations whose inputs are the same and whose output differs.\n"
             "  samebits first runA runB\n"
             "  samebits first runA runB --noise runA2 --html report.html",
             false);
}

int Verb_explain(int argc, char** argv) {
  return Run(
      argc, argv, "explain",
      "Say why two runs part: verdict, evidence, and the check that would refute it. Exit code 2: the captures are "
      "not comparable.\n"
      "  samebits explain runA runB\n"
      "  samebits explain debug_a_file_7_tp1.safetensors debug_b_file_7_tp1.safetensors",
      true);
}

}  // namespace samebits
