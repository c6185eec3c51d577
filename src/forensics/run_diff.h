// Compares two sources item by item under a policy. Results go to a visitor one at a time, so memory stays flat.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "forensics/compare.h"
#include "forensics/diff_policy.h"
#include "forensics/index_sets.h"
#include "forensics/mismatch_pattern.h"
#include "forensics/tensor_source.h"

namespace samebits {

enum class DiffVerdict {
  kIdentical,    // every bit
  kEqualValues,  // same numbers, other bits (-0 and +0, NaN payloads)
  kWithinTolerance,
  kSameSet,    // index lists: same ids, other order
  kOrderOnly,  // from digests: the same rows in another order
  kDivergent,
  kShapeMismatch,
  kDtypeMismatch,
  kOnlyLeft,
  kOnlyRight,
  kSkipped,
};
const char* DiffVerdictName(DiffVerdict verdict);  // "IDENTICAL", "DIVERGENT", ...

struct TensorDiff {
  SourceItem item;   // of the side that has it; the left one if both
  SourceItem right;  // when both
  size_t left_index = 0, right_index = 0;
  DiffVerdict verdict = DiffVerdict::kIdentical;
  bool passed = true;      // under the policy
  bool by_digest = false;  // no data was compared
  Policy policy;
  Comparison comparison;  // of data
  int64_t outside = 0;    // elements outside the tolerance
  std::optional<IndexSetDiff> sets;
  MismatchPattern pattern;
  // From digests: rows that differ, the first of them, and rows that could be compared.
  int64_t rows_compared = 0, rows_differ = 0;
  std::vector<int64_t> differing_rows;
};

struct DiffSums {
  int64_t left = 0, right = 0;  // items read on each side
  int64_t compared = 0, only_left = 0, only_right = 0, skipped = 0;
  int64_t identical = 0, equal_values = 0, within_tolerance = 0, same_set = 0, order_only = 0, divergent = 0,
          shape_mismatch = 0, dtype_mismatch = 0;
  int64_t failed = 0;  // not the same under the policy, missing ones included
  uint64_t bytes = 0;
  // Every pair counts as one read.
  int64_t read() const { return left + right - compared - paired_skips; }
  int64_t paired_skips = 0;
  bool AddUp() const { return compared + only_left + only_right + skipped == read(); }
};

struct DiffOptions {
  PolicyTable policies;
  std::string filter;  // regular expression searched in the name; empty: everything
  std::vector<std::pair<int64_t, int64_t>> layers, steps, ranks;
  bool details = true;           // patterns and sets of differing tensors
  bool quiet = false;            // no progress
  bool visit_identical = false;  // also items whose index lines alone show that they are equal
};

using DiffVisitor = std::function<Status(const TensorDiff& diff, TensorSource& left, TensorSource& right)>;

Result<DiffSums> DiffSources(TensorSource& left, TensorSource& right, const DiffOptions& options,
                             const DiffVisitor& visit);

// Integer tensors whose rows are lists of ids, by site or name.
bool IsIndexItem(const SourceItem& item);
bool InRanges(const std::vector<std::pair<int64_t, int64_t>>& ranges, int64_t value);

}  // namespace samebits
