// The report people attach to bug reports: one self-contained HTML file. Whoever compared something fills a
// RunComparison; nothing in it depends on how the comparison was made.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "forensics/compare.h"

namespace samebits {

enum class CellStatus { kSame, kOrderOnly, kDiffers, kNotCompared };

// One square of the heat map.
struct ReportCell {
  int64_t step = 0;
  int layer = -1;
  std::string site;
  int rank = 0;
  CellStatus status = CellStatus::kNotCompared;
  std::string note;  // shown on hover: "12 of 512 rows differ, max |a-b| 0.0039"
  // One character a token of RunComparison::tokens: '=' same, 'o' order only, 'x' differs, '.' not compared. May be
  // empty: then the cell has the same status for every token.
  std::string by_token;
};

// One point of the growth curve; several sites make several curves.
struct GrowthPoint {
  int layer = -1;
  std::string site;
  double relative_l2 = 0;
  double max_abs = 0;
};

struct WindowRow {
  std::string index, a, b, distance;
  bool differs = false;
};

// An origin: its inputs are the same, its output is not.
struct OriginDetail {
  std::string title;     // "layer 7, topk"
  std::string verdict;   // "TOPK_TIE"; may be empty
  std::string sentence;  // the verdict in words
  std::vector<std::string> evidence;
  std::string refute;  // the check that would refute it
  std::vector<WindowRow> window;
  bool has_histogram = false;
  int64_t ulp_histogram[kUlpBuckets] = {};
};

struct ReportTable {
  std::string title;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};

struct RunComparison {
  std::string title;        // "samebits first"
  std::string left, right;  // labels of the two sides; right may be empty
  int exit_code = 0;        // 0 same, 1 differ, 2 not comparable: the colour of the verdict
  std::string verdict;      // one sentence a colleague understands; the first thing on the page
  std::vector<std::string> facts;
  std::vector<std::string> sites;   // columns of the heat map, in causal order
  std::vector<std::string> tokens;  // labels for the token picker; may be empty
  std::vector<ReportCell> cells;
  std::vector<GrowthPoint> growth;
  std::vector<OriginDetail> origins;
  std::vector<ReportTable> tables;
  std::vector<std::string> closing;  // sums that must add up, how to repeat the comparison
};

// The same comparison gives the same bytes: no times, no host names.
std::string ReportHtml(const RunComparison& run);
// The same content as JSON.
std::string ReportJson(const RunComparison& run);

}  // namespace samebits
