// A loaded model and its forward pass. The forward pass is the only caller of PROBE.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/config.h"
#include "model/kv_cache.h"
#include "ops/op.h"
#include "trace/probe.h"

namespace samebits {

// Rules switched off on purpose (`prove --break`): each makes the forward pass do what other engines do. Test-only; a
// model with any rule broken reports the contract id "broken".
struct BreakRules {
  bool index_order = false;           // the top-k list reaches an online softmax unsorted, in selection order
  bool topk_tie = false;              // equal scores: an arbitrary choice per run, and an unsorted list; scores in bf16
  bool topk_set_sorted_late = false;  // like topk_tie, but the list is sorted afterwards: order right, set not
  bool router_bf16 = false;           // router logits stored in bf16
  bool double_rounding = false;       // fp32 accumulators pass through bf16 on their way to fp32 outputs
  bool split_by_batch = false;        // GEMM splits K by the number of rows in the batch
  bool chunk_blocks = false;          // attention key blocks begin at the chunk's first position
  bool threads = false;               // K is split by the number of threads
  uint64_t seed = 0;                  // differs from run to run: what "arbitrary" draws from
  bool any() const {
    return index_order || topk_tie || topk_set_sorted_late || router_bf16 || double_rounding || split_by_batch ||
           chunk_blocks || threads;
  }
};

struct LoadOptions {
  const Profile* profile = &kDeepseekProfile;
  bool dense = false;  // V3.2: ignore the indexer and attend to everything (for the recall table)
  bool show_progress = false;
};

// Rows of one step: any mix of prefill chunks, decode tokens and verification runs of any number of sequences. Rows of
// one sequence are consecutive and ascending by position; its earlier positions are already in the cache.
struct ForwardBatch {
  std::span<const int32_t> tokens;              // [rows]
  std::span<const RowOwner> owners;             // [rows]: request id and position
  std::span<const int32_t* const> page_tables;  // [rows]: the sequence's page table (pages cover its position)
  std::span<const int32_t> logit_rows;          // rows whose logits are wanted, ascending
  ProbeSink* probe = nullptr;
  const BreakRules* broken = nullptr;
  // Not 0: each top-k list reaches attention in a random order drawn from this (after the probe saw it ascending). No bit
  // may change; `index_lists_shuffled` counts the lists whose order really differed.
  uint64_t shuffle_index_lists = 0;
  int64_t* index_lists_shuffled = nullptr;
  // Set when Forward fails because of one request's token ids, positions or numbers; the others may go on without it.
  int64_t* failed_request = nullptr;
};

class Model {
 public:
  virtual ~Model() = default;
  // A checkpoint folder: config.json, safetensors shards (or one file). Weights are mapped, then packed layer by layer.
  // Errors name the file and tensor: missing shards or tensors, wrong dtype or shape, NaN in weights.
  static Result<std::unique_ptr<Model>> Load(const std::string& folder, const CpuContext& context,
                                             const LoadOptions& options = {});
  virtual const ModelConfig& config() const = 0;
  virtual const Profile& profile() const = 0;
  // Writes KV rows of every row, and logits [logit_rows, vocab] F32 into `logits` (resized). An error names request,
  // layer and site where a NaN or infinity appeared.
  virtual Status Forward(const ForwardBatch& batch, KvCache& cache, std::vector<float>* logits) = 0;
  // Uses other threads or another instruction set from now on; no bit changes.
  virtual void SetContext(const CpuContext& context) = 0;
  virtual uint64_t weight_bytes() const = 0;
};

// Id of the numeric contract in force: "portable-1" plus the profile's suffix.
std::string ContractId(const Profile& profile, const BreakRules* broken = nullptr);

}  // namespace samebits
