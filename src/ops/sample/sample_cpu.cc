#include <algorithm>
#include <functional>

#include "ops/sample/sample.h"
#include "ops/topk/topk.h"

namespace samebits {
namespace {

// Keys best first, ordered only as far as somebody looks: the draw nearly always ends among the first few of 129280.
class BestFirst {
 public:
  explicit BestFirst(std::vector<uint64_t> keys) : keys_(std::move(keys)) {}
  size_t size() const { return keys_.size(); }
  uint64_t At(size_t i) {
    while (i >= ordered_) {
      const auto begin = keys_.begin() + static_cast<int64_t>(ordered_);
      ordered_ = std::min(keys_.size(), ordered_ + block_);
      const auto end = keys_.begin() + static_cast<int64_t>(ordered_);
      if (end != keys_.end()) std::nth_element(begin, end, keys_.end(), std::greater<>());
      std::sort(begin, end, std::greater<>());
      block_ *= 8;
    }
    return keys_[i];
  }

 private:
  std::vector<uint64_t> keys_;
  size_t ordered_ = 0, block_ = 256;
};

}  // namespace

SampleResult SampleWith(const float* logits, int64_t vocab, int64_t vocab_limit, const SampleParams& params,
                        uint64_t random) {
  const int64_t n = std::min(vocab, vocab_limit);
  SampleResult result;
  uint64_t best = 0;
  for (int64_t i = 0; i < n; ++i) {
    const bool nan = IsNan(logits[i]);
    result.nan |= nan;
    if (!nan) best = std::max(best, TopkKey(logits[i], static_cast<int32_t>(i)));
  }
  if (best == 0) return result;
  const float max_logit = logits[TopkKeyIndex(best)];
  result.token = TopkKeyIndex(best);
  if (params.temperature == 0.0f || max_logit - max_logit != 0.0f) return result;  // greedy, or an infinite maximum

  const float inverse = SampleInverseTemperature(params.temperature);
  auto weight = [&](uint64_t key) { return SampleWeight(logits[TopkKeyIndex(key)], max_logit, inverse); };
  std::vector<uint64_t> keys;
  uint64_t total = 0;
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t w = SampleWeight(logits[i], max_logit, inverse);  // 0 for NaN
    if (w > 0) keys.push_back(TopkKey(logits[i], static_cast<int32_t>(i)));
    total += w;
  }
  if (params.top_k > 0 && keys.size() > static_cast<size_t>(params.top_k)) {
    std::nth_element(keys.begin(), keys.begin() + params.top_k, keys.end(), std::greater<>());
    keys.resize(static_cast<size_t>(params.top_k));
    total = 0;
    for (const uint64_t key : keys) total += weight(key);
  }
  BestFirst ordered(std::move(keys));
  if (params.top_p < 1.0) {
    const uint64_t threshold = TopPThreshold(total, params.top_p);
    total = 0;
    for (size_t i = 0; i < ordered.size() && total < threshold; ++i) total += weight(ordered.At(i));
  }
  const uint64_t r = SamplePlace(random, total);
  uint64_t prefix = 0;
  for (size_t i = 0; i < ordered.size(); ++i) {
    prefix += weight(ordered.At(i));
    if (prefix > r) {
      result.token = TopkKeyIndex(ordered.At(i));
      break;
    }
  }
  return result;
}

SampleResult Sample(const float* logits, int64_t vocab, int64_t vocab_limit, const SampleParams& params,
                    uint64_t position, uint64_t draw) {
  const Philox4 random = Philox4x32(params.seed, position, draw);
  return SampleWith(logits, vocab, vocab_limit, params, static_cast<uint64_t>(random.v[1]) << 32 | random.v[0]);
}

}  // namespace samebits
