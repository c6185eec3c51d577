// The start-up self-test: every op of the contract run once on fixed inputs through the backend that will serve, its
// output hashed and compared with the constant in the repository. An op whose hash differs, or that has no constant, is
// refused: the program that asked for the contract stops with a sentence that names it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ops/op.h"

namespace samebits {

struct ManifestRow {
  std::string op;         // "gemm_bf16"
  std::string kernel;     // "cpu/avx512": the backend and instruction set that ran
  std::string plan;       // the order of additions, or the rule, in a few words
  std::string test;       // ctest name that proves it against the reference in bytes
  uint64_t expected = 0;  // hash in the repository, from the reference
  uint64_t hash = 0;      // hash of what this machine computed just now
  std::string error;      // the op's own Status, if it failed
  bool proven() const { return error.empty() && hash == expected; }
};

// Runs every check (about 20 ms on one core). Never fails as a whole: look at proven().
std::vector<ManifestRow> RunSelfTest(const CpuContext& context);

// Ok if every row is proven and the float state is right on every worker; else the first fault, by op.
Status RequireContract(const CpuContext& context);

// Version of the arithmetic itself: the contract id and a hash of start_up_hashes.h and golden_digests.h. An upgrade that
// moves a bit moves the stamp.
std::string NumericsStamp(const std::string& contract_id);

}  // namespace samebits
