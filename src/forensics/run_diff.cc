#include "forensics/run_diff.h"

#include <regex>
#include <unordered_map>

#include "base/progress.h"
#include "base/strings.h"

namespace samebits {
namespace {

constexpr size_t kMostDifferingRows = 64;

struct Filter {
  std::optional<std::regex> name;
  const DiffOptions* options;

  bool Keeps(const SourceItem& item) const {
    return (!name || std::regex_search(item.name, *name)) && InRanges(options->layers, item.layer) &&
           InRanges(options->steps, item.step) && InRanges(options->ranks, item.rank);
  }
  bool KeepsAll() const { return !name && options->layers.empty() && options->steps.empty() && options->ranks.empty(); }
};

void CompareByDigest(const TensorSource& left, const TensorSource& right, TensorDiff* out) {
  const TraceRecord &a = *out->item.record, &b = *out->right.record;
  out->by_digest = true;
  if (a.ordered == b.ordered) {
    out->verdict = DiffVerdict::kIdentical;
    return;
  }
  int64_t same_sets = 0;
  for (int64_t r = 0; r < a.rows && a.rows == b.rows; ++r) {
    Digest128 x, y;
    if (!left.recording()->RowDigest(a, r, &x) || !right.recording()->RowDigest(b, r, &y)) continue;
    ++out->rows_compared;
    if (x == y) continue;
    ++out->rows_differ;
    if (out->differing_rows.size() < kMostDifferingRows) out->differing_rows.push_back(r);
    Digest128 p, q;
    if (left.recording()->RowSet(a, r, &p) && right.recording()->RowSet(b, r, &q) && p == q) ++same_sets;
  }
  if (out->rows_differ > 0 && same_sets == out->rows_differ)
    out->verdict = DiffVerdict::kSameSet;
  else if (a.order_free == b.order_free)
    out->verdict = DiffVerdict::kOrderOnly;
  else
    out->verdict = DiffVerdict::kDivergent;
}

Status ComparePair(TensorSource& left, TensorSource& right, const DiffOptions& options, TensorDiff* out) {
  const Policy& policy = out->policy;
  if (out->item.shape != out->right.shape || out->item.dtype != out->right.dtype) {
    out->verdict = out->item.shape != out->right.shape ? DiffVerdict::kShapeMismatch : DiffVerdict::kDtypeMismatch;
    out->passed = false;
    if (out->item.shape == out->right.shape && out->item.has_data && out->right.has_data) {
      SB_ASSIGN(const LoadedTensor a, left.Load(out->left_index));
      SB_ASSIGN(const LoadedTensor b, right.Load(out->right_index));
      out->comparison = CompareTensors(a.tensor, b.tensor);
    }
    return Ok();
  }
  const bool digests = out->item.record && out->right.record;
  if (digests &&
      (out->item.record->ordered == out->right.record->ordered || !out->item.has_data || !out->right.has_data)) {
    CompareByDigest(left, right, out);
  } else {
    SB_ASSIGN(const LoadedTensor a, left.Load(out->left_index));
    SB_ASSIGN(const LoadedTensor b, right.Load(out->right_index));
    out->comparison = CompareTensors(a.tensor, b.tensor);
    const CompareStatus status = out->comparison.status;
    out->verdict = status == CompareStatus::kEqualBits     ? DiffVerdict::kIdentical
                   : status == CompareStatus::kEqualValues ? DiffVerdict::kEqualValues
                                                           : DiffVerdict::kDivergent;
    if (status != CompareStatus::kEqualBits) {
      if (policy.kind == PolicyKind::kTolerance) {
        out->outside = OutsideTolerance(policy, a.tensor, b.tensor, out->comparison);
        if (status == CompareStatus::kDifferent && out->outside == 0) out->verdict = DiffVerdict::kWithinTolerance;
      }
      if (IsIndexItem(out->item) && (options.details || policy.kind == PolicyKind::kSet)) {
        out->sets = CompareIndexSets(a.tensor, b.tensor);
        if (out->sets->same_sets()) out->verdict = DiffVerdict::kSameSet;
      }
      if (options.details) out->pattern = FindPattern(a.tensor, b.tensor);
    }
  }
  switch (out->verdict) {
    case DiffVerdict::kIdentical:
      out->passed = true;
      break;
    case DiffVerdict::kSameSet:
      out->passed = policy.kind == PolicyKind::kSet;
      break;
    case DiffVerdict::kEqualValues:
    case DiffVerdict::kWithinTolerance:
      out->passed = policy.kind == PolicyKind::kTolerance;
      break;
    default:
      out->passed = false;
  }
  return Ok();
}

void Count(const TensorDiff& d, DiffSums* sums) {
  if (d.verdict == DiffVerdict::kOnlyLeft || d.verdict == DiffVerdict::kOnlyRight) {
    ++(d.verdict == DiffVerdict::kOnlyLeft ? sums->only_left : sums->only_right);
    ++sums->failed;
    return;
  }
  if (d.verdict == DiffVerdict::kSkipped) {
    ++sums->skipped;
    return;
  }
  ++sums->compared;
  sums->failed += !d.passed;
  int64_t* const counters[] = {&sums->identical,  &sums->equal_values, &sums->within_tolerance, &sums->same_set,
                               &sums->order_only, &sums->divergent,    &sums->shape_mismatch,   &sums->dtype_mismatch};
  ++*counters[static_cast<int>(d.verdict)];
}

}  // namespace

bool IsIndexItem(const SourceItem& item) {
  if (!IsInteger(item.dtype) || item.dtype == DType::kBool || item.shape.empty()) return false;
  const auto site = SiteFromName(item.site);
  if (site) return InfoOf(*site).kind != SiteKind::kToken;
  for (const char* word : {"topk", "index", "indices", "pagetable", "page_table", "expert", "sorted"})
    if (item.site.find(word) != std::string::npos) return true;
  return false;
}

const char* DiffVerdictName(DiffVerdict verdict) {
  constexpr const char* kNames[] = {"IDENTICAL",  "EQUAL_VALUES", "WITHIN_TOLERANCE", "SAME_SET",
                                    "ORDER_ONLY", "DIVERGENT",    "SHAPE_MISMATCH",   "DTYPE_MISMATCH",
                                    "ONLY_LEFT",  "ONLY_RIGHT",   "SKIPPED"};
  return kNames[static_cast<int>(verdict)];
}

bool InRanges(const std::vector<std::pair<int64_t, int64_t>>& ranges, int64_t value) {
  if (ranges.empty()) return true;
  for (const auto& [first, last] : ranges)
    if (value >= first && value <= last) return true;
  return false;
}

Result<DiffSums> DiffSources(TensorSource& left, TensorSource& right, const DiffOptions& options,
                             const DiffVisitor& visit) {
  if ((left.recording() != nullptr) != (right.recording() != nullptr))
    return Error((left.recording() ? right.path() : left.path()) +
                 ": is not a recording and the other side is; bring it into one with samebits import");
  Filter filter{{}, &options};
  if (!options.filter.empty()) {
    try {
      filter.name = std::regex(options.filter);
    } catch (const std::regex_error&) {
      return Error("--filter \"" + options.filter + "\" is not a regular expression");
    }
  }
  DiffSums sums;
  sums.left = static_cast<int64_t>(left.size()), sums.right = static_cast<int64_t>(right.size());
  Progress progress("comparing", "tensors", sums.left, !options.quiet);
  // The index of the right side is made only when the sides do not run in step.
  std::unordered_map<std::string_view, size_t> index;
  std::vector<bool> used(right.size(), false);
  const auto find = [&](size_t i, size_t* j) {
    if (i < right.size() && !used[i] && left.Key(i) == right.Key(i)) return *j = i, true;
    if (index.empty())
      for (size_t k = 0; k < right.size(); ++k) index.emplace(right.Key(k), k);
    const auto it = index.find(left.Key(i));
    if (it == index.end() || used[it->second]) return false;
    return *j = it->second, true;
  };
  const bool lines_only = filter.KeepsAll() && !options.visit_identical && !options.policies.has_rules();
  for (size_t i = 0; i < left.size(); ++i) {
    if (lines_only && i < right.size() && !used[i] && left.SameLine(i, right, i)) {
      used[i] = true;
      ++sums.compared, ++sums.identical;
      continue;
    }
    size_t j = 0;
    const bool both = find(i, &j);
    if (both) used[j] = true;
    TensorDiff diff;
    SB_ASSIGN(diff.item, left.Item(i));
    diff.left_index = i, diff.right_index = j;
    diff.policy = options.policies.For(diff.item.name);
    if (both) {
      SB_ASSIGN(diff.right, right.Item(j));
    }
    if (!filter.Keeps(diff.item) || diff.policy.kind == PolicyKind::kSkip) {
      diff.verdict = DiffVerdict::kSkipped;
      sums.paired_skips += both;
    } else if (!both) {
      diff.verdict = DiffVerdict::kOnlyLeft;
      diff.passed = false;
    } else {
      SB_RETURN_IF_ERROR(ComparePair(left, right, options, &diff));
    }
    Count(diff, &sums);
    SB_RETURN_IF_ERROR(visit(diff, left, right));
    progress.Add(1);
  }
  for (size_t j = 0; j < right.size(); ++j) {
    if (used[j]) continue;
    TensorDiff diff;
    SB_ASSIGN(diff.item, right.Item(j));
    diff.right_index = j;
    diff.policy = options.policies.For(diff.item.name);
    diff.passed = false;
    diff.verdict = filter.Keeps(diff.item) && diff.policy.kind != PolicyKind::kSkip ? DiffVerdict::kOnlyRight
                                                                                    : DiffVerdict::kSkipped;
    Count(diff, &sums);
    SB_RETURN_IF_ERROR(visit(diff, left, right));
  }
  SB_CHECK(sums.AddUp(), "the sums of a diff do not add up");
  return sums;
}

}  // namespace samebits
