#include "forensics/diff_policy.h"

#include <cmath>
#include <regex>

#include "base/strings.h"

namespace samebits {

std::string Policy::Text() const {
  switch (kind) {
    case PolicyKind::kStrict:
      return "strict: every bit";
    case PolicyKind::kSet:
      return "set: index lists as sets per row, everything else every bit";
    case PolicyKind::kSkip:
      return "skip";
    case PolicyKind::kTolerance:
      break;
  }
  std::string text = "tolerance:";
  if (has_tolerance) text += Format(" |a-b| <= %g + %g*|a|, a = baseline (first path)", atol, rtol);
  if (max_ulp >= 0) text += Format("%s at most %lld ulp", has_tolerance ? "," : "", static_cast<long long>(max_ulp));
  return text;
}

Result<Policy> ParsePredicate(const std::string& text) {
  Policy policy;
  if (text == "strict") return policy;
  if (text == "set" || text == "skip") {
    policy.kind = text == "set" ? PolicyKind::kSet : PolicyKind::kSkip;
    return policy;
  }
  policy.kind = PolicyKind::kTolerance;
  for (const std::string& part : Split(text, ',')) {
    const size_t equals = part.find('=');
    const std::string name = part.substr(0, equals), value = equals == std::string::npos ? "" : part.substr(equals + 1);
    if (name == "ulp") {
      SB_ASSIGN(policy.max_ulp, ParseInt(value, "ulp in the predicate"));
      if (policy.max_ulp < 0) return Error("ulp in the predicate \"" + text + "\" is negative");
      continue;
    }
    if (name != "rtol" && name != "atol")
      return Error("the predicate \"" + text + "\" is not strict, set, skip, rtol=X,atol=Y or ulp=N");
    SB_ASSIGN(const double x, ParseDouble(value, name + " in the predicate"));
    if (!(x >= 0)) return Error(name + " in the predicate \"" + text + "\" must be 0 or more");
    (name == "rtol" ? policy.rtol : policy.atol) = x;
    policy.has_tolerance = true;
  }
  return policy;
}

struct PolicyTable::Rule {
  std::regex expression;
  Policy policy;
};

Status PolicyTable::AddRule(const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return Error("--rule \"" + text + "\" has no colon; write REGEX:PREDICATE");
  SB_ASSIGN(Policy policy, ParsePredicate(text.substr(colon + 1)));
  try {
    rules_.push_back(std::make_shared<const Rule>(Rule{std::regex(text.substr(0, colon)), policy}));
  } catch (const std::regex_error&) {
    return Error("--rule \"" + text + "\": the part before the last colon is not a regular expression");
  }
  return Ok();
}

const Policy& PolicyTable::For(const std::string& name) const {
  for (const auto& rule : rules_)
    if (std::regex_match(name, rule->expression)) return rule->policy;
  return standard_;
}

int64_t OutsideTolerance(const Policy& policy, const TensorRef& baseline, const TensorRef& other,
                         const Comparison& comparison) {
  const CompareStats& s = comparison.stats;
  if (s.value_mismatches == 0) return 0;
  if (!IsFloat(baseline.dtype)) return s.value_mismatches;
  if (s.nan_one_side == 0 && (policy.max_ulp < 0 || s.max_ulp <= static_cast<uint64_t>(policy.max_ulp)) &&
      (!policy.has_tolerance || s.max_abs <= policy.atol))
    return 0;
  int64_t outside = 0;
  for (int64_t i = s.first_value; i <= s.last_value; ++i) {
    const double a = ElementAsDouble(baseline, i), b = ElementAsDouble(other, i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    const bool near = !policy.has_tolerance || std::fabs(a - b) <= policy.atol + policy.rtol * std::fabs(a);
    const bool steps = policy.max_ulp < 0 || UlpDistance(baseline, other, i) <= static_cast<uint64_t>(policy.max_ulp);
    outside += !(near && steps && std::isfinite(a) && std::isfinite(b));
  }
  return outside;
}

}  // namespace samebits
