// A matrix product found among recorded tensors, and what our GEMM reference says about it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "forensics/explain/explain.h"

namespace samebits {

struct GemmCase {
  Tensor x, w;  // [M, K], [N, K]; equal on both sides, of a dtype pair the reference takes
};
// x (x, input, hidden, a) and w (w, weight, b), equal on both sides, that fit the origin's shape.
std::optional<GemmCase> FindGemm(const ExplainInput& in);

// The product summed in `splits` equal pieces of K; partials rounded to bf16 before they are added if asked.
std::optional<Tensor> RunGemm(const GemmCase& c, DType out, int64_t splits, bool bf16_partials, bool bf16_accumulator);

// Sentences about the cuts of K that give each side's bits; empty when no product was found.
std::vector<std::string> GemmEvidence(const ExplainInput& in);

}  // namespace samebits
