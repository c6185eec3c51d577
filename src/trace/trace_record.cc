#include "trace/trace_record.h"

#include <cstring>
#include <string_view>

namespace samebits {
namespace {

constexpr const char* kLevels[] = {"digest", "stats", "full"};
constexpr const char* kLayouts[] = {"shards", "per-tensor"};

template <class Enum, size_t n>
std::optional<Enum> Named(const char* const (&names)[n], std::string_view name) {
  for (size_t i = 0; i < n; ++i)
    if (name == names[i]) return static_cast<Enum>(i);
  return std::nullopt;
}

// One loop per common type; everything else goes through the general element reader.
template <class Read>
void AddStats(int64_t n, Read read, TraceStats* stats, double* sum, int64_t* count) {
  for (int64_t i = 0; i < n; ++i) {
    const double x = read(i);
    if (x != x) continue;
    const double magnitude = x < 0 ? -x : x;
    if (*count == 0 || x < stats->min) stats->min = x;
    if (*count == 0 || x > stats->max) stats->max = x;
    if (magnitude > stats->absmax) stats->absmax = magnitude;
    *sum += x;
    ++*count;
  }
}

}  // namespace

const char* TraceLevelName(TraceLevel level) { return kLevels[static_cast<int>(level)]; }
std::optional<TraceLevel> TraceLevelFromName(std::string_view name) { return Named<TraceLevel>(kLevels, name); }
const char* TraceLayoutName(TraceLayout layout) { return kLayouts[static_cast<int>(layout)]; }
std::optional<TraceLayout> TraceLayoutFromName(std::string_view name) { return Named<TraceLayout>(kLayouts, name); }

TraceStats StatsOf(const DigestRows& rows) {
  TraceStats stats;
  double sum = 0;
  int64_t count = 0;
  const int64_t element = DTypeBits(rows.dtype) / 8;
  for (int64_t r = 0; r < rows.count; ++r) {
    const int64_t n = rows.lens ? rows.lens[r] : rows.cols;
    const char* row = static_cast<const char*>(rows.data) + r * rows.stride * element;
    if (rows.dtype == DType::kBF16) {
      AddStats(
          n, [&](int64_t i) { return double{ToF32(reinterpret_cast<const BF16*>(row)[i])}; }, &stats, &sum, &count);
    } else if (rows.dtype == DType::kF32) {
      AddStats(n, [&](int64_t i) { return double{reinterpret_cast<const float*>(row)[i]}; }, &stats, &sum, &count);
    } else {
      const TensorRef t{rows.dtype, {n}, row};
      AddStats(n, [&](int64_t i) { return ElementAsDouble(t, i); }, &stats, &sum, &count);
    }
  }
  if (count > 0) stats.mean = sum / static_cast<double>(count);
  return stats;
}

RowOwner TraceRecord::OwnerOf(int64_t r) const {
  for (const OwnerRun& run : owners) {
    if (r < run.count) return RowOwner{run.request, static_cast<int32_t>(run.first + r)};
    r -= run.count;
  }
  return RowOwner{-1, 0};
}

}  // namespace samebits
