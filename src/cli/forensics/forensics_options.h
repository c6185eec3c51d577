// Options that the forensics verbs share.
#pragma once

#include <string>
#include <vector>

#include "forensics/run_diff.h"

namespace CLI {
class App;
}

namespace samebits {

struct ForensicsOptions {
  std::string left, right;
  std::string policy, filter, layers, steps, ranks;
  double rtol = -1, atol = -1;
  int64_t max_ulp = -1, window = 1, expect = 0;
  std::vector<std::string> rules;
  bool histogram = false, json = false, jsonl = false, quiet = false, verbose = false;
  std::string html;

  void AddPaths(CLI::App* app);
  void AddSelection(CLI::App* app);
  void AddPolicy(CLI::App* app);
  void AddOutput(CLI::App* app);
  // What the options ask for; errors name the flag.
  Result<DiffOptions> Diff() const;
};

// Writes `text` to stdout.
void Print(const std::string& text);

}  // namespace samebits
