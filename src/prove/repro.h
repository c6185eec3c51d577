// Minimal reproducers of the faults this project exists for, at the field report's shapes: a naive algorithm beside
// ours, one line a run. The naive side is the op's reference with one rule changed, the same code that defines the
// contract.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ops/op.h"

namespace samebits {

// One run against run 0 of the same algorithm.
struct ReproLine {
  std::string algorithm;  // "naive", "samebits"
  int run = 0;
  bool same = true;
  double max_diff = 0;  // negative: the run compares choices, not values
  // A second stage, where the report has one (the value up-projection): name empty otherwise.
  std::string stage2;
  bool same2 = true;
  double max_diff2 = 0;
  std::string note;  // "differing_rows=37", ...
};

struct ReproOptions {
  int runs = 4;  // runs after run 0
  uint64_t seed = 1;
};

struct Repro {
  const char* name;
  const char* text;  // one line: what changes from run to run, and what the naive side does with it
  std::function<Status(const CpuContext&, const ReproOptions&, const std::function<void(const ReproLine&)>&)> run;
};

const std::vector<Repro>& Repros();

}  // namespace samebits
