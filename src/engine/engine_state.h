// What the engine keeps of one request, and of one step. Private to the engine.
#pragma once

#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/stop_filter.h"
#include "tokenizer/unicode.h"

namespace samebits {

struct Engine::Sequence {
  Sequence(int64_t the_id, Request the_request, PagePool* pool, int32_t page_size)
      : id(the_id),
        owner(the_request.owner >= 0 ? the_request.owner : the_id),
        request(std::move(the_request)),
        tokens(request.prompt),
        pages(pool, page_size),
        stops(request.stop) {}

  int64_t length() const { return static_cast<int64_t>(tokens.size()); }
  int64_t produced() const { return length() - static_cast<int64_t>(request.prompt.size()); }
  // Only the last token is still to be computed.
  bool decoding() const { return computed + 1 == length() && produced() > 0; }

  int64_t id, owner;
  Request request;
  std::vector<int32_t> tokens;  // prompt and output
  int64_t computed = 0;         // positions whose KV rows are valid
  int64_t ever_computed = 0;    // the most that `computed` has been
  int64_t preempted_at = 0;     // `computed` at the last preemption
  int64_t published = 0;        // full pages offered to the prefix cache
  int64_t chunks = 0;           // prefill chunks so far
  SequencePages pages;
  Utf8Stream utf8;
  StopFilter stops;
  bool scheduled = false;  // in the step being put together
  bool finished = false;
};

// Consecutive rows of one sequence in one step: a prefill chunk, or its last token and drafts behind it.
struct Engine::Slice {
  Sequence* s = nullptr;
  int64_t begin = 0, count = 0;
  std::vector<int32_t> drafts;
  int64_t first_logits = -1;  // index into the step's logits rows of the row that draws; -1: none
  int32_t Token(int64_t i) const {
    const int64_t at = begin + i;
    return at < s->length() ? s->tokens[at] : drafts[at - s->length()];
  }
  bool draws() const { return begin + count >= s->length(); }
};

}  // namespace samebits
