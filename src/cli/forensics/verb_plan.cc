#include <CLI/CLI.hpp>
#include <set>

#include "base/strings.h"
#include "cli/cli_options.h"
#include "cli/cli_verbs.h"
#include "cli/forensics/forensics_options.h"
#include "forensics/locate.h"

namespace samebits {
namespace {

Result<int> Plan(const ForensicsOptions& options) {
  SB_ASSIGN(const DiffOptions diff_options, options.Diff());
  SB_ASSIGN(const auto left, TensorSource::Open(options.left));
  SB_ASSIGN(const auto right, TensorSource::Open(options.right));
  SB_ASSIGN(const Located located, Locate(*left, *right, diff_options, nullptr));
  if (located.sums.compared == 0)
    return Error("nothing was compared: no tensor has the same name on both sides and passes the filters");
  if (located.origins.empty()) {
    Print("Nothing differs, so there is nothing to record in full.\n");
    return kExitSame;
  }
  std::set<int> layers;
  std::set<int64_t> steps, ranks, positions;
  std::set<std::string> sites;
  uint64_t bytes = 0;
  for (const Origin& o : located.origins) {
    const SourceItem& item = o.diff.item;
    if (item.layer != kNoLayer) layers.insert(item.layer);
    steps.insert(item.step), ranks.insert(item.rank);
    sites.insert(item.site);
    for (const std::string& input : SiteInputs(item.site))
      sites.insert(input.substr(input[0] == '<' || input[0] == '^' ? 1 : 0));
    if (item.record)
      for (const int64_t row : o.diff.differing_rows)
        if (const RowOwner owner = item.record->OwnerOf(row); owner.request >= 0) positions.insert(owner.position);
    bytes += TensorRef{item.dtype, item.shape, nullptr}.bytes();
  }
  const auto list = [](const auto& set) {
    std::string text;
    for (const auto& x : set) {
      if constexpr (std::is_same_v<std::decay_t<decltype(x)>, std::string>)
        text += (text.empty() ? "" : ",") + x;
      else
        text += (text.empty() ? "" : ",") + std::to_string(x);
    }
    return text;
  };
  Print(Format("%zu origin%s. Record these and their inputs in full, in both runs (the outputs alone are %s):\n\n",
               located.origins.size(), located.origins.size() == 1 ? "" : "s", HumanBytes(bytes).c_str()));
  for (const Origin& o : located.origins) Print("  " + o.diff.item.name + "\n");
  std::string ours = "samebits record MODEL --level full --sites " + list(sites) + " --steps " + list(steps);
  if (!layers.empty()) ours += " --layers " + list(layers);
  if (!positions.empty() && positions.size() <= 32) ours += " --positions " + list(positions);
  Print("\nsamebits\n  " + ours + "\n");
  std::string names, layer_test;
  for (const std::string& site : sites) names += (names.empty() ? "" : "|") + site;
  for (const int layer : layers) layer_test += (layer_test.empty() ? "" : ", ") + std::to_string(layer);
  std::string filter = "search(r\"" + names + "\", name)";
  if (!layer_test.empty()) filter += " and layer_id in [" + layer_test + "]";
  Print("\nSGLang dumper\n  DUMPER_ENABLE=1 DUMPER_FILTER='" + filter + "'\n");
  Print("\nmsprobe (config.json)\n  {\"task\": \"tensor\", \"level\": \"mix\", \"step\": [" + list(steps) +
        "], \"rank\": [" + list(ranks) + "], \"list\": [");
  bool first = true;
  for (const std::string& site : sites) Print(std::string(first ? "" : ", ") + "\"" + site + "\""), first = false;
  Print("], \"data_mode\": [\"all\"]}\n");
  Print("\nFlashInfer\n  FLASHINFER_LOGLEVEL=10 FLASHINFER_DUMP_INCLUDE='*" +
        std::string(sites.count("topk")  ? "topk"
                    : sites.count("mqa") ? "mla"
                                         : *sites.begin()) +
        "*' FLASHINFER_DUMP_SAFETENSORS=1\n");
  return kExitDiffer;
}

}  // namespace

int Verb_plan(int argc, char** argv) {
  CLI::App app(
      "From two recordings of digests: the smallest recording in full that can explain the difference, for samebits "
      "and "
      "in the syntax of other engines' dumpers. Exit code 1: there is something to record.\n  samebits plan runA runB");
  ForensicsOptions options;
  options.AddPaths(&app);
  options.AddSelection(&app);
  app.add_flag("-q", options.quiet, "no progress");
  const int parsed = ParseVerb(&app, "plan", argc, argv);
  if (parsed >= 0) return parsed;
  const Result<int> code = Plan(options);
  return code.ok() ? *code : Trouble("plan", code.status().text());
}

}  // namespace samebits
