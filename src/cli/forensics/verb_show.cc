#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <regex>

#include "base/strings.h"
#include "cli/cli_options.h"
#include "cli/cli_verbs.h"
#include "cli/forensics/forensics_options.h"

namespace samebits {
namespace {

Result<int> Show(const ForensicsOptions& options) {
  SB_ASSIGN(const DiffOptions filter, options.Diff());
  SB_ASSIGN(const auto source, TensorSource::Open(options.left));
  std::optional<std::regex> name;
  if (!filter.filter.empty()) {
    try {
      name = std::regex(filter.filter);
    } catch (const std::regex_error&) {
      return Error("--filter \"" + filter.filter + "\" is not a regular expression");
    }
  }
  if (const TraceReader* r = source->recording(); r != nullptr && !options.json && !options.quiet) {
    Print(Format("recording, level %s, layout %s, %d rank%s%s\n", TraceLevelName(r->manifest().level),
                 TraceLayoutName(r->manifest().layout), r->manifest().ranks, r->manifest().ranks == 1 ? "" : "s",
                 r->manifest().complete ? "" : ", INCOMPLETE"));
    for (const auto& [key, value] : r->manifest().about) Print("  " + key + ": " + value + "\n");
    for (const auto& [key, value] : r->manifest().filter) Print("  filter " + key + ": " + value + "\n");
    for (const std::string& notice : r->manifest().notices) Print("  notice: " + notice + "\n");
  }
  int64_t shown = 0;
  uint64_t bytes = 0;
  for (size_t i = 0; i < source->size(); ++i) {
    SB_ASSIGN(const SourceItem item, source->Item(i));
    if (name && !std::regex_search(item.name, *name)) continue;
    if (!InRanges(filter.layers, item.layer) || !InRanges(filter.steps, item.step) ||
        !InRanges(filter.ranks, item.rank))
      continue;
    ++shown;
    TensorRef shape{item.dtype, item.shape, nullptr};
    if (item.has_data) bytes += shape.bytes();
    if (options.json) {
      nlohmann::ordered_json j = {{"name", item.name},   {"site", item.site},    {"step", item.step},
                                  {"layer", item.layer}, {"rank", item.rank},    {"dtype", DTypeName(item.dtype)},
                                  {"shape", item.shape}, {"data", item.has_data}};
      if (item.record) j["ordered"] = item.record->ordered.Hex(), j["order_free"] = item.record->order_free.Hex();
      Print(j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
      continue;
    }
    if (options.quiet) continue;
    std::string line = Format("%s  %s %s", item.name.c_str(), DTypeName(item.dtype), ShapeText(item.shape).c_str());
    if (item.record) {
      line += "  " + item.record->ordered.Hex().substr(0, 16);
      const SpecialCounts& s = item.record->specials;
      if (s.nan + s.inf + s.neg_zero > 0)
        line += Format("  NaN %lld Inf %lld -0 %lld", static_cast<long long>(s.nan), static_cast<long long>(s.inf),
                       static_cast<long long>(s.neg_zero));
      if (item.record->stats)
        line += Format("  min %.6g max %.6g mean %.6g", item.record->stats->min, item.record->stats->max,
                       item.record->stats->mean);
      if (!item.has_data) line += "  (digest)";
    }
    Print(line + "\n");
  }
  if (!options.json)
    Print(Format("%lld of %zu tensors, %s of data\n", static_cast<long long>(shown), source->size(),
                 HumanBytes(bytes).c_str()));
  if (shown == 0) return Error(options.left + ": nothing passes the filters");
  return kExitSame;
}

}  // namespace

int Verb_show(int argc, char** argv) {
  CLI::App app(
      "List what a recording, a tensor file or a folder of them holds.\n  samebits show run --layer 7 --filter topk");
  ForensicsOptions options;
  app.add_option("PATH", options.left, "a recording, a safetensors file or a folder of them")->required();
  options.AddSelection(&app);
  app.add_flag("--json", options.json, "one JSON object a line");
  app.add_flag("-q", options.quiet, "only the closing line");
  const int parsed = ParseVerb(&app, "show", argc, argv);
  if (parsed >= 0) return parsed;
  const Result<int> code = Show(options);
  return code.ok() ? *code : Trouble("show", code.status().text());
}

}  // namespace samebits
