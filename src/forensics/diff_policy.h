// When do two tensors count as the same: strict bits, a tolerance, or equal sets. Tolerance: |a - b| <= atol + rtol*|b|,
// b = baseline. On the command line the baseline comes first.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "forensics/compare.h"

namespace samebits {

enum class PolicyKind { kStrict, kTolerance, kSet, kSkip };

struct Policy {
  PolicyKind kind = PolicyKind::kStrict;
  double rtol = 0, atol = 0;
  bool has_tolerance = false;
  int64_t max_ulp = -1;  // -1: not asked
  std::string Text() const;
};

// "strict", "set", "skip", "rtol=1e-3,atol=1e-5", "ulp=2".
Result<Policy> ParsePredicate(const std::string& text);

class PolicyTable {
 public:
  explicit PolicyTable(Policy standard = {}) : standard_(standard) {}
  // "REGEX:PREDICATE"; the first rule whose expression matches the whole name wins.
  Status AddRule(const std::string& text);
  const Policy& For(const std::string& name) const;
  const Policy& standard() const { return standard_; }
  bool has_rules() const { return !rules_.empty(); }

 private:
  struct Rule;
  Policy standard_;
  std::vector<std::shared_ptr<const Rule>> rules_;
};

// Elements outside the policy's tolerance; 0: within. Integers and booleans have no tolerance. baseline: first side.
int64_t OutsideTolerance(const Policy& policy, const TensorRef& baseline, const TensorRef& other,
                         const Comparison& comparison);

}  // namespace samebits
