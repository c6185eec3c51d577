#include <algorithm>
#include <cmath>
#include <set>

#include "base/strings.h"
#include "prove/prove_report.h"

namespace samebits {
namespace {

std::string Escape(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += c;
    }
  }
  return out;
}

constexpr char kStyle[] = R"(
:root{color-scheme:light dark;--bg:#fff;--fg:#1a1d21;--dim:#5c6570;--line:#d9dee4;--card:#f6f8fa;--same:#1a7f4b;--same-bg:#cdeedd;--diff:#b3261e;--diff-bg:#f6c9c5;--order-bg:#f7e3a8;--none-bg:#e8ebef}
@media(prefers-color-scheme:dark){:root{--bg:#14171a;--fg:#e6e9ec;--dim:#9aa4af;--line:#343b43;--card:#1c2126;--same:#5fd39a;--same-bg:#1d4a35;--diff:#ff8a80;--diff-bg:#6b2621;--order-bg:#5c4a12;--none-bg:#2a3037}}
*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,sans-serif}
main{max-width:1060px;margin:0 auto;padding:24px 16px 64px}h1{font-size:22px;line-height:1.35;margin:0 0 12px}h2{font-size:17px;margin:32px 0 8px}
p{margin:6px 0;max-width:78ch}.dim{color:var(--dim)}.wrap{overflow-x:auto}table{border-collapse:collapse;width:100%}
th,td{text-align:left;padding:6px 10px;border-bottom:1px solid var(--line);vertical-align:top}th{color:var(--dim);font-weight:600;cursor:pointer;white-space:nowrap}
td.num{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}.v{font-weight:600;white-space:nowrap}.same{color:var(--same)}.differs{color:var(--diff)}.notrun{color:var(--dim)}
code,.mono{font-family:ui-monospace,monospace;font-size:13px;overflow-wrap:anywhere}
.facts{display:grid;grid-template-columns:max-content 1fr;gap:2px 16px;background:var(--card);border:1px solid var(--line);border-radius:8px;padding:12px 16px}
.facts dt{color:var(--dim)}.facts dd{margin:0;overflow-wrap:anywhere}
.heat td,.heat th{padding:0;border:2px solid var(--bg);text-align:center;font-size:11px;cursor:default}.heat th.row{text-align:right;padding-right:8px;font-weight:400}
.heat td{min-width:26px;height:22px}.c-same{background:var(--same-bg)}.c-diff{background:var(--diff-bg)}.c-order{background:var(--order-bg)}.c-none{background:var(--none-bg)}
.key span{display:inline-block;padding:1px 8px;margin-right:8px;border-radius:4px;font-size:12px}
svg{max-width:100%;height:auto}svg text{fill:var(--dim);font:11px system-ui,sans-serif}svg .axis{stroke:var(--line)}svg .curve{fill:none;stroke:var(--diff);stroke-width:2}svg circle{fill:var(--diff)}
@media print{body{font-size:12px}th{cursor:default}.wrap{overflow:visible}}
)";

constexpr char kScript[] = R"(
document.querySelectorAll('table.sort th').forEach(function(th){th.addEventListener('click',function(){
var t=th.closest('table'),i=th.cellIndex,b=t.tBodies[0],up=th.dataset.up!=='1';th.dataset.up=up?'1':'0';
Array.from(b.rows).sort(function(a,c){var x=a.cells[i].textContent,y=c.cells[i].textContent,n=parseFloat(x.replace(/,/g,'')),m=parseFloat(y.replace(/,/g,''));
var d=isNaN(n)||isNaN(m)?x.localeCompare(y):n-m;return up?d:-d}).forEach(function(r){b.appendChild(r)})})});
)";

