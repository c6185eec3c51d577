// A ProveReport as a table, as JSON and as one self-contained HTML file.
#pragma once

#include <string>

#include "prove/prove.h"

namespace samebits {

std::string ProveTableHead();
std::string ProveTableRow(const ConditionResult& result);  // one line, or a few where bits differ; ends in a newline
std::string ProveSummary(const ProveReport& report);       // verdict, counts that add up, digests
std::string ProveVerdict(const ProveReport& report);       // one sentence
std::string ProveJson(const ProveReport& report);
// Works offline, light and dark, prints; no timestamp, so the same run gives the same file.
std::string ProveHtml(const ProveReport& report);

}  // namespace samebits
