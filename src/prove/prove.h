// The main job: one request run under every condition that must not matter, compared by digests at every site of every
// layer, of the KV rows in the cache, of tokens and of logprobs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "model/model.h"
#include "prove/site_digests.h"
#include "tokenizer/tokenizer.h"

namespace samebits {

struct ProveOptions {
  std::vector<int32_t> prompt;
  bool default_request = false;  // the one golden_digests.h is about
  int32_t max_tokens = 24;
  SampleParams sampling;
  BreakRules broken;                        // all off: the proof; one on: its negative control
  std::vector<std::string> only;            // condition names; empty: all
  std::string self;                         // path of this program, for the condition that starts another process
  std::vector<std::string> self_arguments;  // arguments that make it print ProofDigest (see verb_prove.cc)
  bool progress = true;
};

enum class Verdict { kSame, kDiffers, kNotRun };

struct GrowthPoint {
  int layer;
  double max_abs, rms;  // of the residual stream after the layer, over all compared positions
};

struct ConditionResult {
  int number = 0;          // as in product documentation and README
  std::string name, text;  // "chunks", "how prefill is cut into chunks"
  Verdict verdict = Verdict::kNotRun;
  std::string evidence;  // what happened: "prompt cut into 9 chunks"; or why it was not run
  int64_t rows_compared = 0, kv_rows_compared = 0;
  // On a difference:
  std::string first_site;  // "layer 0 topk"
  int32_t first_position = 0;
  size_t same_inputs = SIZE_MAX;  // positions before the first token drawn differently: only these are compared
  std::string cause;              // one sentence
  SiteComparison sites;
  std::vector<GrowthPoint> growth;
  std::vector<std::pair<int32_t, std::pair<float, float>>>
      window;  // index, baseline, other: where the first row differs
};

struct ProveReport {
  std::string model, contract, stamp, isa;
  int threads = 0, layers = 0;
  int64_t prompt_tokens = 0, output_tokens = 0, sites = 0;
  std::string broken;       // the rule switched off, or empty
  std::string root_digest;  // of the baseline: what another replica compares
  std::string golden;       // "same", "differs: …", or why there is nothing to compare with
  bool golden_differs = false;
  std::string kernels;  // which kernels the baseline ran, held against the manifest
  bool kernels_differ = false;
  std::vector<ConditionResult> conditions;
  bool AnyDiffers() const;
};

// A condition that could not be made to happen is an error, never "same". `context` is restored on return.
Result<ProveReport> Prove(Model* model, const std::string& model_name, const CpuContext& context,
                          const ProveOptions& options, const std::function<void(const ConditionResult&)>& on_result);

// Digest of one plain run: every site row, KV row, token and logprob.
Result<std::string> ProofDigest(Model* model, const ProveOptions& options);

// Names of the conditions and of the rules that can be broken, for --help and errors.
std::vector<std::string> ConditionNames();
std::vector<std::string> BreakNames();
Result<BreakRules> BreakFromName(const std::string& name);

}  // namespace samebits