// Layer x site: all rows same, an index list in another order, some rows differ, nothing compared.
std::string HeatMap(const ConditionResult& r, int layers) {
  std::set<int> sites;
  for (const auto& [key, counts] : r.sites.sites)
    if (key.first >= 0 && key.first < layers) sites.insert(key.second);
  if (sites.empty()) return "";
  std::string html = "<div class=wrap><table class=heat><tr><th></th>";
  for (int layer = 0; layer < layers; ++layer) html += Format("<th>%d</th>", layer);
  html += "</tr>";
  for (const int site : sites) {
    html += Format("<tr><th class=row>%s</th>", InfoOf(static_cast<Site>(site)).name);
    for (int layer = 0; layer < layers; ++layer) {
      const auto at = r.sites.sites.find({layer, site});
      const bool order = r.sites.order_only && r.sites.first == SiteDigests::Key{layer, site};
      const char* kind = at == r.sites.sites.end() || at->second.first == 0 ? "none"
                         : at->second.second == 0                           ? "same"
                         : order                                            ? "order"
                                                                            : "diff";
      const long long compared = at == r.sites.sites.end() ? 0 : at->second.first,
                      differing = at == r.sites.sites.end() ? 0 : at->second.second;
      html += Format("<td class=c-%s title=\"layer %d %s: %lld of %lld rows differ\"></td>", kind, layer,
                     InfoOf(static_cast<Site>(site)).name, differing, compared);
    }
    html += "</tr>";
  }
  return html +
         "</table></div><p class=key><span class=c-same>same</span><span class=c-order>same values, other "
         "order</span><span class=c-diff>differs</span>"
         "<span class=c-none>not compared</span>columns are layers, rows are sites in causal order</p>";
}

// Largest |difference| of the residual stream by layer, logarithmic.
std::string GrowthCurve(const std::vector<GrowthPoint>& growth) {
  double least = 1e300, most = 0;
  for (const GrowthPoint& g : growth) {
    most = std::max(most, g.max_abs);
    if (g.max_abs > 0) least = std::min(least, g.max_abs);
  }
  if (most == 0) return "";
  const double lo = std::floor(std::log10(least)), hi = std::ceil(std::log10(most) + 1e-9),
               span = std::max(1.0, hi - lo);
  const int width = 640, height = 220, left = 56, bottom = 30, top = 12;
  const auto x = [&](size_t i) {
    return left + (width - left - 20) *
                      (growth.size() < 2 ? 0.5 : static_cast<double>(i) / static_cast<double>(growth.size() - 1));
  };
  const auto y = [&](double v) { return top + (height - top - bottom) * (1 - (std::log10(v) - lo) / span); };
  std::string svg = Format("<svg viewBox=\"0 0 %d %d\" width=%d height=%d role=img aria-label=\"growth over layers\">",
                           width, height, width, height);
  for (double d = lo; d <= lo + span + 0.5; d += std::max(1.0, std::ceil(span / 6)))
    svg += Format("<line class=axis x1=%d x2=%d y1=%.1f y2=%.1f /><text x=%d y=%.1f text-anchor=end>1e%d</text>", left,
                  width - 10, y(std::pow(10, d)), y(std::pow(10, d)), left - 6, y(std::pow(10, d)) + 4,
                  static_cast<int>(d));
  std::string points;
  for (size_t i = 0; i < growth.size(); ++i) {
    svg += Format("<text x=%.1f y=%d text-anchor=middle>%d</text>", x(i), height - 10, growth[i].layer);
    if (growth[i].max_abs == 0) continue;
    points += Format("%.1f,%.1f ", x(i), y(growth[i].max_abs));
    svg += Format("<circle cx=%.1f cy=%.1f r=3.5><title>layer %d: max %.3g, rms %.3g</title></circle>", x(i),
                  y(growth[i].max_abs), growth[i].layer, growth[i].max_abs, growth[i].rms);
  }
  return svg + "<polyline class=curve points=\"" + points + "\"/></svg>";
}

}  // namespace

