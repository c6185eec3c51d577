// From logits to a token, and logprobs.
//
// Greedy (temperature 0): the first token in the top-k order. Otherwise:
//   t = (logit - max) * fp32(log2 e / temperature); w = floor(2^30 * 2^t) as uint64, through n = round(t), f = t - n
//   and Exp2Fraction; tokens in the top-k order (logit descending, id ascending); prefix sums are integers.
//   top-p keeps the shortest prefix whose sum S satisfies S >= p * total, compared exactly in integers; then
//   r = mulhi64(random, kept total) with random = Philox(seed, position, draw), and the first token whose prefix exceeds r
//   is drawn. No float is summed, so the draw cannot depend on order, threads or batch.
// NaN: a row with no number gives token -1, any NaN sets `nan`. Masked ids (id >= vocab_limit) never appear.
// Logprobs: log-softmax of the raw logits: x - (max + log(sum exp(x - max))), the sum by the row plan.
#pragma once

#include <cstdint>
#include <vector>

#include "numerics/mathfn.h"
#include "numerics/philox.h"
#include "numerics/sum.h"
#include "ops/op.h"

namespace samebits {

struct SampleParams {
  float temperature = 0.0f;  // 0: greedy; else > 0
  double top_p = 1.0;        // (0, 1]
  int32_t top_k = 0;         // 0: no limit
  uint64_t seed = 0;
};

struct SampleResult {
  int32_t token = -1;  // -1: the row holds no number
  bool nan = false;    // a NaN was among the logits
};

// logits [vocab]; ids >= vocab_limit are masked. position: of the token being drawn; draw: 0, 1, ... for several draws.
Status CheckSample(const SampleParams& params);
SampleResult Sample(const float* logits, int64_t vocab, int64_t vocab_limit, const SampleParams& params,
                    uint64_t position, uint64_t draw);
// The same with given random bits instead of Philox: tests ask for both ends. SampleRef sorts the whole row.
SampleResult SampleWith(const float* logits, int64_t vocab, int64_t vocab_limit, const SampleParams& params,
                        uint64_t random);
SampleResult SampleRef(const float* logits, int64_t vocab, int64_t vocab_limit, const SampleParams& params,
                       uint64_t random);

// Integer weight of a logit (rule above); max_logit is the largest of the row.
SB_HD uint64_t SampleWeight(float logit, float max_logit, float inverse_temperature_log2e) {
  const float t = Mul(Sub(logit, max_logit), inverse_temperature_log2e);
  if (!(t > -64.0f)) return 0;  // also -inf
  const float n = RoundToInt(t);
  const float g = Exp2Fraction(Sub(t, n));
  const int shift = static_cast<int>(n) + 30 - 23;
  const uint64_t mantissa = static_cast<uint64_t>(g * 0x1p23f);  // floor: g below 1 has half units
  return shift >= 0 ? mantissa << shift : (shift > -64 ? mantissa >> -shift : 0);
}

// fp32(log2 e / temperature), kept finite so that a tiny temperature means greedy and never 0 * inf.
SB_HD float SampleInverseTemperature(float temperature) {
  const float inverse = Div(kLog2e, temperature);
  return inverse < 0x1p100f ? inverse : 0x1p100f;
}

// The least prefix sum that top-p keeps: ceil(total * p), exactly; 0 < p <= 1.
uint64_t TopPThreshold(uint64_t total, double top_p);
// The place in [0, total) that random bits pick.
inline uint64_t SamplePlace(uint64_t random, uint64_t total) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(random) * total) >> 64);
}

// How many of the weights (best first) top-p keeps: the shortest prefix with sum >= p * total, at least one. Exact.
size_t TopPKeep(const uint64_t* weights, size_t count, double top_p);

// log(sum exp(x)): max + Log(RowPlanSum(Exp(x - max))). -inf rows give -inf.
float LogSumExp(const float* x, int64_t n);
struct TokenLogprob {
  int32_t id;
  float logprob;
};
// The n best ids by the top-k order with log-softmax of the raw logits; ids >= vocab_limit are left out of the list but
// count in the sum.
std::vector<TokenLogprob> TopLogprobs(const float* logits, int64_t vocab, int64_t vocab_limit, int n);

}  // namespace samebits
