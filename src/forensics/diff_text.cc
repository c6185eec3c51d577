#include "forensics/diff_text.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/strings.h"

namespace samebits {
namespace {

using nlohmann::ordered_json;

bool HasData(const TensorDiff& d) { return !d.by_digest && d.comparison.stats.elements > 0; }

std::string Ids(const std::vector<int64_t>& ids, int64_t count) {
  std::string text;
  for (const int64_t id : ids) text += (text.empty() ? "" : " ") + std::to_string(id);
  if (count > static_cast<int64_t>(ids.size()))
    text += Format(" and %lld more", static_cast<long long>(count) - static_cast<long long>(ids.size()));
  return text.empty() ? "none" : text;
}

int MantissaBits(DType dtype) {
  switch (dtype) {
    case DType::kBF16:
      return 7;
    case DType::kF16:
      return 10;
    case DType::kF64:
      return 52;
    case DType::kF32:
      return 23;
    default:
      return 0;
  }
}

// The largest distance of the first differing pair, for the quantum.
ordered_json StatsJson(const CompareStats& s, bool is_float) {
  ordered_json j = {{"n", s.elements},
                    {"n_diff", s.bit_mismatches},
                    {"n_value_diff", s.value_mismatches},
                    {"first", s.first_bit},
                    {"last", s.last_bit}};
  if (!is_float) {
    j["max_abs"] = s.max_abs_integer;
    return j;
  }
  const auto number = [](double x) {
    return std::isfinite(x) ? ordered_json(x) : ordered_json(x > 0 ? "inf" : x < 0 ? "-inf" : "nan");
  };
  j["max_abs"] = number(s.max_abs), j["max_abs_at"] = s.max_abs_at, j["mean_abs"] = number(s.MeanAbs());
  j["max_rel"] = number(s.max_rel), j["rel_l2"] = number(s.RelativeL2()), j["cos"] = number(s.Cosine());
  j["number_pairs"] = s.number_pairs;
  j["max_ulp"] = s.max_ulp;
  j["ulp_hist"] = std::vector<int64_t>(s.ulp_histogram, s.ulp_histogram + kUlpBuckets);
  j["nan_a"] = s.a.nan, j["nan_b"] = s.b.nan, j["nan_one_side"] = s.nan_one_side;
  j["inf_a"] = s.a.inf, j["inf_b"] = s.b.inf, j["neg0_a"] = s.a.neg_zero, j["neg0_b"] = s.b.neg_zero;
  j["a_larger"] = s.a_larger, j["b_larger"] = s.b_larger;
  return j;
}

}  // namespace

std::string QuantumText(DType dtype, double distance) {
  const int bits = MantissaBits(dtype);
  if (bits == 0 || !(distance > 0) || !std::isfinite(distance)) return "";
  return Format("%.2f x 2^-%d", std::ldexp(distance, bits), bits);
}

std::string HistogramText(const int64_t* histogram) {
  int64_t most = 0;
  int last = -1;
  for (int k = 0; k < kUlpBuckets; ++k)
    if (histogram[k] > 0) most = std::max(most, histogram[k]), last = k;
  std::string text;
  for (int k = 0; k <= last; ++k) {
    const long long low = 1LL << k, high = (1LL << (k + 1)) - 1;
    const std::string range = k == 0                 ? "1"
                              : k == kUlpBuckets - 1 ? Format("%lld+", low)
                                                     : Format("%lld-%lld", low, high);
    const int bar = static_cast<int>((histogram[k] * 40 + most - 1) / most);
    text += Format("      ulp %13s %10lld %s\n", range.c_str(), static_cast<long long>(histogram[k]),
                   std::string(static_cast<size_t>(bar), '#').c_str());
  }
  return text;
}

std::string DiffLine(const TensorDiff& d) {
  const std::string what = Format("%s %s", DTypeName(d.item.dtype), ShapeText(d.item.shape).c_str());
  std::string line = Format("%-8s %s  %s  ",
                            d.verdict == DiffVerdict::kSkipped ? "skip"
                            : d.passed                         ? "same"
                                                               : "DIFFERS",
                            d.item.name.c_str(), what.c_str());
  const CompareStats& s = d.comparison.stats;
  const auto n = [](int64_t x) { return static_cast<long long>(x); };
  switch (d.verdict) {
    case DiffVerdict::kOnlyLeft:
      return line + "only on the left";
    case DiffVerdict::kOnlyRight:
      return line + "only on the right";
    case DiffVerdict::kSkipped:
      return line + "skipped";
    case DiffVerdict::kShapeMismatch:
      return line + "shape_mismatch: the right side is " + ShapeText(d.right.shape);
    case DiffVerdict::kDtypeMismatch:
      return line + "dtype_mismatch: the right side is " + DTypeName(d.right.dtype) +
             (d.comparison.exact_values_equal ? ", every value is exactly the same" : "");
    default:
      break;
  }
  line += DiffVerdictName(d.verdict);
  if (d.verdict == DiffVerdict::kIdentical) return line + (d.by_digest ? " (digest)" : "");
  if (d.by_digest) return line + Format(" (digest): %lld of %lld rows differ", n(d.rows_differ), n(d.rows_compared));
  line += Format(": %lld of %lld differ, first %s", n(s.bit_mismatches), n(s.elements),
                 CoordinateText(d.item.shape, s.first_bit).c_str());
  if (IsFloat(d.item.dtype))
    line += Format(", max |a-b| %.9g (%llu ulp)", s.max_abs, static_cast<unsigned long long>(s.max_ulp));
  return line;
}

std::vector<WindowRow> DiffWindow(const TensorDiff& d, TensorSource& left, TensorSource& right, int64_t n) {
  std::vector<WindowRow> rows;
  const CompareStats& s = d.comparison.stats;
  if (!HasData(d) || s.first_bit < 0) return rows;
  const Result<LoadedTensor> a = left.Load(d.left_index), b = right.Load(d.right_index);
  if (!a.ok() || !b.ok()) return rows;
  const TensorRef &x = (*a).tensor, &y = (*b).tensor;
  for (int64_t i = std::max<int64_t>(0, s.first_bit - n); i <= std::min(s.elements - 1, s.first_bit + n); ++i) {
    WindowRow row;
    row.index = CoordinateText(x.shape, i);
    row.a = ElementText(x, i), row.b = ElementText(y, i);
    row.differs = ElementBits(x, i) != ElementBits(y, i);
    if (IsInteger(x.dtype)) {
      const int64_t p = IntegerAt(x, i), q = IntegerAt(y, i);
      row.distance = std::to_string(p > q ? static_cast<uint64_t>(p) - static_cast<uint64_t>(q)
                                          : static_cast<uint64_t>(q) - static_cast<uint64_t>(p));
    } else {
      row.distance = Format("%.9g", std::fabs(ElementAsDouble(x, i) - ElementAsDouble(y, i)));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string WindowText(const std::vector<WindowRow>& window) {
  std::string text;
  if (!window.empty()) text = Format("      %-16s %18s %18s %14s\n", "idx", "a", "b", "abs_diff");
  for (const WindowRow& r : window)
    text += Format("    %s %-16s %18s %18s %14s\n", r.differs ? ">" : " ", r.index.c_str(), r.a.c_str(), r.b.c_str(),
                   r.distance.c_str());
  return text;
}

std::string DiffDetails(const TensorDiff& d, TensorSource& left, TensorSource& right, int64_t window, bool histogram) {
  std::string text;
  const auto n = [](int64_t x) { return static_cast<long long>(x); };
  if (d.by_digest) {
    for (size_t i = 0; i < d.differing_rows.size() && i < 16; ++i) {
      const int64_t r = d.differing_rows[i];
      const RowOwner owner = d.item.record->OwnerOf(r);
      text += Format(
          "    row %lld differs%s\n", n(r),
          owner.request < 0 ? "" : Format(" (request %lld, position %d)", n(owner.request), owner.position).c_str());
    }
    if (d.rows_differ > 16) text += Format("    and %lld more rows\n", n(d.rows_differ - 16));
    return text;
  }
  const CompareStats& s = d.comparison.stats;
  if (s.elements == 0 || s.first_bit < 0) return text;
  text += Format("    first %s (flat %lld), last %s (flat %lld); %lld bit and %lld value mismatches\n",
                 CoordinateText(d.item.shape, s.first_bit).c_str(), n(s.first_bit),
                 CoordinateText(d.item.shape, s.last_bit).c_str(), n(s.last_bit), n(s.bit_mismatches),
                 n(s.value_mismatches));
  if (!d.pattern.text.empty()) text += "    where: " + d.pattern.text + "\n";
  if (IsFloat(d.item.dtype)) {
    text += Format("    max |a-b| %.9g at %s, mean %.6g, max relative %.6g (to b), relative L2 %.6g, cosine %.12g\n",
                   s.max_abs, s.max_abs_at < 0 ? "-" : CoordinateText(d.item.shape, s.max_abs_at).c_str(), s.MeanAbs(),
                   s.max_rel, s.RelativeL2(), s.Cosine());
    const std::string quantum = QuantumText(d.item.dtype, s.max_abs);
    text += Format("    max ulp %llu%s; a larger %lld, b larger %lld\n", static_cast<unsigned long long>(s.max_ulp),
                   quantum.empty() ? "" : (", max |a-b| = " + quantum + " (steps at magnitude 1)").c_str(),
                   n(s.a_larger), n(s.b_larger));
    if (s.a.nan + s.b.nan + s.a.inf + s.b.inf + s.a.neg_zero + s.b.neg_zero > 0)
      text += Format("    NaN %lld | %lld (one side only %lld), Inf %lld | %lld, -0 %lld | %lld\n", n(s.a.nan),
                     n(s.b.nan), n(s.nan_one_side), n(s.a.inf), n(s.b.inf), n(s.a.neg_zero), n(s.b.neg_zero));
    if (d.policy.kind == PolicyKind::kTolerance) text += Format("    outside the tolerance: %lld\n", n(d.outside));
  }
  if (d.sets) {
    text += Format("    as sets: %lld rows equal, %lld in another order, %lld with other members\n",
                   n(d.sets->rows_equal), n(d.sets->rows_other_order), n(d.sets->rows_other_set));
    for (size_t i = 0; i < d.sets->other_set.size() && i < 8; ++i) {
      const IndexRowDiff& r = d.sets->other_set[i];
      text += Format("      row %lld: only in a: %s; only in b: %s\n", n(r.row), Ids(r.only_a, r.only_a_count).c_str(),
                     Ids(r.only_b, r.only_b_count).c_str());
    }
  }
  text += WindowText(DiffWindow(d, left, right, window));
  if (histogram && IsFloat(d.item.dtype)) text += HistogramText(s.ulp_histogram);
  return text;
}

std::string DiffClosing(const DiffSums& s, const PolicyTable& policies) {
  const auto n = [](int64_t x) { return static_cast<long long>(x); };
  std::string text = "policy   " + policies.standard().Text() + "\n";
  text += Format(
      "compared %lld: identical %lld, equal values %lld, within tolerance %lld, same set %lld, order only %lld, "
      "divergent %lld, shape mismatch %lld, dtype mismatch %lld\n",
      n(s.compared), n(s.identical), n(s.equal_values), n(s.within_tolerance), n(s.same_set), n(s.order_only),
      n(s.divergent), n(s.shape_mismatch), n(s.dtype_mismatch));
  text += Format("sums     compared %lld + only left %lld + only right %lld + skipped %lld = read %lld\n",
                 n(s.compared), n(s.only_left), n(s.only_right), n(s.skipped), n(s.read()));
  return text;
}

std::string DiffJson(const TensorDiff& d, TensorSource& left, TensorSource& right, int64_t window) {
  ordered_json j = {
      {"type", "tensor"}, {"name", d.item.name}, {"site", d.item.site}, {"step", d.item.step}, {"rank", d.item.rank}};
  if (d.item.layer != kNoLayer) j["layer"] = d.item.layer;
  j["dtype"] = DTypeName(d.item.dtype), j["shape"] = d.item.shape;
  if (d.verdict == DiffVerdict::kShapeMismatch) j["shape_b"] = d.right.shape;
  if (d.verdict == DiffVerdict::kDtypeMismatch)
    j["dtype_b"] = DTypeName(d.right.dtype), j["exact_values_equal"] = d.comparison.exact_values_equal;
  j["verdict"] = DiffVerdictName(d.verdict), j["passed"] = d.passed, j["policy"] = d.policy.Text();
  if (d.by_digest) {
    j["by_digest"] = true, j["rows_compared"] = d.rows_compared, j["rows_differ"] = d.rows_differ,
    j["rows"] = d.differing_rows;
  } else if (d.verdict < DiffVerdict::kShapeMismatch) {
    j["status"] = CompareStatusName(d.comparison.status);
    j["metrics"] = StatsJson(d.comparison.stats, IsFloat(d.item.dtype));
    if (!d.pattern.text.empty()) j["pattern"] = d.pattern.text;
    if (d.sets) {
      j["set"] = {{"equal", d.sets->same_sets()},
                  {"rows_equal", d.sets->rows_equal},
                  {"order_only", d.sets->rows_other_order},
                  {"other_members", d.sets->rows_other_set}};
      for (const IndexRowDiff& r : d.sets->other_set)
        j["set"]["rows"].push_back({{"row", r.row}, {"only_a", r.only_a}, {"only_b", r.only_b}});
    }
    for (const WindowRow& r : DiffWindow(d, left, right, window))
      j["window"].push_back({r.index, r.a, r.b, r.distance});
  }
  return j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string DiffSumsJson(const DiffSums& s, const PolicyTable& policies) {
  const ordered_json j = {{"type", "summary"},
                          {"policy", policies.standard().Text()},
                          {"read", s.read()},
                          {"compared", s.compared},
                          {"only_left", s.only_left},
                          {"only_right", s.only_right},
                          {"skipped", s.skipped},
                          {"identical", s.identical},
                          {"equal_values", s.equal_values},
                          {"within_tolerance", s.within_tolerance},
                          {"same_set", s.same_set},
                          {"order_only", s.order_only},
                          {"divergent", s.divergent},
                          {"shape_mismatch", s.shape_mismatch},
                          {"dtype_mismatch", s.dtype_mismatch},
                          {"failed", s.failed}};
  return j.dump();
}

}  // namespace samebits
