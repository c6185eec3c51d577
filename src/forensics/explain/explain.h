// Says why two runs differ: a verdict, the evidence, and the check that would refute it. Each hypothesis stands in its
// own file and proves itself where it can, by running our reference with one rule changed and looking for the other
// side's bits.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "forensics/locate.h"

namespace samebits {

struct Finding {
  std::string verdict;   // "TOPK_TIE"
  std::string at;        // the tensor or place
  std::string sentence;  // in words
  std::vector<std::string> evidence;
  std::string refute;
};

// A tensor of the same scope (step, layer, rank, file) that both sides hold.
struct Companion {
  SourceItem item;
  LoadedTensor a, b;
  bool same = false;
};

struct ExplainInput {
  TensorSource& left;
  TensorSource& right;
  const Located& located;
  const Origin& origin;
  LoadedTensor a, b;  // the origin's data; null when only digests were recorded
  std::vector<Companion> companions;
  const Companion* Find(std::initializer_list<const char*> sites) const;
};

using Hypothesis = Result<std::optional<Finding>> (*)(const ExplainInput& input);
// One per file of explain/; nullopt: the evidence does not show it.
Result<std::optional<Finding>> TryNotComparable(const ExplainInput& input);
Result<std::optional<Finding>> TryTopk(const ExplainInput& input);
Result<std::optional<Finding>> TryMissingContribution(const ExplainInput& input);
Result<std::optional<Finding>> TryUnwritten(const ExplainInput& input);
Result<std::optional<Finding>> TryDowngrade(const ExplainInput& input);
Result<std::optional<Finding>> TryCastOrder(const ExplainInput& input);
Result<std::optional<Finding>> TryPartialPrecision(const ExplainInput& input);
Result<std::optional<Finding>> TryReductionOrder(const ExplainInput& input);

struct Explanation {
  std::vector<Finding> findings;  // in causal order; at least one
  int exit_code = 1;              // 0 the same, 1 differ, 2 not comparable
};
Result<Explanation> Explain(TensorSource& left, TensorSource& right, const Located& located);
std::string FindingText(const Finding& finding);

}  // namespace samebits
