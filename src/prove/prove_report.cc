#include "prove/prove_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/strings.h"

namespace samebits {
namespace {

const char* VerdictText(Verdict v) {
  return v == Verdict::kSame ? "same" : v == Verdict::kDiffers ? "DIFFERS" : "not run";
}

struct Counts {
  int same = 0, differs = 0, not_run = 0;
};
Counts CountOf(const ProveReport& report) {
  Counts c;
  for (const ConditionResult& r : report.conditions)
    ++(r.verdict == Verdict::kSame ? c.same : r.verdict == Verdict::kDiffers ? c.differs : c.not_run);
  return c;
}

}  // namespace

std::string ProveTableHead() {
  return Format("%-3s %-12s %-9s %10s  %s", "#", "condition", "verdict", "rows", "what happened");
}

std::string ProveTableRow(const ConditionResult& r) {
  const int64_t rows = r.rows_compared + r.kv_rows_compared;
  std::string row = Format("%-3d %-12s %-9s %10s  %s\n", r.number, r.name.c_str(), VerdictText(r.verdict),
                           r.verdict == Verdict::kNotRun ? "-" : WithCommas(rows).c_str(), r.evidence.c_str());
  if (r.verdict != Verdict::kDiffers) return row;
  row += Format("      first: %s at position %d: %s\n", r.first_site.c_str(), r.first_position, r.cause.c_str());
  for (size_t i = 0; i < std::min<size_t>(3, r.window.size()); ++i)
    row += Format("      [%d] %.9g, baseline %.9g\n", r.window[i].first, static_cast<double>(r.window[i].second.second),
                  static_cast<double>(r.window[i].second.first));
  if (!r.growth.empty()) {
    row += "      growth of the residual stream, max |diff| by layer:";
    for (const GrowthPoint& g : r.growth) row += Format(" %.2g", g.max_abs);
    row += "\n";
  }
  return row;
}

std::string ProveVerdict(const ProveReport& report) {
  const Counts c = CountOf(report);
  const std::string rule = report.broken.empty() ? "" : " with rule " + report.broken + " switched off";
  if (c.differs == 0 && !report.golden_differs)
    return Format("Same request, same bits%s: %d conditions changed nothing%s.", rule.c_str(), c.same,
                  c.not_run ? Format("; %d were not run", c.not_run).c_str() : "");
  if (c.differs == 0) return "The conditions agree with each other, but not with the golden digest in the repository.";
  const auto first = std::find_if(report.conditions.begin(), report.conditions.end(),
                                  [](const ConditionResult& r) { return r.verdict == Verdict::kDiffers; });
  return Format("Bits depend on %s%s: the first difference is %s at position %d; %s.", first->text.c_str(),
                rule.c_str(), first->first_site.c_str(), first->first_position, first->cause.c_str());
}

std::string ProveSummary(const ProveReport& report) {
  const Counts c = CountOf(report);
  return Format(
      "%s\nsums      %d same + %d differ + %d not run = %zu conditions; %lld sites, %d layers\ncontract  %s, stamp "
      "%s\nkernels   %s\nroot      %s\ngolden    %s\n",
      ProveVerdict(report).c_str(), c.same, c.differs, c.not_run, report.conditions.size(),
      static_cast<long long>(report.sites), report.layers, report.contract.c_str(), report.stamp.c_str(),
      report.kernels.c_str(), report.root_digest.c_str(), report.golden.c_str());
}

std::string ProveJson(const ProveReport& report) {
  nlohmann::ordered_json j = {{"model", report.model},
                              {"contract", report.contract},
                              {"stamp", report.stamp},
                              {"isa", report.isa},
                              {"threads", report.threads},
                              {"broken", report.broken},
                              {"prompt_tokens", report.prompt_tokens},
                              {"output_tokens", report.output_tokens},
                              {"sites", report.sites},
                              {"root_digest", report.root_digest},
                              {"kernels", report.kernels},
                              {"golden", report.golden},
                              {"verdict", ProveVerdict(report)},
                              {"same", !report.AnyDiffers()}};
  for (const ConditionResult& r : report.conditions) {
    nlohmann::ordered_json c = {{"number", r.number},
                                {"name", r.name},
                                {"text", r.text},
                                {"verdict", r.verdict == Verdict::kDiffers ? "differs" : VerdictText(r.verdict)},
                                {"evidence", r.evidence},
                                {"rows_compared", r.rows_compared},
                                {"kv_rows_compared", r.kv_rows_compared}};
    if (r.verdict == Verdict::kDiffers) {
      c["first_site"] = r.first_site, c["first_position"] = r.first_position, c["cause"] = r.cause;
      c["differing_rows"] = r.sites.differing;
      for (const GrowthPoint& g : r.growth)
        c["growth"].push_back({{"layer", g.layer}, {"max_abs", g.max_abs}, {"rms", g.rms}});
      for (const auto& [i, pair] : r.window)
        c["window"].push_back({{"index", i}, {"baseline", pair.first}, {"other", pair.second}});
    }
    j["conditions"].push_back(c);
  }
  return j.dump(1);
}

}  // namespace samebits
