// Rotary position embedding with YaRN. Tables are made once on the host by our own fp64 code, then everything is fp32.
//
// Rule: angle = fp32(position) * inv_freq[i] in fp32; (a, b) -> (a cos - b sin, a sin + b cos), each product and sum
// one fp32 operation (out_a = fma(a, cos, -(b*sin)), out_b = fma(a, sin, b*cos)), one rounding at the store. Pairs:
// interleaved (2i, 2i+1) for the main attention, half-split (i, i + d/2) for the indexer.
#pragma once

#include <vector>

#include "ops/op.h"

namespace samebits {

struct YarnConfig {
  float theta = 10000.0f;
  int dim = 64;         // even
  float factor = 1.0f;  // 1: plain RoPE
  float beta_fast = 32.0f, beta_slow = 1.0f;
  int original_length = 4096;
  float mscale = 1.0f, mscale_all_dim = 0.0f;
};
struct YarnRamp {
  int low, high;
};
// low and high of the frequency ramp (spec 4.3).
YarnRamp YarnRampOf(const YarnConfig& config);
// [dim/2]: f = 1 / theta^(2i/d) (the power rounded to fp32, as DeepSeek's code does), then the YaRN mix.
std::vector<float> RopeInverseFrequencies(const YarnConfig& config);
// m^2 of the softmax scale: m = 0.1 * mscale_all_dim * ln(factor) + 1 for factor > 1, else 1 (spec 4.4).
float YarnSoftmaxMultiplier(const YarnConfig& config);

// cos and sin per position, [positions, dim/2] each.
class RopeTable {
 public:
  RopeTable() = default;
  RopeTable(const YarnConfig& config, int64_t positions);
  int dim() const { return dim_; }
  int64_t positions() const { return positions_; }
  const float* Cos(int64_t position) const { return cos_.data() + position * (dim_ / 2); }
  const float* Sin(int64_t position) const { return sin_.data() + position * (dim_ / 2); }

 private:
  int dim_ = 0;
  int64_t positions_ = 0;
  std::vector<float> cos_, sin_;
};
// sin and cos of an fp32 angle in fp64 by our own code (|error| < 2^-50), rounded to fp32. Host only.
void SinCos(float angle, float* sin_out, float* cos_out);

enum class RopeLayout { kInterleaved, kHalfSplit };

template <class V>
SB_HD void RopeRotate(V a, V b, V c, V s, V* out_a, V* out_b) {
  *out_a = Fma(a, c, Sub(Set1<V>(0.0f), Mul(b, s)));
  *out_b = Fma(a, s, Mul(b, c));
}

struct RopeArgs {
  Mat x;  // [tokens, heads * head_stride], rotated in place; BF16 | F32
  int64_t heads = 1;
  int64_t head_stride = 0;             // elements between heads of one token
  int64_t offset = 0;                  // first rotated element within a head
  const int32_t* positions = nullptr;  // [tokens], each in [0, table->positions())
  const RopeTable* table = nullptr;
  RopeLayout layout = RopeLayout::kInterleaved;
};

Status CheckRope(const RopeArgs& args);
void RopeRef(const RopeArgs& args);
Status Rope(const CpuContext& context, const RopeArgs& args);

}  // namespace samebits
