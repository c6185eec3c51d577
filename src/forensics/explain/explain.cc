#include "forensics/explain/explain.h"

#include <algorithm>

#include "base/strings.h"
#include "forensics/diff_text.h"

namespace samebits {
namespace {

constexpr size_t kMostCompanions = 64;
constexpr size_t kMostOrigins = 32;

// In this order: what makes the question void first, then causes with exact proofs, then patterns.
constexpr Hypothesis kHypotheses[] = {TryNotComparable, TryTopk,      TryMissingContribution, TryUnwritten,
                                      TryDowngrade,     TryCastOrder, TryPartialPrecision,    TryReductionOrder};

std::string ScopeOf(const SourceItem& item) {
  if (item.record) return "";
  const size_t colon = item.name.rfind(':');
  return colon == std::string::npos ? "" : item.name.substr(0, colon);
}

Status AddCompanions(ExplainInput* in) {
  const SourceItem& target = in->origin.diff.item;
  for (size_t i = 0; i < in->left.size() && in->companions.size() < kMostCompanions; ++i) {
    if (i == in->origin.diff.left_index) continue;
    SB_ASSIGN(SourceItem item, in->left.Item(i));
    if (!item.has_data || item.step != target.step || item.layer != target.layer ||
        (item.record && item.rank != target.rank))
      continue;
    if (ScopeOf(item) != ScopeOf(target)) continue;
    for (size_t j = i < in->right.size() && in->right.Key(i) == in->left.Key(i) ? i : 0; j < in->right.size(); ++j) {
      if (in->right.Key(j) != in->left.Key(i)) continue;
      SB_ASSIGN(const SourceItem other, in->right.Item(j));
      if (!other.has_data) break;
      Companion c;
      SB_ASSIGN(c.a, in->left.Load(i));
      SB_ASSIGN(c.b, in->right.Load(j));
      c.item = std::move(item);
      c.same = SameBits(c.a.tensor, c.b.tensor);
      in->companions.push_back(std::move(c));
      break;
    }
  }
  return Ok();
}

Finding Unknown(const ExplainInput& in) {
  Finding f;
  f.verdict = "UNKNOWN";
  f.at = in.origin.diff.item.name;
  f.sentence = "the evidence recorded does not show a cause";
  f.evidence.push_back(DiffLine(in.origin.diff));
  if (in.a.tensor.data == nullptr)
    f.evidence.push_back(
        "only digests were recorded here; samebits plan A B prints the filter for a recording with data");
  else if (!in.origin.inputs_recorded)
    f.evidence.push_back(
        "the inputs of this operation were not recorded: record them (and its weight) in full next to the output");
  else
    f.evidence.push_back(
        "the inputs are the same; record the weight and the kernel's split and tile settings, and repeat each run once "
        "(--noise) to see whether it differs from itself");
  f.refute = "any recording with more of the inputs that shows one of the other verdicts";
  return f;
}

}  // namespace

const Companion* ExplainInput::Find(std::initializer_list<const char*> sites) const {
  for (const char* site : sites)
    for (const Companion& c : companions)
      if (c.item.site == site) return &c;
  return nullptr;
}

Result<Explanation> Explain(TensorSource& left, TensorSource& right, const Located& located) {
  Explanation out;
  const auto n = [](int64_t x) { return static_cast<long long>(x); };
  if (located.origins.empty()) {
    const DiffSums& s = located.sums;
    if (s.only_left + s.only_right > 0 && s.compared > 0) {
      out.findings.push_back(
          {"NOT_COMPARABLE",
           left.path(),
           Format("what both sides have is the same, but %lld tensors are only on the left and %lld only on the right",
                  n(s.only_left), n(s.only_right)),
           {},
           "recordings with the same filter on both sides"});
      out.exit_code = 2;
      return out;
    }
    const char* verdict = s.within_tolerance + s.equal_values > 0 ? "WITHIN_TOLERANCE"
                          : s.same_set > 0                        ? "SAME_SET"
                                                                  : "IDENTICAL";
    out.findings.push_back({verdict,
                            "",
                            Format("all %lld tensors are the same under the policy", n(s.compared)),
                            {},
                            "one tensor that differs under the policy strict"});
    out.exit_code = 0;
    return out;
  }
  bool comparable = true;
  for (size_t i = 0; i < located.origins.size() && i < kMostOrigins; ++i) {
    const Origin& origin = located.origins[i];
    ExplainInput in{left, right, located, origin, {}, {}, {}};
    if (origin.diff.item.has_data && origin.diff.right.has_data) {
      SB_ASSIGN(in.a, left.Load(origin.diff.left_index));
      SB_ASSIGN(in.b, right.Load(origin.diff.right_index));
      SB_RETURN_IF_ERROR(AddCompanions(&in));
    }
    std::optional<Finding> found;
    for (const Hypothesis hypothesis : kHypotheses) {
      SB_ASSIGN(found, hypothesis(in));
      if (found) break;
    }
    if (!found) found = Unknown(in);
    if (found->verdict == "NOT_COMPARABLE") comparable = false;
    out.findings.push_back(std::move(*found));
    if (!comparable) break;  // nothing after it means anything
  }
  // Lists chosen from scores that differ already: not a tie, whatever they look like.
  for (const TensorDiff& d : located.differing) {
    if (!comparable || !IsIndexItem(d.item)) continue;
    if (std::any_of(located.origins.begin(), located.origins.end(),
                    [&](const Origin& o) { return o.diff.item.name == d.item.name; }))
      continue;
    Origin origin;
    origin.diff = d;
    ExplainInput in{left, right, located, origin, {}, {}, {}};
    if (!d.item.has_data || !d.right.has_data) continue;
    SB_ASSIGN(in.a, left.Load(d.left_index));
    SB_ASSIGN(in.b, right.Load(d.right_index));
    SB_RETURN_IF_ERROR(AddCompanions(&in));
    SB_ASSIGN(const std::optional<Finding> found, TryTopk(in));
    if (found) out.findings.push_back(*found);
    if (out.findings.size() > kMostOrigins) break;
  }
  out.exit_code = comparable ? 1 : 2;
  return out;
}

std::string FindingText(const Finding& f) {
  std::string text = f.verdict + (f.at.empty() ? "" : "  " + f.at) + "\n  " + f.sentence + "\n";
  for (const std::string& line : f.evidence) text += "  - " + line + "\n";
  if (!f.refute.empty()) text += "  would be refuted by: " + f.refute + "\n";
  return text;
}

}  // namespace samebits
