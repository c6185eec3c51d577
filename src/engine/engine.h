// Many requests through one model. Every scheduling choice is in ScheduleOptions, and none of them can reach a bit of
// any output: tokens, logprobs and KV rows of a request depend on the request alone. EngineStats says which of the
// conditions really happened.
//
//   auto engine = Engine::Create(model, context, options);
//   int64_t id = *(*engine)->Submit(request);
//   while ((*engine)->HasWork()) {
//     (*engine)->Step();
//     for (Delta& d : (*engine)->TakeDeltas()) ...
//   }
//
// Not thread-safe: one thread calls it; the model's thread pool does the work.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/draft.h"
#include "engine/pages.h"
#include "engine/prefix_cache.h"
#include "model/model.h"
#include "ops/sample/sample.h"
#include "tokenizer/tokenizer.h"

namespace samebits {

struct Request {
  std::vector<int32_t> prompt;
  SampleParams sampling;
  int32_t max_tokens = 256;       // 0: compute the prompt only
  bool stop_at_eos = true;        // the model's eos_id
  std::vector<std::string> stop;  // texts; need a tokenizer
  int32_t top_logprobs = -1;      // per output token: -1 none, else its own and the n best
  bool prompt_logits = false;     // compute (and probe) the logits of every row, not just of drawn ones
  std::string salt;               // prefixes are shared only between requests of one salt
  int64_t owner = -1;             // RowOwner::request in probes and draft sources; -1: the id Submit returns
};

enum class FinishReason { kNone, kStop, kLength, kCancelled, kError };
const char* FinishReasonName(FinishReason reason);  // "stop", "length", ...

struct OutputToken {
  int32_t id = 0;
  float logprob = 0;                       // if asked for
  std::vector<TokenLogprob> top_logprobs;  // best first
};

// News of one request.
struct Delta {
  int64_t id = 0;
  std::vector<OutputToken> tokens;
  std::string text;  // valid UTF-8, cut at stop strings; empty without a tokenizer
  FinishReason finish = FinishReason::kNone;
  Status error;  // with kError
};

struct ScheduleOptions {
  int32_t page_size = 64;
  int64_t pages = 0;                // 0: enough for eight full contexts, but no more than 1 GB beyond the first
  int32_t max_sequences = 64;       // computed at once
  int32_t max_batch_tokens = 2048;  // rows of one step
  int32_t chunk = 1024;             // rows of one prefill chunk, at most
  bool prefix_cache = true;
  uint64_t page_shuffle_seed = 0;    // not 0: pages in random order
  bool poison_pages = false;         // free pages are filled with NaN
  int32_t preempt_every = 0;         // n > 0: every n steps one sequence loses its pages and is computed again
  uint64_t batch_order_seed = 0;     // not 0: sequences stand in the batch in random order
  int32_t draft_tokens = 0;          // k > 0: verification steps of k + 1 tokens
  DraftSource* drafts = nullptr;     // null: n-grams
  uint64_t shuffle_index_lists = 0;  // passed to the model
};

struct EngineOptions {
  ScheduleOptions schedule;
  const Tokenizer* tokenizer = nullptr;  // null: ids only; ids past its size are never drawn
  ProbeSink* probe = nullptr;
  const BreakRules* broken = nullptr;
  // Rows of rejected drafts were probed: what was seen of this owner from this position on is void.
  std::function<void(int64_t owner, int32_t first_position)> on_rows_void;
};

// What really happened.
struct EngineStats {
  int64_t steps = 0, rows = 0, prompt_tokens = 0, output_tokens = 0;
  int64_t prefill_chunks = 0, prompts_cut = 0;  // prompts_cut: prefills that took more than one chunk
  int64_t shared_steps = 0;                     // steps with rows of two or more requests
  int64_t mixed_steps = 0;                      // steps with prefill and decode rows
  int64_t orders_shuffled = 0;                  // steps whose sequences were not in arrival order
  int64_t prefix_hit_tokens = 0, prefix_evictions = 0;
  int64_t preemptions = 0, tokens_recomputed = 0;
  int64_t pages_out_of_order = 0;  // pages given out that do not follow the sequence's page before
  int64_t verify_steps = 0, drafts_accepted = 0, drafts_rejected = 0;
  int64_t index_lists_shuffled = 0;
  int64_t retried_alone = 0;  // requests of a failed batch computed by themselves
};

class Engine {
 public:
  // model outlives the engine. Errors: sizes that cannot work, named.
  static Result<std::unique_ptr<Engine>> Create(Model* model, const EngineOptions& options);
  ~Engine();

  // Errors at once: an empty or too long prompt, an id out of range, sampling parameters out of range.
  Result<int64_t> Submit(Request request);
  // Gives a Delta with kCancelled if the request is still alive.
  void Cancel(int64_t id);
  bool HasWork() const { return !sequences_.empty(); }
  int64_t active() const { return static_cast<int64_t>(sequences_.size()); }
  // One forward pass. What goes wrong goes wrong for a request and is in its Delta.
  void Step();
  // News since the last call, in order of request id.
  std::vector<Delta> TakeDeltas();

  const EngineStats& stats() const { return stats_; }
  KvCache& cache() { return cache_; }
  int64_t free_pages() const { return pool_->free_pages(); }
  // A request's page table, for reading its KV rows; null if it is not being computed.
  const std::vector<int32_t>* PageTable(int64_t id) const;
  // Positions of the request whose KV rows are valid.
  int64_t ComputedTokens(int64_t id) const;

 private:
  struct Sequence;
  struct Slice;
  Engine(Model* model, const EngineOptions& options, int64_t pages);
  // What the next step computes.
  std::vector<Slice> Schedule();
  void ForcePreemption();
  int64_t SliceLength(Sequence* s, int64_t budget, std::vector<int32_t>* drafts);
  void BeginFromPrefix(Sequence* s);
  bool Reserve(Sequence* s, int64_t to);
  void Preempt(Sequence* s);
  void ShuffleOrder(std::vector<Slice>* slices);
  void Count(const std::vector<Slice>& slices);
  // One forward pass over the slices; their logits go to logits_.
  Status Forward(std::span<Slice> slices);
  void RunAlone(Slice slice);
  // Takes a computed slice's results.
  void Absorb(const Slice& slice);
  // Draws the next token from a row of logits. False if that ended the request.
  bool Draw(Sequence* s, const float* logits);
  void Finish(Sequence* s, FinishReason reason, Status error = Ok());
  void RemoveFinished();

  Model* model_;
  EngineOptions options_;
  int32_t vocab_limit_;
  KvCache cache_;
  std::unique_ptr<PageMemory> memory_;
  std::unique_ptr<PagePool> pool_;
  std::unique_ptr<PrefixCache> prefixes_;
  NgramDraft ngrams_;
  std::vector<std::unique_ptr<Sequence>> sequences_;  // by arrival
  std::map<int64_t, Delta> news_;
  std::vector<float> logits_;
  EngineStats stats_;
  int64_t next_id_ = 0;
  size_t next_victim_ = 0;
  uint64_t order_state_;
};

struct Completion {
  std::vector<OutputToken> tokens;
  std::string text;
  FinishReason finish = FinishReason::kNone;
  Status error;
};
// Runs the requests to their ends, in one batch; completions in the order given.
std::vector<Completion> RunAll(Engine* engine, const std::vector<Request>& requests);

}  // namespace samebits
