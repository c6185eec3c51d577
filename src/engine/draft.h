// Where drafts for speculative steps come from. A draft is only a guess: what is accepted are exactly the tokens that
// would have been drawn without it.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace samebits {

class DraftSource {
 public:
  virtual ~DraftSource() = default;
  // At most k tokens that may follow `tokens` (prompt and output so far) of the request.
  virtual std::vector<int32_t> Propose(int64_t request, std::span<const int32_t> tokens, int k) = 0;
};

// What followed the last earlier occurrence of the last `order` tokens.
class NgramDraft : public DraftSource {
 public:
  explicit NgramDraft(int order = 2) : order_(order) {}
  std::vector<int32_t> Propose(int64_t request, std::span<const int32_t> tokens, int k) override;

 private:
  int order_;
};

// Replays a known continuation; every wrong_every-th token (0: none) is replaced by another, so that steps with
// rejected drafts can be forced.
class ReplayDraft : public DraftSource {
 public:
  ReplayDraft(std::map<int64_t, std::vector<int32_t>> whole, int wrong_every, int32_t vocab)
      : whole_(std::move(whole)), wrong_every_(wrong_every), vocab_(vocab) {}
  std::vector<int32_t> Propose(int64_t request, std::span<const int32_t> tokens, int k) override;

 private:
  std::map<int64_t, std::vector<int32_t>> whole_;  // request -> prompt and output
  int wrong_every_;
  int32_t vocab_;
};

}  // namespace samebits
