// Where in a tensor the mismatches lie: whole rows, whole columns, tiles, a tail; in words.
#pragma once

#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace samebits {

struct MismatchPattern {
  int64_t rows = 0, cols = 0;  // the tensor as a matrix: last dimension = columns
  int64_t rows_touched = 0, cols_touched = 0;
  int64_t first_row = -1, last_row = -1, first_col = -1, last_col = -1;
  int64_t full_rows = 0;                        // every element of the row differs
  int64_t partition = 0, clean_partition = -1;  // columns cut in `partition` equal parts, one of them without mismatch
  std::vector<int64_t> row_list;                // the first rows that differ
  std::string text;
};
MismatchPattern FindPattern(const TensorRef& a, const TensorRef& b);

}  // namespace samebits
