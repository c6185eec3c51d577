// The ProbeSink that records: filters what the forward pass offers and hands it to a TraceWriter.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trace/trace_writer.h"

namespace samebits {

struct RecorderFilter {
  // Empty: everything. Ranges are inclusive. Layer -1 (embedding, head) belongs to the layers.
  std::vector<Site> sites;
  std::vector<std::pair<int64_t, int64_t>> layers, steps, positions;
};
// "0,3-5" -> {{0,0},{3,5}}; `what` names the flag in errors.
Result<std::vector<std::pair<int64_t, int64_t>>> ParseRanges(std::string_view text, const std::string& what);
// "q_a,topk" or groups ("attn0"); the error lists the names there are.
Result<std::vector<Site>> ParseSites(std::string_view text, const std::string& what);

class Recorder : public ProbeSink {
 public:
  static Result<std::unique_ptr<Recorder>> Create(const std::string& folder, TraceWriterOptions options,
                                                  RecorderFilter filter = {});
  // Around each forward pass. Errors of the probes in between (a full disk) come out at EndStep.
  Status BeginStep(int64_t step);
  Status EndStep();
  Status Finish();

  bool Wants(Site site, int layer) const override;
  void OnRows(Site site, int layer, const Rows& rows) override;
  const TraceWriter& writer() const { return writer_; }

 private:
  Recorder(TraceWriter writer, RecorderFilter filter);
  TraceWriter writer_;
  RecorderFilter filter_;
  bool sites_[kSiteCount];
  bool step_wanted_ = false;
  Status status_;
  // Rows left by the position filter, packed.
  std::vector<RowOwner> kept_owners_;
  std::vector<int32_t> kept_lens_;
  std::string kept_;
};

}  // namespace samebits
