// Index lists compared as sets, row by row. Negative entries are padding and belong to no set; an id listed twice counts
// twice.
#pragma once

#include <vector>

#include "tensor/tensor.h"

namespace samebits {

struct IndexRowDiff {
  int64_t row = 0;
  bool same_set = false;                // the same ids in another order
  std::vector<int64_t> only_a, only_b;  // at most kMostIds of each
  int64_t only_a_count = 0, only_b_count = 0;
};
inline constexpr size_t kMostIds = 16;

struct IndexSetDiff {
  int64_t rows = 0, rows_equal = 0, rows_other_order = 0, rows_other_set = 0;
  bool same_sets() const { return rows_other_set == 0; }
  std::vector<IndexRowDiff> other_set;  // the first rows whose sets differ
};

// Both integer tensors of one shape; the last dimension is the list.
IndexSetDiff CompareIndexSets(const TensorRef& a, const TensorRef& b, size_t most_rows = 64);

// The multiset of one row as sorted ids, padding dropped.
std::vector<int64_t> SortedIds(const TensorRef& t, int64_t row);
int64_t IntegerAt(const TensorRef& t, int64_t i);

}  // namespace samebits
