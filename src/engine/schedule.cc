// Which rows of which requests go into the next step, and whose pages go when they run out. Nothing here may reach a
// bit of any output: see tests in engine_test.cc and tests/invariance.
#include <algorithm>

#include "engine/engine_state.h"
#include "engine/shuffle.h"

namespace samebits {

std::vector<Engine::Slice> Engine::Schedule() {
  std::vector<Slice> slices;
  int64_t budget = options_.schedule.max_batch_tokens;
  const size_t active = std::min<size_t>(sequences_.size(), options_.schedule.max_sequences);
  // Who is decoding goes first: one row each, and they wait for their next token.
  for (const bool decoding : {true, false}) {
    for (size_t i = 0; i < active && budget > 0; ++i) {
      Sequence* s = sequences_[i].get();
      if (s->scheduled || s->decoding() != decoding) continue;
      if (s->computed == 0) BeginFromPrefix(s);
      Slice slice;
      slice.s = s;
      slice.begin = s->computed;
      slice.count = SliceLength(s, budget, &slice.drafts);
      if (!Reserve(s, slice.begin + slice.count)) continue;  // waits for pages
      s->scheduled = true;
      budget -= slice.count;
      slices.push_back(std::move(slice));
    }
  }
  for (const Slice& slice : slices) slice.s->scheduled = false;
  return slices;
}

int64_t Engine::SliceLength(Sequence* s, int64_t budget, std::vector<int32_t>* drafts) {
  const ScheduleOptions& o = options_.schedule;
  const int64_t left = s->length() - s->computed;
  if (!s->decoding()) return std::min({left, int64_t{o.chunk}, budget});
  // Every draft may be accepted and one more token drawn behind it; positions end with the context.
  const int64_t room = std::min({int64_t{o.draft_tokens}, budget - 1, s->request.max_tokens - s->produced() - 1,
                                 model_->config().max_positions - s->length() - 1});
  if (room <= 0) return 1;
  *drafts = o.drafts->Propose(s->owner, s->tokens, static_cast<int>(room));
  if (static_cast<int64_t>(drafts->size()) > room) drafts->resize(room);
  const auto bad =
      std::find_if(drafts->begin(), drafts->end(), [&](int32_t id) { return id < 0 || id >= vocab_limit_; });
  drafts->erase(bad, drafts->end());
  return 1 + static_cast<int64_t>(drafts->size());
}

void Engine::BeginFromPrefix(Sequence* s) {
  if (!prefixes_) return;
  s->pages.Clear();
  // The last token is always computed: its logits are wanted. With prompt_logits every row is.
  const int64_t most = s->request.prompt_logits ? 0 : s->length() - 1;
  const std::vector<int32_t> pages = prefixes_->Lookup(s->tokens, s->request.salt, most);
  s->pages.Adopt(pages);
  s->computed = static_cast<int64_t>(pages.size()) * options_.schedule.page_size;
  s->published = static_cast<int64_t>(pages.size());
  stats_.prefix_hit_tokens += s->computed;
}

bool Engine::Reserve(Sequence* s, int64_t to) {
  const size_t had = s->pages.table().size();
  while (!s->pages.MakeWritable(s->computed, to)) {
    if (prefixes_ && prefixes_->EvictOne()) {
      ++stats_.prefix_evictions;
      continue;
    }
    // Only who came later gives way, so that the oldest always gets on.
    Sequence* victim = nullptr;
    for (auto it = sequences_.rbegin(); it != sequences_.rend() && it->get() != s; ++it)
      if (!(*it)->scheduled && !(*it)->pages.table().empty()) {
        victim = it->get();
        break;
      }
    if (victim == nullptr) return false;
    Preempt(victim);
  }
  const std::vector<int32_t>& table = s->pages.table();
  for (size_t i = std::max<size_t>(had, 1); i < table.size(); ++i)
    stats_.pages_out_of_order += table[i] != table[i - 1] + 1;
  return true;
}

void Engine::Preempt(Sequence* s) {
  ++stats_.preemptions;
  s->pages.Clear();
  s->preempted_at = s->computed;
  s->computed = 0;
  s->published = 0;
}

void Engine::ForcePreemption() {
  const int32_t every = options_.schedule.preempt_every;
  if (every == 0 || stats_.steps == 0 || stats_.steps % every != 0) return;
  // In turn; and only who got further than at the last preemption, or nothing would ever end.
  for (size_t i = 0; i < sequences_.size(); ++i) {
    Sequence* s = sequences_[(next_victim_ + i) % sequences_.size()].get();
    if (s->computed <= s->preempted_at) continue;
    Preempt(s);
    next_victim_ += i + 1;
    return;
  }
}

void Engine::ShuffleOrder(std::vector<Slice>* slices) {
  if (options_.schedule.batch_order_seed == 0) return;
  for (size_t i = slices->size(); i > 1; --i) std::swap((*slices)[i - 1], (*slices)[NextRandom(&order_state_) % i]);
  stats_.orders_shuffled +=
      !std::is_sorted(slices->begin(), slices->end(), [](const Slice& a, const Slice& b) { return a.s->id < b.s->id; });
}

void Engine::Count(const std::vector<Slice>& slices) {
  bool decode = false, prefill = false;
  ++stats_.steps;
  stats_.shared_steps += slices.size() > 1;
  for (const Slice& slice : slices) {
    Sequence* s = slice.s;
    stats_.rows += slice.count;
    const int64_t known = std::min(slice.begin + slice.count, s->ever_computed);
    stats_.tokens_recomputed += std::max<int64_t>(known - slice.begin, 0);
    if (s->decoding()) {
      decode = true;
      continue;
    }
    prefill = true;
    ++stats_.prefill_chunks;
    stats_.prompt_tokens += slice.count;
    // Cut: this chunk does not reach the end, and it is the first that does not.
    stats_.prompts_cut += !slice.draws() && s->chunks == 0;
    ++s->chunks;
  }
  stats_.mixed_steps += decode && prefill;
}

}  // namespace samebits
