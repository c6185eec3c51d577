// Walks two runs in causal order and tells where a difference starts from where it only arrives. Origin: the inputs are
// the same, the output is not. Propagated: an input differs already.
#pragma once

#include <string>
#include <vector>

#include "forensics/run_diff.h"

namespace samebits {

struct Origin {
  TensorDiff diff;
  std::vector<std::string> same_inputs;  // recorded, and equal
  bool inputs_recorded = false;
};
struct Propagated {
  std::string name, because;  // the input that differs
};

struct Located {
  DiffSums sums;
  std::vector<Origin> origins;         // in causal order
  std::vector<Propagated> propagated;  // in causal order
  std::vector<std::string> noise;      // differ between two runs of A already
  std::vector<TensorDiff> differing;   // everything that differs, in causal order
  bool known_sites = false;            // the sites of trace/sites.h, whose inputs are known; else order alone
};

// noise: a second run of A, or null.
Result<Located> Locate(TensorSource& left, TensorSource& right, const DiffOptions& options, TensorSource* noise,
                       const DiffVisitor& also = {});

// The sites whose outputs feed `site` within a layer; "<" in front: of the layer before; "^" in front: also of earlier
// steps, through the cache.
std::vector<std::string> SiteInputs(const std::string& site);

}  // namespace samebits
