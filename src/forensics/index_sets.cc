#include "forensics/index_sets.h"

#include <algorithm>

#include "forensics/compare.h"

namespace samebits {

int64_t IntegerAt(const TensorRef& t, int64_t i) {
  const uint64_t u = ElementBits(t, i);
  switch (t.dtype) {
    case DType::kI8:
      return static_cast<int8_t>(u);
    case DType::kI16:
      return static_cast<int16_t>(u);
    case DType::kI32:
      return static_cast<int32_t>(u);
    default:
      return static_cast<int64_t>(u);
  }
}

std::vector<int64_t> SortedIds(const TensorRef& t, int64_t row) {
  const int64_t width = t.shape.empty() ? 1 : t.shape.back();
  std::vector<int64_t> ids;
  for (int64_t i = row * width; i < (row + 1) * width; ++i)
    if (const int64_t id = IntegerAt(t, i); id >= 0) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

IndexSetDiff CompareIndexSets(const TensorRef& a, const TensorRef& b, size_t most_rows) {
  IndexSetDiff out;
  const int64_t width = a.shape.empty() ? 1 : a.shape.back();
  out.rows = width > 0 ? a.elements() / width : 0;
  for (int64_t row = 0; row < out.rows; ++row) {
    bool equal = true;
    for (int64_t i = row * width; i < (row + 1) * width && equal; ++i) equal = IntegerAt(a, i) == IntegerAt(b, i);
    if (equal) {
      ++out.rows_equal;
      continue;
    }
    const std::vector<int64_t> x = SortedIds(a, row), y = SortedIds(b, row);
    if (x == y) {
      ++out.rows_other_order;
      continue;
    }
    ++out.rows_other_set;
    if (out.other_set.size() >= most_rows) continue;
    IndexRowDiff diff;
    diff.row = row;
    std::set_difference(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(diff.only_a));
    std::set_difference(y.begin(), y.end(), x.begin(), x.end(), std::back_inserter(diff.only_b));
    diff.only_a_count = static_cast<int64_t>(diff.only_a.size());
    diff.only_b_count = static_cast<int64_t>(diff.only_b.size());
    diff.only_a.resize(std::min(diff.only_a.size(), kMostIds));
    diff.only_b.resize(std::min(diff.only_b.size(), kMostIds));
    out.other_set.push_back(std::move(diff));
  }
  return out;
}

}  // namespace samebits
