#include "forensics/mismatch_pattern.h"

#include "base/strings.h"
#include "forensics/compare.h"

namespace samebits {
namespace {

constexpr size_t kMostRows = 32;

std::string Words(const MismatchPattern& p) {
  const auto n = [](int64_t x) { return static_cast<long long>(x); };
  if (p.rows_touched == 0) return "";
  std::string text;
  if (p.rows_touched == 1 && p.rows > 1) {
    text = Format("one row only, row %lld", n(p.first_row));
  } else if (p.rows_touched == p.last_row - p.first_row + 1 && p.rows_touched < p.rows) {
    text = Format("rows %lld to %lld%s", n(p.first_row), n(p.last_row), p.last_row == p.rows - 1 ? ", the tail" : "");
  } else {
    text = Format("%lld of %lld rows", n(p.rows_touched), n(p.rows));
  }
  if (p.full_rows == p.rows_touched && p.cols > 1)
    text += ", every element of them";
  else if (p.cols_touched == 1 && p.cols > 1)
    text += Format(", column %lld only", n(p.first_col));
  else if (p.last_col - p.first_col + 1 < p.cols)
    text += Format(", columns %lld to %lld", n(p.first_col), n(p.last_col));
  else
    text += Format(", %lld of %lld columns", n(p.cols_touched), n(p.cols));
  if (p.partition > 0)
    text += Format("; of %lld equal column parts, part %lld has none", n(p.partition), n(p.clean_partition));
  return text;
}

}  // namespace

MismatchPattern FindPattern(const TensorRef& a, const TensorRef& b) {
  MismatchPattern p;
  p.cols = a.shape.empty() ? 1 : a.shape.back();
  p.rows = p.cols > 0 ? a.elements() / p.cols : 0;
  std::vector<int64_t> by_col(static_cast<size_t>(p.cols), 0);
  int64_t total = 0;
  for (int64_t r = 0; r < p.rows; ++r) {
    int64_t in_row = 0;
    for (int64_t c = 0; c < p.cols; ++c) {
      if (ElementBits(a, r * p.cols + c) == ElementBits(b, r * p.cols + c)) continue;
      ++in_row;
      ++by_col[static_cast<size_t>(c)];
    }
    if (in_row == 0) continue;
    total += in_row;
    if (p.first_row < 0) p.first_row = r;
    p.last_row = r;
    ++p.rows_touched;
    p.full_rows += in_row == p.cols;
    if (p.row_list.size() < kMostRows) p.row_list.push_back(r);
  }
  for (int64_t c = 0; c < p.cols; ++c) {
    if (by_col[static_cast<size_t>(c)] == 0) continue;
    if (p.first_col < 0) p.first_col = c;
    p.last_col = c;
    ++p.cols_touched;
  }
  // A part without any mismatch is telling only when chance would have put many there.
  for (const int64_t parts : {2, 4, 8, 16}) {
    if (p.cols % parts != 0 || p.cols / parts < 8 || total < 20 * parts || p.partition > 0) continue;
    int64_t clean = 0, which = -1;
    for (int64_t k = 0; k < parts; ++k) {
      bool any = false;
      for (int64_t c = k * (p.cols / parts); c < (k + 1) * (p.cols / parts) && !any; ++c)
        any = by_col[static_cast<size_t>(c)] > 0;
      if (!any) ++clean, which = k;
    }
    if (clean == 1) p.partition = parts, p.clean_partition = which;
  }
  p.text = Words(p);
  return p;
}

}  // namespace samebits