std::string ProveHtml(const ProveReport& report) {
  std::string html =
      "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport "
      "content=\"width=device-width,initial-scale=1\"><title>samebits prove</title><style>";
  html += kStyle;
  html += "</style><main><h1>" + Escape(ProveVerdict(report)) + "</h1>";
  html += "<dl class=facts><dt>model</dt><dd>" + Escape(report.model) + "</dd><dt>request</dt><dd>" +
          Format("%lld prompt tokens, %lld drawn", static_cast<long long>(report.prompt_tokens),
                 static_cast<long long>(report.output_tokens)) +
          "</dd><dt>contract</dt><dd class=mono>" + Escape(report.contract) + "</dd><dt>stamp</dt><dd class=mono>" +
          Escape(report.stamp) + "</dd><dt>machine</dt><dd>" + Escape(report.isa) +
          Format(", %d threads", report.threads) + "</dd><dt>root digest</dt><dd class=mono>" + report.root_digest +
          "</dd><dt>kernels</dt><dd>" + Escape(report.kernels) + "</dd><dt>golden</dt><dd>" + Escape(report.golden) +
          "</dd></dl>";
  html +=
      "<h2>Conditions that must not change a bit</h2><p class=dim>Every row compares digests of every site of every "
      "layer, the KV rows read back "
      "from the cache, the tokens and their logprobs with one plain run. A condition that cannot run here says so.</p>"
      "<div class=wrap><table class=sort><thead><tr><th>#</th><th>condition</th><th>verdict</th><th>rows "
      "compared</th><th>what happened</th></tr></thead><tbody>";
  for (const ConditionResult& r : report.conditions) {
    const char* verdict = r.verdict == Verdict::kSame ? "same" : r.verdict == Verdict::kDiffers ? "differs" : "not run";
    const char* style = r.verdict == Verdict::kSame ? "same" : r.verdict == Verdict::kDiffers ? "differs" : "notrun";
    html +=
        Format("<tr><td class=num>%d</td><td>%s</td><td class=\"v %s\">%s</td><td class=num>%s</td><td>%s</td></tr>",
               r.number, Escape(r.text).c_str(), style, verdict,
               r.verdict == Verdict::kNotRun ? "–" : WithCommas(r.rows_compared + r.kv_rows_compared).c_str(),
               Escape(r.evidence).c_str());
  }
  html += "</tbody></table></div>";
  for (const ConditionResult& r : report.conditions) {
    if (r.verdict != Verdict::kDiffers) continue;
    html += "<h2>" + Escape(r.text) + "</h2><p>First difference: <code>" + Escape(r.first_site) +
            Format("</code> at position %d. ", r.first_position) + Escape(r.cause) + ".</p>";
    html += HeatMap(r, report.layers);
    if (!r.window.empty()) {
      html +=
          "<div class=wrap><table class=sort><thead><tr><th>index</th><th>baseline</th><th>this "
          "run</th><th>difference</th></tr></thead><tbody>";
      for (const auto& [i, pair] : r.window)
        html += Format(
            "<tr><td class=num>%d</td><td class=num>%.9g</td><td class=num>%.9g</td><td class=num>%.3g</td></tr>", i,
            static_cast<double>(pair.first), static_cast<double>(pair.second),
            static_cast<double>(pair.second) - static_cast<double>(pair.first));
      html += "</tbody></table></div>";
    }
    const std::string curve = GrowthCurve(r.growth);
    if (!curve.empty()) html += "<p>Growth over the layers, largest difference in the residual stream:</p>" + curve;
  }
  if (!report.AnyDiffers()) {
    const auto widest = std::max_element(
        report.conditions.begin(), report.conditions.end(),
        [](const ConditionResult& a, const ConditionResult& b) { return a.rows_compared < b.rows_compared; });
    if (widest != report.conditions.end() && !widest->sites.sites.empty())
      html += "<h2>What was compared</h2><p class=dim>Under “" + Escape(widest->text) + "”:</p>" +
              HeatMap(*widest, report.layers);
  }
  return html + "</main><script>" + kScript + "</script></html>\n";
}

}  // namespace samebits
