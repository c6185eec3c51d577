#include "engine/engine.h"

#include <algorithm>

#include "base/strings.h"
#include "engine/engine_state.h"

namespace samebits {
namespace {

class KvMemory : public PageMemory {
 public:
  explicit KvMemory(KvCache* cache) : cache_(cache) {}
  void CopyPage(int32_t from, int32_t to) override { cache_->CopyPage(from, to); }
  void PoisonPage(int32_t page) override { cache_->PoisonPage(page); }

 private:
  KvCache* cache_;
};

int64_t PagesFor(int64_t tokens, int32_t page_size) { return (tokens + page_size - 1) / page_size; }

}  // namespace

const char* FinishReasonName(FinishReason reason) {
  switch (reason) {
    case FinishReason::kNone:
      return "none";
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kError:
      return "error";
  }
  return "?";
}

Result<std::unique_ptr<Engine>> Engine::Create(Model* model, const EngineOptions& options) {
  const ScheduleOptions& o = options.schedule;
  const struct {
    const char* name;
    int64_t value, least, most;
  } kLimits[] = {{"page size", o.page_size, 1, 1 << 20},
                 {"pages", o.pages, 0, int64_t{1} << 31},
                 {"sequences at once", o.max_sequences, 1, 1 << 20},
                 {"rows of one step", o.max_batch_tokens, 1, 1 << 24},
                 {"prefill chunk", o.chunk, 1, 1 << 24},
                 {"steps between preemptions", o.preempt_every, 0, 1 << 30},
                 {"draft tokens", o.draft_tokens, 0, 1024}};
  for (const auto& l : kLimits)
    if (l.value < l.least || l.value > l.most)
      return Error(Format("%s is %lld; it must be between %lld and %lld", l.name, static_cast<long long>(l.value),
                          static_cast<long long>(l.least), static_cast<long long>(l.most)));
  int64_t pages = o.pages;
  if (pages == 0) {
    constexpr int64_t kContexts = 8, kBytes = int64_t{1} << 30;
    const int64_t context = PagesFor(model->config().max_positions, o.page_size);
    const auto page_bytes = std::max<int64_t>(1, KvCache(model->config(), model->profile(), 1, o.page_size).bytes());
    pages = std::max(context, std::min(kContexts * context, kBytes / page_bytes));
  }
  return std::unique_ptr<Engine>(new Engine(model, options, pages));
}

Engine::Engine(Model* model, const EngineOptions& options, int64_t pages)
    : model_(model),
      options_(options),
      vocab_limit_(static_cast<int32_t>(model->config().vocab_size)),
      cache_(model->config(), model->profile(), pages, options.schedule.page_size),
      memory_(std::make_unique<KvMemory>(&cache_)),
      pool_(std::make_unique<PagePool>(pages, memory_.get(), options.schedule.page_shuffle_seed,
                                       options.schedule.poison_pages)),
      order_state_(options.schedule.batch_order_seed) {
  if (options_.tokenizer != nullptr) vocab_limit_ = std::min(vocab_limit_, options_.tokenizer->vocab_size());
  if (options_.schedule.drafts == nullptr) options_.schedule.drafts = &ngrams_;
  if (options_.schedule.prefix_cache)
    prefixes_ = std::make_unique<PrefixCache>(pool_.get(), options_.schedule.page_size,
                                              ContractId(model->profile(), options_.broken));
}

Engine::~Engine() = default;

Result<int64_t> Engine::Submit(Request request) {
  const int64_t context = model_->config().max_positions, vocab = model_->config().vocab_size;
  const int64_t length = static_cast<int64_t>(request.prompt.size());
  if (length == 0) return Error("the prompt has no tokens");
  for (int64_t i = 0; i < length; ++i)
    if (request.prompt[i] < 0 || request.prompt[i] >= vocab)
      return Error(Format("token %lld of the prompt is %d; the model's ids are 0 to %lld", static_cast<long long>(i),
                          request.prompt[i], static_cast<long long>(vocab - 1)));
  if (request.max_tokens < 0) return Error(Format("max_tokens is %d; it must not be negative", request.max_tokens));
  if (length > context || (length == context && request.max_tokens > 0))
    return Error(Format("the prompt has %lld tokens, the model's context is %lld; shorten it",
                        static_cast<long long>(length), static_cast<long long>(context)));
  const int64_t capacity = pool_->pages() * options_.schedule.page_size;
  if (length > capacity)
    return Error(Format("the prompt has %lld tokens, the KV cache holds %lld; give it more pages",
                        static_cast<long long>(length), static_cast<long long>(capacity)));
  SB_RETURN_IF_ERROR(CheckSample(request.sampling));
  if (request.top_logprobs > vocab)
    return Error(
        Format("%d logprobs are wanted, the vocabulary has %lld", request.top_logprobs, static_cast<long long>(vocab)));
  if (!request.stop.empty() && options_.tokenizer == nullptr) return Error("stop strings need a tokenizer");
  const int64_t id = next_id_++;
  sequences_.push_back(std::make_unique<Sequence>(id, std::move(request), pool_.get(), options_.schedule.page_size));
  return id;
}

void Engine::Cancel(int64_t id) {
  for (const auto& s : sequences_)
    if (s->id == id) Finish(s.get(), FinishReason::kCancelled);
  RemoveFinished();
}

const std::vector<int32_t>* Engine::PageTable(int64_t id) const {
  for (const auto& s : sequences_)
    if (s->id == id) return &s->pages.table();
  return nullptr;
}

int64_t Engine::ComputedTokens(int64_t id) const {
  for (const auto& s : sequences_)
    if (s->id == id) return s->computed;
  return 0;
}

std::vector<Delta> Engine::TakeDeltas() {
  std::vector<Delta> out;
  for (auto& [id, delta] : news_) out.push_back(std::move(delta));
  news_.clear();
  return out;
}

void Engine::Step() {
  if (sequences_.empty()) return;
  ForcePreemption();
  std::vector<Slice> slices = Schedule();
  if (slices.empty()) {
    // Nobody is left to take pages from: the oldest sequence alone is larger than the cache.
    Sequence* s = sequences_.front().get();
    Finish(s, FinishReason::kError,
           Error(Format("the request needs more than the %lld pages of %d tokens that the KV cache has; give it more",
                        static_cast<long long>(pool_->pages()), options_.schedule.page_size)));
    RemoveFinished();
    return;
  }
  ShuffleOrder(&slices);
  Count(slices);
  if (Forward(slices).ok()) {
    for (const Slice& slice : slices) Absorb(slice);
  } else {
    // One request's fault must not be another's: each by itself, which gives the same bits.
    for (Slice& slice : slices) RunAlone(std::move(slice));
  }
  RemoveFinished();
}

void Engine::RunAlone(Slice slice) {
  ++stats_.retried_alone;
  Status status = Forward(std::span(&slice, 1));
  if (!status.ok() && !slice.drafts.empty()) {  // a guess may have been the fault
    if (options_.on_rows_void) options_.on_rows_void(slice.s->owner, static_cast<int32_t>(slice.s->length()));
    slice.count -= static_cast<int64_t>(slice.drafts.size());
    slice.drafts.clear();
    status = Forward(std::span(&slice, 1));
  }
  if (status.ok())
    Absorb(slice);
  else
    Finish(slice.s, FinishReason::kError, status);
}

Status Engine::Forward(std::span<Slice> slices) {
  std::vector<int32_t> tokens, logit_rows;
  std::vector<RowOwner> owners;
  std::vector<const int32_t*> tables;
  for (Slice& slice : slices) {
    const Sequence& s = *slice.s;
    for (int64_t i = 0; i < slice.count; ++i) {
      // The last token and every draft behind it give a token each.
      const bool draws = slice.begin + i + 1 >= s.length();
      if (slice.begin + i + 1 == s.length()) slice.first_logits = static_cast<int64_t>(logit_rows.size());
      if (draws || s.request.prompt_logits) logit_rows.push_back(static_cast<int32_t>(tokens.size()));
      tokens.push_back(slice.Token(i));
      owners.push_back({s.owner, static_cast<int32_t>(slice.begin + i)});
      tables.push_back(s.pages.table().data());
    }
  }
  ForwardBatch batch;
  batch.tokens = tokens;
  batch.owners = owners;
  batch.page_tables = tables;
  batch.logit_rows = logit_rows;
  batch.probe = options_.probe;
  batch.broken = options_.broken;
  batch.shuffle_index_lists = options_.schedule.shuffle_index_lists;
  batch.index_lists_shuffled = &stats_.index_lists_shuffled;
  return model_->Forward(batch, cache_, &logits_);
}

void Engine::Absorb(const Slice& slice) {
  Sequence* s = slice.s;
  const int64_t vocab = model_->config().vocab_size;
  const int64_t drafts = static_cast<int64_t>(slice.drafts.size());
  s->computed = slice.begin + slice.count - drafts;
  if (s->request.max_tokens == 0 && slice.draws()) {
    Finish(s, FinishReason::kLength);
  } else if (slice.draws()) {
    int64_t accepted = 0;
    for (int64_t i = 0; i <= drafts; ++i) {
      const bool goes_on = Draw(s, logits_.data() + (slice.first_logits + i) * vocab);
      if (i == drafts || s->finished || s->tokens.back() != slice.drafts[i]) break;
      ++accepted;  // its KV row was computed from the token that was drawn
      ++s->computed;
      if (!goes_on) break;
    }
    if (drafts > 0) {
      ++stats_.verify_steps;
      stats_.drafts_accepted += accepted;
      stats_.drafts_rejected += drafts - accepted;
      if (accepted < drafts && options_.on_rows_void)
        options_.on_rows_void(s->owner, static_cast<int32_t>(s->computed));
    }
  }
  s->ever_computed = std::max(s->ever_computed, s->computed);
  if (s->finished) return;
  s->pages.Truncate(s->computed);
  const int64_t full = s->computed / options_.schedule.page_size;
  if (prefixes_ && full > s->published) {
    prefixes_->Insert(std::span(s->tokens).first(full * options_.schedule.page_size), s->request.salt,
                      s->pages.table());
    s->published = full;
  }
}

bool Engine::Draw(Sequence* s, const float* logits) {
  const int64_t vocab = model_->config().vocab_size;
  const SampleResult drawn = Sample(logits, vocab, vocab_limit_, s->request.sampling, s->length(), 0);
  if (drawn.nan || drawn.token < 0) {
    Finish(s, FinishReason::kError,
           Error(Format("request %lld: the logits at position %lld hold %s; no token can be drawn",
                        static_cast<long long>(s->id), static_cast<long long>(s->length() - 1),
                        drawn.nan ? "NaN" : "no number")));
    return false;
  }
  OutputToken out;
  out.id = drawn.token;
  if (s->request.top_logprobs >= 0) {
    out.logprob = Sub(logits[drawn.token], LogSumExp(logits, vocab));
    out.top_logprobs = TopLogprobs(logits, vocab, vocab_limit_, s->request.top_logprobs);
  }
  s->tokens.push_back(drawn.token);
  ++stats_.output_tokens;
  Delta& news = news_[s->id];
  news.id = s->id;
  news.tokens.push_back(std::move(out));

  const bool eos = s->request.stop_at_eos && drawn.token == model_->config().eos_id;
  if (options_.tokenizer != nullptr && !eos && !options_.tokenizer->IsSpecial(drawn.token))
    news.text += s->stops.Push(s->utf8.Push(options_.tokenizer->TokenBytes(drawn.token)));
  if (eos || s->stops.stopped())
    Finish(s, FinishReason::kStop);
  else if (s->produced() >= s->request.max_tokens || s->length() >= model_->config().max_positions)
    Finish(s, FinishReason::kLength);
  return !s->finished;
}

void Engine::Finish(Sequence* s, FinishReason reason, Status error) {
  if (s->finished) return;
  s->finished = true;
  Delta& news = news_[s->id];
  news.id = s->id;
  news.text += s->stops.Push(s->utf8.Flush());
  // The last bytes of a cut-off character may have completed a stop.
  if (s->stops.stopped() && reason == FinishReason::kLength) reason = FinishReason::kStop;
  news.text += s->stops.Flush();
  news.finish = reason;
  news.error = std::move(error);
}

void Engine::RemoveFinished() {
  std::erase_if(sequences_, [](const auto& s) { return s->finished; });
}

std::vector<Completion> RunAll(Engine* engine, const std::vector<Request>& requests) {
  std::vector<Completion> done(requests.size());
  std::map<int64_t, size_t> places;
  for (size_t i = 0; i < requests.size(); ++i) {
    Result<int64_t> id = engine->Submit(requests[i]);
    if (id.ok()) {
      places[*id] = i;
    } else {
      done[i].finish = FinishReason::kError;
      done[i].error = id.status();
    }
  }
  while (engine->HasWork()) {
    engine->Step();
    for (Delta& d : engine->TakeDeltas()) {
      const auto place = places.find(d.id);
      if (place == places.end()) continue;
      Completion& c = done[place->second];
      std::move(d.tokens.begin(), d.tokens.end(), std::back_inserter(c.tokens));
      c.text += d.text;
      c.finish = d.finish;
      c.error = d.error;
    }
  }
  return done;
}

}  // namespace samebits
