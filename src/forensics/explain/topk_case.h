// A top-k list with the scores it was chosen from, as found in a recording or in a file of another engine.
#pragma once

#include <string>
#include <vector>

#include "forensics/tensor_source.h"
#include "ops/topk/topk.h"

namespace samebits {

struct TopkCase {
  std::string scope;  // "layer 7", "" for a lone file
  int64_t step = 0;
  int layer = kNoLayer, rank = 0;
  size_t topk_index = 0;  // item in the source
  LoadedTensor topk;      // [rows, k] integers
  // data null: not there
  LoadedTensor logits, row_starts, row_lens;
  std::vector<int32_t> lens_of_record;  // ragged rows of a recording
};

Result<std::vector<TopkCase>> FindTopkCases(TensorSource& source);

// Views with int32 row bounds; owns what had to be converted.
struct TopkInputs {
  std::vector<float> scores;
  std::vector<int32_t> starts, lens;
  int64_t rows = 0, n = 0, k = 0;
  TopkArgs Args(View<int32_t> out) const;
};
// An error if logits are missing, not fp32 or bf16, or bounds leave the row.
Result<TopkInputs> InputsOf(const TopkCase& c);
// The stable selection, ids ascending per row, -1 at the tail.
Result<Tensor> ReferenceTopk(const TopkCase& c, const TopkRule& rule = {});

}  // namespace samebits
