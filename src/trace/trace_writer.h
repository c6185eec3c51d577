// Writes one rank's recording into a folder. Lines are appended as sites arrive and reach the file at the latest when
// the layer changes, so that a crash keeps what came before it; the manifest says whether the recording was finished.
// The same tensors give the same bytes: no times, no host names.
#pragma once

#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "store/safetensors.h"
#include "trace/trace_record.h"

namespace samebits {

struct TraceWriterOptions {
  TraceLevel level = TraceLevel::kDigest;
  TraceLayout layout = TraceLayout::kShards;
  int rank = 0, ranks = 1;
  int64_t max_records = int64_t{1} << 40;
  uint64_t max_bytes = uint64_t{1} << 60;     // of tensor data; digests go on beyond it
  std::map<std::string, std::string> about;   // model, contract, build, ...: into the manifest as they are
  std::map<std::string, std::string> filter;  // how the capture was narrowed, for the manifest
  ThreadPool* pool = nullptr;                 // for hashing; may be null
  bool quiet = false;                         // no notices on stderr; they are in the manifest in any case
};

class TraceWriter {
 public:
  // The folder is made if needed. One that already holds this rank's recording is refused.
  static Result<TraceWriter> Create(const std::string& folder, const TraceWriterOptions& options);
  TraceWriter(TraceWriter&&) noexcept;
  TraceWriter& operator=(TraceWriter&&) noexcept;
  ~TraceWriter();

  Status BeginStep(int64_t step);
  struct Add {
    int layer = -1;
    std::string site;
    SiteKind kind = SiteKind::kFloat;
    DigestRows rows;
    const RowOwner* owners = nullptr;  // [rows.count]; null: not known
  };
  // Hashes, and copies if data is kept, before it returns.
  Status Record(const Add& add);
  Status EndStep();
  // Writes what is left and the final manifest. Without it the recording stays marked as incomplete.
  Status Finish();

  int64_t records() const;
  // Loud facts a user must see: caps reached.
  const std::vector<std::string>& notices() const;

 private:
  struct State;
  TraceWriter();
  std::unique_ptr<State> state_;
};

}  // namespace samebits
