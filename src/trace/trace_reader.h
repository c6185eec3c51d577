// Reads a recording. Everything is mapped: memory stays flat whatever its size. Opening reads the lines once to find
// where they begin; a record is parsed when asked for.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "store/safetensors.h"
#include "trace/trace_record.h"

namespace samebits {

struct TraceManifest {
  TraceLevel level = TraceLevel::kDigest;
  TraceLayout layout = TraceLayout::kShards;
  int ranks = 1;
  bool complete = false;
  std::map<std::string, std::string> about, filter;
  std::vector<std::string> notices;
};

// Kept data; the shard keeps the map alive.
struct TraceTensor {
  std::shared_ptr<const Safetensors> shard;
  TensorRef tensor;
};

bool IsTraceFolder(const std::string& folder);

class TraceReader {
 public:
  // Errors name what is missing or broken. Of a recording that was cut off, the half line at the end is dropped and a
  // notice is added.
  static Result<TraceReader> Open(const std::string& folder);

  const std::string& folder() const { return folder_; }
  const TraceManifest& manifest() const { return manifest_; }
  // Site lines of all ranks present: rank by rank, in the order recorded.
  size_t size() const { return lines_.size(); }
  std::string_view line(size_t i) const { return lines_[i]; }
  // The part of the line that names step, layer, site, call and rank; equal text means equal keys. Lines that are equal
  // as a whole say that everything is.
  std::string_view KeyText(size_t i) const;
  Result<TraceRecord> Record(size_t i) const;
  // False if the digests were lost (a recording that was cut off).
  bool RowDigest(const TraceRecord& record, int64_t row, Digest128* out) const;
  // The element set of a row; records with has_sets only.
  bool RowSet(const TraceRecord& record, int64_t row, Digest128* out) const;
  // The data; an error if none was kept.
  Result<TraceTensor> Data(const TraceRecord& record);

 private:
  bool DigestAt(int rank, int64_t index, Digest128* out) const;
  std::string folder_;
  TraceManifest manifest_;
  std::vector<MappedFile> line_files_;
  std::map<int, MappedFile> row_files_;
  std::vector<std::string_view> lines_;
  std::map<std::string, std::shared_ptr<const Safetensors>> shards_;
};

}  // namespace samebits
