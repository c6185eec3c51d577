// The drawings of the report, as inline SVG.
#pragma once

#include <string>
#include <vector>

#include "forensics/report/report_html.h"

namespace samebits {

// Text with the five characters of HTML escaped.
std::string HtmlText(const std::string& text);
// Relative L2 over layers, logarithmic; "" when there is nothing to draw.
std::string GrowthSvg(const std::vector<GrowthPoint>& points);
std::string HistogramSvg(const int64_t* histogram);

}  // namespace samebits
