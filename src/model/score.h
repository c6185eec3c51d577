// Runs given token ids through a model and collects logits and any sites, under the names of tests/golden/README.md.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/model.h"

namespace samebits {

struct ScorePrompt {
  std::string name;
  std::vector<int32_t> ids;
};

struct ScoreOptions {
  std::set<Site> sites = {Site::kLogits, Site::kHidden,  Site::kFinal,
                          Site::kTopk,   Site::kExperts, Site::kExpertWeights};
  int64_t chunk = 512;      // tokens per step; no bit depends on it
  int64_t last_logits = 0;  // logits of the last N positions only; 0: all
  const BreakRules* broken = nullptr;
};

// "logits,hidden": names of sites.inc; the error lists the names.
Result<std::set<Site>> SitesFromNames(const std::string& comma_separated);
// {"prompts": [{"name", "ids"}]}, {"ids": [...]}, or a plain list of ids. `path` is named in errors.
Result<std::vector<ScorePrompt>> ParseScorePrompts(const std::string& json, const std::string& path);

// Tensors of one prompt, names without the prompt's: "logits", "hidden.3". Numbers are F32 (bf16 widened), index lists
// I32; scores past a row's own length are -inf. `logit_positions` and `positions` say which rows are there.
using ScoredTensors = std::vector<std::pair<std::string, Tensor>>;
Result<ScoredTensors> Score(Model* model, const ScorePrompt& prompt, const ScoreOptions& options);

}  // namespace samebits
