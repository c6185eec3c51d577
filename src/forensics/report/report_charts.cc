#include "forensics/report/report_charts.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/strings.h"

namespace samebits {
namespace {

constexpr size_t kMostCurves = 6;
// Told apart in light and dark, and in print by the dash.
constexpr const char* kColours[kMostCurves] = {"#2f6db3", "#c8453b", "#3f8f5f", "#b07a12", "#7d56b3", "#3a9aa3"};
constexpr const char* kDashes[kMostCurves] = {"", "6 3", "2 3", "8 3 2 3", "1 2", "10 4"};

}  // namespace

std::string HtmlText(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string GrowthSvg(const std::vector<GrowthPoint>& points) {
  std::map<std::string, std::map<int, double>> curves;  // the largest over steps and ranks
  std::vector<std::string> order;
  for (const GrowthPoint& p : points) {
    if (p.layer < 0 || !(p.relative_l2 > 0) || !std::isfinite(p.relative_l2)) continue;
    if (!curves.count(p.site)) order.push_back(p.site);
    double& y = curves[p.site][p.layer];
    y = std::max(y, p.relative_l2);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](const std::string& a, const std::string& b) { return curves[a].size() > curves[b].size(); });
  if (order.size() > kMostCurves) order.resize(kMostCurves);
  if (order.empty() || curves[order[0]].size() < 2) return "";
  int x0 = 1 << 30, x1 = 0;
  double y0 = 1e300, y1 = 0;
  for (const std::string& site : order)
    for (const auto& [layer, y] : curves[site])
      x0 = std::min(x0, layer), x1 = std::max(x1, layer), y0 = std::min(y0, y), y1 = std::max(y1, y);
  const int low = static_cast<int>(std::floor(std::log10(y0))),
            high = std::max(low + 1, static_cast<int>(std::ceil(std::log10(y1))));
  constexpr double kLeft = 54, kTop = 12, kWidth = 640, kHeight = 200;
  const auto px = [&](int layer) {
    return kLeft + (x1 == x0 ? 0.5 : static_cast<double>(layer - x0) / (x1 - x0)) * kWidth;
  };
  const auto py = [&](double y) { return kTop + (high - std::log10(y)) / (high - low) * kHeight; };
  std::string svg = Format(
      "<h2>How the difference grows</h2>\n<figure><svg viewBox=\"0 0 720 %d\" width=720 role=img aria-label=\"relative "
      "difference over layers\">\n",
      static_cast<int>(kTop + kHeight + 40));
  const int step = std::max(1, (high - low + 5) / 6);
  for (int e = low; e <= high; e += step) {
    const double y = py(std::pow(10.0, e));
    svg += Format("<line class=axis x1=%g x2=%g y1=%.1f y2=%.1f /><text x=%g y=%.1f text-anchor=end>1e%d</text>\n",
                  kLeft, kLeft + kWidth, y, y, kLeft - 6, y + 4, e);
  }
  const int every = std::max(1, (x1 - x0 + 11) / 12);
  for (int layer = x0; layer <= x1; layer += every)
    svg += Format("<text x=%.1f y=%g text-anchor=middle>%d</text>\n", px(layer), kTop + kHeight + 18, layer);
  svg += Format("<text x=%g y=%g text-anchor=middle>layer</text>\n", kLeft + kWidth / 2, kTop + kHeight + 36);
  for (size_t i = 0; i < order.size(); ++i) {
    std::string path;
    for (const auto& [layer, y] : curves[order[i]]) path += Format("%.1f,%.1f ", px(layer), py(y));
    svg += Format("<polyline fill=none stroke=\"%s\" stroke-width=2 stroke-dasharray=\"%s\" points=\"%s\" />\n",
                  kColours[i], kDashes[i], path.c_str());
    for (const auto& [layer, y] : curves[order[i]])
      svg += Format("<circle cx=%.1f cy=%.1f r=2.5 fill=\"%s\"><title>%s, layer %d: %.3g</title></circle>", px(layer),
                    py(y), kColours[i], HtmlText(order[i]).c_str(), layer, y);
  }
  svg += "</svg><div class=legend>";
  for (size_t i = 0; i < order.size(); ++i)
    svg += Format(
        "<span><svg width=28 height=8><line x1=0 x2=28 y1=4 y2=4 stroke=\"%s\" stroke-width=2 stroke-dasharray=\"%s\" "
        "/></svg>%s</span>",
        kColours[i], kDashes[i], HtmlText(order[i]).c_str());
  return svg +
         "</div><figcaption>norm(a-b)/norm(b) per layer, logarithmic; layers where a site is the same have no "
         "point.</figcaption></figure>\n";
}

std::string HistogramSvg(const int64_t* histogram) {
  int64_t most = 0;
  int last = 0;
  for (int k = 0; k < kUlpBuckets; ++k)
    if (histogram[k] > 0) most = std::max(most, histogram[k]), last = k;
  if (most == 0) return "";
  const int rows = last + 1;
  std::string svg = Format(
      "<figure><figcaption>Distances in steps of the number format (ulp)</figcaption><svg viewBox=\"0 0 520 %d\" "
      "width=520 role=img aria-label=\"ulp histogram\">\n",
      rows * 20 + 4);
  for (int k = 0; k < rows; ++k) {
    const double width = 300.0 * static_cast<double>(histogram[k]) / static_cast<double>(most);
    const std::string range = k == 0                 ? "1"
                              : k == kUlpBuckets - 1 ? Format("%d and more", 1 << k)
                                                     : Format("%d to %d", 1 << k, (1 << (k + 1)) - 1);
    svg += Format(
        "<text x=112 y=%d text-anchor=end>%s</text><rect x=120 y=%d width=%.1f height=14 rx=2 fill=\"#2f6db3\" /><text "
        "x=%.1f y=%d>%s</text>\n",
        k * 20 + 14, range.c_str(), k * 20 + 3, histogram[k] > 0 ? std::max(1.0, width) : 0.0, 126 + width, k * 20 + 14,
        histogram[k] > 0 ? WithCommas(histogram[k]).c_str() : "");
  }
  return svg + "</svg></figure>\n";
}

}  // namespace samebits
