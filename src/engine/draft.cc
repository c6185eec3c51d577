#include "engine/draft.h"

#include <algorithm>

namespace samebits {

std::vector<int32_t> NgramDraft::Propose(int64_t, std::span<const int32_t> tokens, int k) {
  const size_t n = tokens.size(), order = static_cast<size_t>(order_);
  if (n <= order) return {};
  const auto tail = tokens.last(order);
  for (size_t at = n - order; at-- > 0;) {
    if (!std::equal(tail.begin(), tail.end(), tokens.begin() + at)) continue;
    const auto after = tokens.subspan(at + order, std::min<size_t>(k, n - at - order));
    return {after.begin(), after.end()};
  }
  return {};
}

std::vector<int32_t> ReplayDraft::Propose(int64_t request, std::span<const int32_t> tokens, int k) {
  const auto it = whole_.find(request);
  if (it == whole_.end()) return {};
  std::vector<int32_t> draft;
  for (size_t at = tokens.size(); at < it->second.size() && static_cast<int>(draft.size()) < k; ++at) {
    const bool wrong = wrong_every_ > 0 && at % wrong_every_ == 0;
    draft.push_back(wrong ? (it->second[at] + 1) % vocab_ : it->second[at]);
  }
  return draft;
}

}  // namespace samebits
