// UNINITIALISED: fixed places hold values without any bound (NaN, garbage), everything else is equal: nobody wrote them.
// OVERWRITE: one row of many was replaced by ordinary values of another row: somebody wrote too much.
#include <algorithm>
#include <cmath>

#include "base/strings.h"
#include "forensics/explain/explain.h"

namespace samebits {
namespace {

// Root mean square of the elements that are equal on both sides.
double UsualMagnitude(const TensorRef& a, const TensorRef& b) {
  double sum = 0;
  int64_t n = 0;
  for (int64_t i = 0; i < a.elements(); ++i) {
    const double x = ElementAsDouble(a, i);
    if (ElementBits(a, i) != ElementBits(b, i) || !std::isfinite(x)) continue;
    sum += x * x, ++n;
  }
  return n > 0 ? std::sqrt(sum / static_cast<double>(n)) : 0;
}

struct Places {
  int64_t differ = 0, wild_a = 0, wild_b = 0;
};

Places CountWild(const TensorRef& a, const TensorRef& b, double usual) {
  Places p;
  const auto wild = [&](double x) {
    return !std::isfinite(x) || std::fabs(x) > 1e3 * usual || (x != 0 && std::fabs(x) < 1e-20 * usual);
  };
  for (int64_t i = 0; i < a.elements(); ++i) {
    if (ElementBits(a, i) == ElementBits(b, i)) continue;
    ++p.differ;
    p.wild_a += wild(ElementAsDouble(a, i)), p.wild_b += wild(ElementAsDouble(b, i));
  }
  return p;
}

}  // namespace

Result<std::optional<Finding>> TryUnwritten(const ExplainInput& in) {
  const TensorDiff& d = in.origin.diff;
  if (in.a.tensor.data == nullptr || !IsFloat(d.item.dtype) || d.verdict != DiffVerdict::kDivergent)
    return std::optional<Finding>();
  const CompareStats& s = d.comparison.stats;
  const double usual = UsualMagnitude(in.a.tensor, in.b.tensor);
  if (s.bit_mismatches == s.elements || usual == 0) return std::optional<Finding>();
  const Places p = CountWild(in.a.tensor, in.b.tensor, usual);
  Finding f;
  f.at = d.item.name;
  f.evidence.push_back("where: " + d.pattern.text);
  f.evidence.push_back(
      Format("the other %lld elements are equal bit for bit", static_cast<long long>(s.elements - s.bit_mismatches)));
  if (std::max(p.wild_a, p.wild_b) * 2 > p.differ) {
    f.verdict = "UNINITIALISED";
    f.sentence = Format("%lld fixed places hold values without any bound: they were never written",
                        static_cast<long long>(p.differ));
    f.evidence.push_back(
        Format("NaN, infinite, or off the usual magnitude %.4g by a factor of a thousand and more: %lld places in A, "
               "%lld in B",
               usual, static_cast<long long>(p.wild_a), static_cast<long long>(p.wild_b)));
    f.refute = "a repeat of one side that gives the same values at these places";
    return std::optional<Finding>(std::move(f));
  }
  // One row, nearly all of it, by far more than rounding.
  if (d.pattern.rows >= 4 && d.pattern.rows_touched == 1 && s.bit_mismatches * 10 >= d.pattern.cols * 8 &&
      s.max_abs > 0.05 * usual && s.max_rel > 0.05) {
    f.verdict = "OVERWRITE";
    f.sentence = Format("row %lld of %lld was overwritten: it holds other ordinary values, every other row is equal",
                        static_cast<long long>(d.pattern.first_row), static_cast<long long>(d.pattern.rows));
    if (d.pattern.first_row == d.pattern.rows - 1)
      f.evidence.push_back("it is the last row: a slot number of -1 (padding) lands there");
    f.evidence.push_back(
        Format("the difference, up to %.6g, is no rounding: the usual magnitude is %.4g", s.max_abs, usual));
    f.refute = "a recording of the writes (slot mapping) in which nobody but the owner writes this row";
    return std::optional<Finding>(std::move(f));
  }
  return std::optional<Finding>();
}

}  // namespace samebits
