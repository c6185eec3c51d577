// The field report's own checks of one layer's top-k file, in its words: [Basic Checks], [Shape Info], [Comparison
// Logic] A vs B, A vs ref, B vs ref; ref is the stable selection from the logits (TopkRef).
#pragma once

#include <string>

#include "forensics/tensor_source.h"

namespace samebits {

struct TopkCheck {
  std::string text;
  bool same = true;
};
// Both sides hold topk_result (or topk), and logits with row_starts and row_lens where rows are ragged.
Result<TopkCheck> CheckTopkFiles(TensorSource& left, TensorSource& right, int64_t window);

}  // namespace samebits
