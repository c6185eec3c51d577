#include "forensics/report/report_html.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "base/strings.h"
#include "forensics/report/report_charts.h"
#include "forensics/report/report_style.h"

namespace samebits {
namespace {

constexpr size_t kMostMaps = 12;  // steps and ranks shown apart; all together always come first

const char* CellClass(CellStatus status) {
  constexpr const char* kClasses[] = {"s", "o", "d", "n"};
  return kClasses[static_cast<int>(status)];
}
const char* CellName(CellStatus status) {
  constexpr const char* kNames[] = {"same", "order_only", "differs", "not_compared"};
  return kNames[static_cast<int>(status)];
}
int Severity(CellStatus status) {
  constexpr int kOrder[] = {1, 2, 3, 0};  // same, order only, differs, not compared
  return kOrder[static_cast<int>(status)];
}

// The worse of the two, token by token.
void Merge(const ReportCell& from, ReportCell* into) {
  if (Severity(from.status) >= Severity(into->status)) {
    if (Severity(from.status) > Severity(into->status) || into->note.empty()) into->note = from.note;
    into->status = from.status;
  }
  if (into->by_token.size() < from.by_token.size()) into->by_token.resize(from.by_token.size(), '.');
  const std::string order = ".=ox";
  for (size_t t = 0; t < from.by_token.size(); ++t)
    if (order.find(from.by_token[t]) + 1 > order.find(into->by_token[t]) + 1) into->by_token[t] = from.by_token[t];
}

using CellMap = std::map<std::pair<int, std::string>, ReportCell>;

std::string LayerName(int layer) {
  return layer >= 0 ? "layer " + std::to_string(layer) : layer == -1 ? "outside" : "file";
}

std::string HeatMap(const RunComparison& run, const CellMap& cells, const std::string& key) {
  std::set<int> layers;
  for (const auto& [at, cell] : cells) layers.insert(at.first);
  std::string html =
      "<div class=heatmap data-k=\"" + HtmlText(key) + "\"><div class=scroll><table class=heat><thead><tr><th></th>";
  for (const std::string& site : run.sites) html += "<th><span>" + HtmlText(site) + "</span></th>";
  html += "</tr></thead><tbody>";
  for (const int layer : layers) {
    html += "<tr><th>" + LayerName(layer) + "</th>";
    for (const std::string& site : run.sites) {
      const auto it = cells.find({layer, site});
      if (it == cells.end()) {
        html += "<td></td>";
        continue;
      }
      const ReportCell& c = it->second;
      html +=
          Format("<td><i class=\"c %s\" data-w=%s title=\"", CellClass(c.status), CellClass(c.status)) +
          HtmlText(LayerName(layer) + ", " + site + ": " + CellName(c.status) + (c.note.empty() ? "" : ". " + c.note)) +
          "\"";
      if (!c.by_token.empty()) html += " data-t=\"" + HtmlText(c.by_token) + "\"";
      html += "></i></td>";
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table></div></div>\n";
}

std::string HeatMaps(const RunComparison& run) {
  if (run.cells.empty()) return "";
  CellMap all;
  std::map<std::pair<int64_t, int>, CellMap> apart;
  for (const ReportCell& c : run.cells) {
    const std::pair<int, std::string> at{c.layer, c.site};
    for (CellMap* m : {&all, &apart[{c.step, c.rank}]}) {
      const auto [it, fresh] = m->emplace(at, c);
      if (!fresh) Merge(c, &it->second);
    }
  }
  std::string html =
      "<h2>Where the runs agree</h2>\n<p class=note>Columns are operations in the order they run, rows are layers from "
      "the first to the last. Point at a square for the numbers.</p>\n<div class=pick>";
  const bool several = apart.size() > 1;
  if (several) {
    html += "<label>Step and rank <select id=map><option value=all>all together</option>";
    size_t shown = 0;
    for (const auto& [key, cells] : apart)
      if (shown++ < kMostMaps)
        html += Format("<option value=\"%lld/%d\">step %lld, rank %d</option>", static_cast<long long>(key.first),
                       key.second, static_cast<long long>(key.first), key.second);
    html += "</select></label>";
  }
  if (!run.tokens.empty()) {
    html += "<label>Token <select id=tok><option value=\"\">all tokens</option>";
    for (size_t t = 0; t < run.tokens.size(); ++t)
      html += Format("<option value=%zu>", t) + HtmlText(run.tokens[t]) + "</option>";
    html += "</select></label>";
  }
  html += "</div>\n" + HeatMap(run, all, "all");
  size_t shown = 0;
  for (const auto& [key, cells] : apart)
    if (several && shown++ < kMostMaps)
      html += HeatMap(run, cells, Format("%lld/%d", static_cast<long long>(key.first), key.second));
  return html +
         "<div class=legend><span><i class=\"c s\"></i>same</span><span><i class=\"c o\"></i>same values, other "
         "order</span>"
         "<span><i class=\"c d\"></i>differs</span><span><i class=\"c n\"></i>not compared</span></div>\n";
}

std::string Origin(const OriginDetail& o) {
  std::string html = "<div class=card><h3>" + HtmlText(o.title);
  if (!o.verdict.empty()) html += "<span class=tag>" + HtmlText(o.verdict) + "</span>";
  html += "</h3><p>" + HtmlText(o.sentence) + "</p>";
  if (!o.evidence.empty()) {
    html += "<ul>";
    for (const std::string& line : o.evidence) html += "<li>" + HtmlText(line) + "</li>";
    html += "</ul>";
  }
  if (!o.refute.empty()) html += "<p><b>What would refute this:</b> " + HtmlText(o.refute) + "</p>";
  if (!o.window.empty()) {
    html +=
        "<figure><figcaption>Around the first mismatch</figcaption><div class=scroll><table "
        "class=win><tr><th>index</th><th>a</th><th>b</th><th>|a-b|</th></tr>";
    for (const WindowRow& r : o.window)
      html += std::string(r.differs ? "<tr class=x>" : "<tr>") + "<td>" + HtmlText(r.index) + "</td><td>" +
              HtmlText(r.a) + "</td><td>" + HtmlText(r.b) + "</td><td>" + HtmlText(r.distance) + "</td></tr>";
    html += "</table></div></figure>";
  }
  if (o.has_histogram) html += HistogramSvg(o.ulp_histogram);
  return html + "</div>\n";
}

std::string Table(const ReportTable& t) {
  std::string html = "<h2>" + HtmlText(t.title) + "</h2>\n<div class=scroll><table class=data><thead><tr>";
  for (const std::string& c : t.columns) html += "<th>" + HtmlText(c) + "</th>";
  html += "</tr></thead><tbody>\n";
  for (const auto& row : t.rows) {
    html += "<tr>";
    for (const std::string& cell : row) html += "<td>" + HtmlText(cell) + "</td>";
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

}  // namespace

std::string ReportHtml(const RunComparison& run) {
  std::string html =
      "<!doctype html>\n<html lang=en><head><meta charset=utf-8><meta name=viewport "
      "content=\"width=device-width,initial-scale=1\"><meta name=color-scheme content=\"light dark\"><title>" +
      HtmlText(run.title) + "</title>\n<style>" + kReportStyle + "</style></head>\n<body>\n";
  html += "<h1>" + HtmlText(run.title) + "</h1>\n";
  html += Format("<p class=\"verdict v%d\">", run.exit_code) + HtmlText(run.verdict) + "</p>\n";
  html += "<div class=sides>";
  if (!run.left.empty()) html += "<b>A</b><span class=mono>" + HtmlText(run.left) + "</span>";
  if (!run.right.empty()) html += "<b>B</b><span class=mono>" + HtmlText(run.right) + "</span>";
  html += "</div>\n";
  for (const std::string& fact : run.facts) html += "<p class=note>" + HtmlText(fact) + "</p>\n";
  html += HeatMaps(run);
  html += GrowthSvg(run.growth);
  if (!run.origins.empty()) html += "<h2>Where it starts</h2>\n";
  for (const OriginDetail& o : run.origins) html += Origin(o);
  for (const ReportTable& t : run.tables) html += Table(t);
  html += "<footer>";
  for (const std::string& line : run.closing) html += "<div class=\"mono dim\">" + HtmlText(line) + "</div>\n";
  return html + "</footer>\n<script>" + kReportScript + "</script>\n</body></html>\n";
}

std::string ReportJson(const RunComparison& run) {
  using nlohmann::ordered_json;
  ordered_json j = {{"title", run.title},     {"left", run.left},   {"right", run.right}, {"exit_code", run.exit_code},
                    {"verdict", run.verdict}, {"facts", run.facts}, {"sites", run.sites}, {"tokens", run.tokens}};
  j["cells"] = j["growth"] = j["origins"] = j["tables"] = ordered_json::array();
  for (const ReportCell& c : run.cells) {
    ordered_json cell = {
        {"step", c.step}, {"layer", c.layer}, {"site", c.site}, {"rank", c.rank}, {"status", CellName(c.status)},
        {"note", c.note}};
    if (!c.by_token.empty()) cell["by_token"] = c.by_token;
    j["cells"].push_back(std::move(cell));
  }
  for (const GrowthPoint& p : run.growth)
    j["growth"].push_back(
        {{"layer", p.layer}, {"site", p.site}, {"relative_l2", p.relative_l2}, {"max_abs", p.max_abs}});
  for (const OriginDetail& o : run.origins) {
    ordered_json origin = {{"title", o.title},
                           {"verdict", o.verdict},
                           {"sentence", o.sentence},
                           {"evidence", o.evidence},
                           {"refute", o.refute}};
    for (const WindowRow& r : o.window) origin["window"].push_back({r.index, r.a, r.b, r.distance});
    if (o.has_histogram) origin["ulp_histogram"] = std::vector<int64_t>(o.ulp_histogram, o.ulp_histogram + kUlpBuckets);
    j["origins"].push_back(std::move(origin));
  }
  for (const ReportTable& t : run.tables)
    j["tables"].push_back({{"title", t.title}, {"columns", t.columns}, {"rows", t.rows}});
  j["closing"] = run.closing;
  return j.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace samebits
