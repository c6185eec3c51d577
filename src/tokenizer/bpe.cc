#include "tokenizer/bpe.h"

#include <queue>

#include "base/strings.h"

namespace samebits {

// Below this a scan over the few pairs beats the heap.
static constexpr size_t kShortPiece = 24;

Bpe::Bpe(std::vector<int32_t> byte_ids) : byte_ids_(std::move(byte_ids)) {
  SB_CHECK(byte_ids_.size() == 256, "one id per byte");
}

bool Bpe::AddMerge(int32_t left, int32_t right, int32_t merged) {
  return merges_.try_emplace(Key(left, right), Merge{static_cast<int32_t>(merges_.size()), merged}).second;
}

Status Bpe::Encode(std::string_view piece, std::vector<int32_t>* ids) const {
  const size_t begin = ids->size();
  for (const char c : piece) {
    const int32_t id = byte_ids_[static_cast<uint8_t>(c)];
    if (id < 0)
      return Error(Format("the vocabulary has no token for byte 0x%02X; the text cannot be written in it",
                          static_cast<uint8_t>(c)));
    ids->push_back(id);
  }
  if (piece.size() <= kShortPiece)
    EncodeShort(ids, begin);
  else
    EncodeLong(ids, begin);
  return Ok();
}

void Bpe::EncodeShort(std::vector<int32_t>* ids, size_t begin) const {
  for (;;) {
    const Merge* best = nullptr;
    size_t at = 0;
    for (size_t i = begin; i + 1 < ids->size(); ++i) {
      const Merge* m = Find((*ids)[i], (*ids)[i + 1]);
      if (m != nullptr && (best == nullptr || m->rank < best->rank)) {
        best = m;
        at = i;
      }
    }
    if (best == nullptr) return;
    (*ids)[at] = best->merged;
    ids->erase(ids->begin() + at + 1);
  }
}

void Bpe::EncodeLong(std::vector<int32_t>* ids, size_t begin) const {
  // Symbols as a linked list over their first bytes; a merged-away symbol has id -1.
  struct Symbol {
    int32_t id, previous, next;
  };
  const int32_t n = static_cast<int32_t>(ids->size() - begin);
  std::vector<Symbol> symbols(n);
  for (int32_t i = 0; i < n; ++i) symbols[i] = {(*ids)[begin + i], i - 1, i + 1 < n ? i + 1 : -1};

  struct Candidate {
    int32_t rank, at, left, right, merged;
    bool operator<(const Candidate& o) const { return rank != o.rank ? rank > o.rank : at > o.at; }
  };
  std::vector<Candidate> room;
  room.reserve(n);
  std::priority_queue<Candidate> queue(std::less<Candidate>(), std::move(room));
  const auto consider = [&](int32_t at) {
    if (at < 0 || symbols[at].next < 0) return;
    const int32_t left = symbols[at].id, right = symbols[symbols[at].next].id;
    if (const Merge* m = Find(left, right)) queue.push({m->rank, at, left, right, m->merged});
  };
  for (int32_t i = 0; i < n; ++i) consider(i);
  while (!queue.empty()) {
    const Candidate c = queue.top();
    queue.pop();
    Symbol& s = symbols[c.at];
    // Stale if either side has changed since.
    if (s.id != c.left || s.next < 0 || symbols[s.next].id != c.right) continue;
    Symbol& gone = symbols[s.next];
    s.id = c.merged;
    s.next = gone.next;
    gone.id = -1;
    if (s.next >= 0) symbols[s.next].previous = c.at;
    consider(s.previous);
    consider(c.at);
  }
  ids->resize(begin);
  for (int32_t i = 0; i >= 0; i = symbols[i].next) ids->push_back(symbols[i].id);
}

}  // namespace samebits
