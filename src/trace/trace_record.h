// What one line of a recording says (doc/trace_format.md), and the key that aligns two recordings.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/digest.h"
#include "tensor/tensor.h"
#include "trace/probe.h"

namespace samebits {

inline constexpr const char* kTraceSchema = "samebits-trace-1";

enum class TraceLevel { kDigest, kStats, kFull };
enum class TraceLayout { kShards, kPerTensor };
const char* TraceLevelName(TraceLevel level);
std::optional<TraceLevel> TraceLevelFromName(std::string_view name);
const char* TraceLayoutName(TraceLayout layout);
std::optional<TraceLayout> TraceLayoutFromName(std::string_view name);

// `call` counts repeats of a site within one step and layer (a step may hold several batches).
struct TraceKey {
  int64_t step = 0;
  int layer = -1;
  std::string site;
  int call = 0;
  int rank = 0;
  friend bool operator==(const TraceKey&, const TraceKey&) = default;
  friend auto operator<=>(const TraceKey&, const TraceKey&) = default;
};

// Rows whose values are consecutive: `count` rows of `request` at positions first, first + 1, ...
struct OwnerRun {
  int64_t request = 0;
  int32_t first = 0;
  int64_t count = 0;
  friend bool operator==(const OwnerRun&, const OwnerRun&) = default;
};

// Over elements that are not NaN; all zero if there are none.
struct TraceStats {
  double min = 0, max = 0, mean = 0, absmax = 0;
};
TraceStats StatsOf(const DigestRows& rows);

struct TraceRecord {
  TraceKey key;
  DType dtype = DType::kU8;
  Shape shape;
  std::vector<OwnerRun> owners;  // empty: not known
  std::vector<int32_t> lens;     // of ragged rows; empty: every row is full
  Digest128 ordered, order_free;
  SpecialCounts specials;
  std::optional<TraceStats> stats;
  int64_t rows = 0;          // number of row digests
  int64_t rows_at = 0;       // index of the first in rows_rank<rank>.bin
  bool has_sets = false;     // followed by as many element sets
  std::string file, tensor;  // the data, if kept

  // The owner of row r; request -1 if not known.
  RowOwner OwnerOf(int64_t r) const;
};

}  // namespace samebits
