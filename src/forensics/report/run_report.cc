#include "forensics/report/run_report.h"

#include <algorithm>

#include "base/strings.h"

namespace samebits {

CellStatus CellStatusOf(DiffVerdict verdict) {
  switch (verdict) {
    case DiffVerdict::kIdentical:
    case DiffVerdict::kWithinTolerance:
      return CellStatus::kSame;
    case DiffVerdict::kSameSet:
    case DiffVerdict::kOrderOnly:
      return CellStatus::kOrderOnly;
    case DiffVerdict::kOnlyLeft:
    case DiffVerdict::kOnlyRight:
    case DiffVerdict::kSkipped:
      return CellStatus::kNotCompared;
    default:
      return CellStatus::kDiffers;
  }
}

RunReportBuilder::RunReportBuilder(std::string title, std::string left, std::string right) {
  run_.title = std::move(title), run_.left = std::move(left), run_.right = std::move(right);
  table_ = {"Tensors that are not identical",
            {"tensor", "dtype", "shape", "result", "differ", "max |a-b|", "max ulp", "relative L2", "where"},
            {}};
}

void RunReportBuilder::Add(const TensorDiff& d, TensorSource& a, TensorSource& b, int64_t window) {
  if (std::find(run_.sites.begin(), run_.sites.end(), d.item.site) == run_.sites.end())
    run_.sites.push_back(d.item.site);
  const CompareStats& s = d.comparison.stats;
  ReportCell cell;
  cell.step = d.item.step, cell.layer = d.item.layer, cell.site = d.item.site, cell.rank = d.item.rank;
  cell.status = CellStatusOf(d.verdict);
  cell.note = DiffLine(d);
  run_.cells.push_back(std::move(cell));
  if (d.verdict == DiffVerdict::kIdentical || d.verdict == DiffVerdict::kSkipped) return;
  const bool numbers = !d.by_digest && s.elements > 0, is_float = IsFloat(d.item.dtype);
  table_.rows.push_back({d.item.name, DTypeName(d.item.dtype), ShapeText(d.item.shape), DiffVerdictName(d.verdict),
                         numbers       ? std::to_string(s.bit_mismatches)
                         : d.by_digest ? Format("%lld rows", static_cast<long long>(d.rows_differ))
                                       : "",
                         numbers && is_float ? Format("%.6g", s.max_abs) : "",
                         numbers && is_float ? std::to_string(s.max_ulp) : "",
                         numbers && is_float ? Format("%.3g", s.RelativeL2()) : "", d.pattern.text});
  if (numbers && is_float) run_.growth.push_back({d.item.layer, d.item.site, s.RelativeL2(), s.max_abs});
  if (!first_.empty()) return;
  first_ = d.item.name;
  OriginDetail origin;
  origin.title = d.item.name;
  origin.sentence = DiffLine(d);
  origin.window = DiffWindow(d, a, b, std::max<int64_t>(window, 4));
  origin.has_histogram = numbers && is_float;
  std::copy(s.ulp_histogram, s.ulp_histogram + kUlpBuckets, origin.ulp_histogram);
  run_.origins.push_back(std::move(origin));
}

void RunReportBuilder::SetOrigins(const Located& located, const Explanation& explanation, TensorSource& a,
                                  TensorSource& b) {
  run_.origins.clear();
  for (const Finding& f : explanation.findings) {
    if (f.at.empty() || f.verdict == "IDENTICAL") continue;
    OriginDetail o;
    o.title = f.at, o.verdict = f.verdict, o.sentence = f.sentence, o.evidence = f.evidence, o.refute = f.refute;
    for (const TensorDiff& d : located.differing) {
      if (d.item.name != f.at) continue;
      o.window = DiffWindow(d, a, b, 4);
      o.has_histogram = !d.by_digest && IsFloat(d.item.dtype) && d.comparison.stats.elements > 0;
      std::copy(d.comparison.stats.ulp_histogram, d.comparison.stats.ulp_histogram + kUlpBuckets, o.ulp_histogram);
      break;
    }
    run_.origins.push_back(std::move(o));
  }
  if (run_.origins.empty()) return;
  const OriginDetail& first = run_.origins.front();
  headline_ = "The runs part at " + first.title + ": " + first.sentence + ".";
  if (run_.origins.size() > 1) headline_ += Format(" %zu more places are explained below.", run_.origins.size() - 1);
}

RunComparison RunReportBuilder::Finish(const DiffSums& s, const PolicyTable& policies, int exit_code) {
  run_.exit_code = exit_code;
  const auto n = [](int64_t x) { return static_cast<long long>(x); };
  if (exit_code == 0) {
    run_.verdict = Format("The two runs are the same: all %lld tensors agree under the policy.", n(s.compared));
  } else if (exit_code == 1) {
    run_.verdict = Format("The two runs differ: %lld of %lld tensors are not the same%s.", n(s.failed),
                          n(s.read() - s.skipped), first_.empty() ? "" : (", the first is " + first_).c_str());
  } else {
    run_.verdict = "The two runs could not be compared.";
  }
  if (!headline_.empty() && exit_code != 0) run_.verdict = headline_;
  run_.facts.push_back("policy: " + policies.standard().Text());
  if (!table_.rows.empty()) run_.tables.push_back(std::move(table_));
  for (const std::string& line : Split(DiffClosing(s, policies), '\n'))
    if (!line.empty()) run_.closing.push_back(line);
  return std::move(run_);
}

}  // namespace samebits
