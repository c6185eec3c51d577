// MISSING_CONTRIBUTION: one side is a fixed fraction of the other, or lacks exactly one recorded partial sum, or holds
// one alone: a reduction that left a rank out.
#include <cmath>

#include "base/strings.h"
#include "forensics/explain/explain.h"

namespace samebits {
namespace {

// The share of elements with a * n == b within two steps of the format; elements that are 0 on both sides do not count.
bool IsRatio(const TensorRef& a, const TensorRef& b, double n, double epsilon) {
  int64_t counted = 0;
  for (int64_t i = 0; i < a.elements(); ++i) {
    const double x = ElementAsDouble(a, i), y = ElementAsDouble(b, i);
    if (x == 0 && y == 0) continue;
    if (!(std::fabs(x * n - y) <= 2 * epsilon * std::fabs(y))) return false;
    ++counted;
  }
  return counted > 0;
}

bool IsSum(const TensorRef& total, const TensorRef& p, const TensorRef& q, double epsilon) {
  for (int64_t i = 0; i < total.elements(); ++i) {
    const double x = ElementAsDouble(p, i), y = ElementAsDouble(q, i), t = ElementAsDouble(total, i);
    if (!(std::fabs(x + y - t) <= 2 * epsilon * (std::fabs(x) + std::fabs(y)))) return false;
  }
  return true;
}

bool AllZero(const TensorRef& t) {
  for (int64_t i = 0; i < t.elements(); ++i)
    if (ElementAsDouble(t, i) != 0) return false;
  return true;
}

}  // namespace

Result<std::optional<Finding>> TryMissingContribution(const ExplainInput& in) {
  const TensorDiff& d = in.origin.diff;
  if (in.a.tensor.data == nullptr || !IsFloat(d.item.dtype) || d.verdict != DiffVerdict::kDivergent)
    return std::optional<Finding>();
  const TensorRef &a = in.a.tensor, &b = in.b.tensor;
  const double epsilon = d.item.dtype == DType::kBF16 ? 0x1p-7 : d.item.dtype == DType::kF16 ? 0x1p-10 : 0x1p-20;
  Finding f;
  f.verdict = "MISSING_CONTRIBUTION";
  f.at = d.item.name;
  f.refute = "a partial sum of each rank that, added up, gives both sides";
  for (const Companion& c : in.companions) {
    if (!IsFloat(c.item.dtype) || c.item.shape != d.item.shape || !c.same || AllZero(c.a.tensor)) continue;
    for (const bool right : {true, false}) {
      const TensorRef &less = right ? b : a, &more = right ? a : b;
      const char* name = right ? "B" : "A";
      const bool partial =
          c.item.site.find("partial") != std::string::npos || c.item.site.find("expert") != std::string::npos;
      if (SameBits(less, c.a.tensor) && partial) {
        f.sentence = Format("%s holds the partial sum %s alone: the other contributions never arrived", name,
                            c.item.site.c_str());
        f.evidence.push_back(Format("%s of %s is %s, bit for bit", d.item.site.c_str(), name, c.item.site.c_str()));
        return std::optional<Finding>(std::move(f));
      }
      if (partial && IsSum(more, less, c.a.tensor, epsilon)) {
        f.sentence = Format("%s lacks exactly the contribution %s", name, c.item.site.c_str());
        f.evidence.push_back(Format("%s of %s plus %s gives the other side, every element", d.item.site.c_str(), name,
                                    c.item.site.c_str()));
        return std::optional<Finding>(std::move(f));
      }
    }
  }
  for (const int n : {2, 3, 4, 5, 6, 7, 8, 16, 32, 64})
    for (const bool right : {true, false}) {
      const TensorRef &less = right ? b : a, &more = right ? a : b;
      if (!IsRatio(less, more, n, epsilon)) continue;
      f.sentence =
          Format("%s is 1/%d of the other side: one of %d equal contributions, or a sum divided by the number of ranks",
                 right ? "B" : "A", n, n);
      f.evidence.push_back(Format("every element of %s times %d gives the other side within two steps of the format",
                                  right ? "B" : "A", n));
      return std::optional<Finding>(std::move(f));
    }
  // All differing places hold exactly 0 on one side, next to equal ones: a contribution that never arrived there.
  for (const bool right : {true, false}) {
    const TensorRef &zero = right ? b : a, &full = right ? a : b;
    int64_t places = 0, equal_numbers = 0;
    bool all = true;
    for (int64_t i = 0; i < zero.elements() && all; ++i) {
      const double x = ElementAsDouble(zero, i), y = ElementAsDouble(full, i);
      if (x == y)
        equal_numbers += x != 0;
      else
        ++places, all = x == 0;
    }
    const bool few = zero.elements() < 8;
    if (!all || places == 0 || (equal_numbers == 0 && !few)) continue;
    f.sentence = Format("%s is exactly 0 where the other side has a value: only its own, empty, share is there",
                        right ? "B" : "A");
    f.evidence.push_back(Format("%lld places are 0 in %s alone", static_cast<long long>(places), right ? "B" : "A"));
    return std::optional<Finding>(std::move(f));
  }
  return std::optional<Finding>();
}

}  // namespace samebits
