// The meaning of sampling: integers and a sort, the same on every machine.

#include <algorithm>
#include <bit>
#include <cstring>

#include "ops/sample/sample.h"
#include "ops/topk/topk.h"

namespace samebits {
namespace {

unsigned __int128 Ceil(unsigned __int128 value, int right_shift) {
  if (right_shift >= 128) return value != 0;
  const unsigned __int128 whole = value >> right_shift;
  return whole + ((whole << right_shift) != value);
}

}  // namespace

uint64_t TopPThreshold(uint64_t total, double top_p) {
  // p = mantissa * 2^-shift exactly (0 < p <= 1, so shift > 0).
  const uint64_t bits = std::bit_cast<uint64_t>(top_p);
  const int exponent = static_cast<int>(bits >> 52);
  const uint64_t mantissa = (bits & ((uint64_t{1} << 52) - 1)) | (exponent ? uint64_t{1} << 52 : 0);
  const int shift = 1075 - (exponent ? exponent : 1);
  return static_cast<uint64_t>(Ceil(static_cast<unsigned __int128>(total) * mantissa, shift));
}

size_t TopPKeep(const uint64_t* weights, size_t count, double top_p) {
  uint64_t total = 0, prefix = 0;
  for (size_t i = 0; i < count; ++i) total += weights[i];
  const uint64_t threshold = TopPThreshold(total, top_p);
  for (size_t i = 0; i < count; ++i) {
    prefix += weights[i];
    if (prefix >= threshold) return i + 1;
  }
  return count;
}

SampleResult SampleRef(const float* logits, int64_t vocab, int64_t vocab_limit, const SampleParams& params,
                       uint64_t random) {
  const int64_t n = std::min(vocab, vocab_limit);
  SampleResult result;
  uint64_t best = 0;
  for (int64_t i = 0; i < n; ++i) {
    result.nan |= IsNan(logits[i]);
    const uint64_t key = TopkKey(logits[i], static_cast<int32_t>(i));
    if (!IsNan(logits[i]) && key > best) best = key;
  }
  if (best == 0) return result;
  const float max_logit = logits[TopkKeyIndex(best)];
  result.token = TopkKeyIndex(best);
  if (params.temperature == 0.0f || max_logit - max_logit != 0.0f) return result;  // greedy, or an infinite maximum

  const float inverse = SampleInverseTemperature(params.temperature);
  std::vector<uint64_t> keys;
  for (int64_t i = 0; i < n; ++i)
    if (!IsNan(logits[i]) && SampleWeight(logits[i], max_logit, inverse) > 0)
      keys.push_back(TopkKey(logits[i], static_cast<int32_t>(i)));
  std::sort(keys.begin(), keys.end(), std::greater<>());
  if (params.top_k > 0 && keys.size() > static_cast<size_t>(params.top_k))
    keys.resize(static_cast<size_t>(params.top_k));
  std::vector<uint64_t> weights;
  for (const uint64_t key : keys) weights.push_back(SampleWeight(logits[TopkKeyIndex(key)], max_logit, inverse));
  const size_t kept = params.top_p < 1.0 ? TopPKeep(weights.data(), weights.size(), params.top_p) : weights.size();
  uint64_t total = 0;
  for (size_t i = 0; i < kept; ++i) total += weights[i];
  const uint64_t r = SamplePlace(random, total);
  uint64_t prefix = 0;
  for (size_t i = 0; i < kept; ++i) {
    prefix += weights[i];
    if (prefix > r) {
      result.token = TopkKeyIndex(keys[i]);
      break;
    }
  }
  return result;
}

float LogSumExp(const float* x, int64_t n) {
  float most = FromBits(0xff800000u);
  for (int64_t i = 0; i < n; ++i) most = x[i] > most ? x[i] : most;
  if (most == FromBits(0xff800000u)) return most;
  return Add(most, Log(RowPlanSum(n, [&](float acc, int64_t i) { return Add(acc, Exp(Sub(x[i], most))); })));
}

std::vector<TokenLogprob> TopLogprobs(const float* logits, int64_t vocab, int64_t vocab_limit, int n) {
  std::vector<uint64_t> keys;
  for (int64_t i = 0; i < std::min(vocab, vocab_limit); ++i)
    if (!IsNan(logits[i])) keys.push_back(TopkKey(logits[i], static_cast<int32_t>(i)));
  const size_t count = std::min(keys.size(), static_cast<size_t>(n));
  std::partial_sort(keys.begin(), keys.begin() + static_cast<int64_t>(count), keys.end(), std::greater<>());
  const float lse = LogSumExp(logits, vocab);
  std::vector<TokenLogprob> best;
  for (size_t i = 0; i < count; ++i) {
    const int32_t id = TopkKeyIndex(keys[i]);
    best.push_back({id, Sub(logits[id], lse)});
  }
  return best;
}

}  // namespace samebits
