// RMSNorm and LayerNorm over rows, with the fused residual add of V3.2.
//
// Rule (all in fp32, one rounding at the store):
//   u        = x, or x + residual (one fp32 addition) where a residual is given
//   RMSNorm  : out = w * (u * inv), inv = 1 / sqrt(sum(u*u) * (1/n) + eps); sum by the row plan with fma steps
//   LayerNorm: mean = sum(u) * (1/n); d = u - mean; var = sum(d*d) * (1/n); out = fma(d * (1/sqrt(var + eps)), w, bias)
// residual_out, if given, is u rounded once. With norm_of_rounded_sum (V3) the norm reads that rounded value; without
// (V3.2) it reads the unrounded u. Source: spec 4.1.
#pragma once

#include "numerics/mathfn.h"
#include "ops/op.h"

namespace samebits {

struct RmsNormArgs {
  ConstMat x;                     // [tokens, n] BF16 | F32
  ConstMat residual;              // [tokens, n] BF16 | F32, or none
  const float* weight = nullptr;  // [n]
  float eps = 1e-6f;
  bool norm_of_rounded_sum = false;
  Mat residual_out;  // [tokens, n] BF16 | F32, or none; may alias residual or x
  Mat out;           // [tokens, n] BF16 | F32
};
struct LayerNormArgs {
  ConstMat x;                     // [tokens, n] BF16 | F32
  const float* weight = nullptr;  // [n]
  const float* bias = nullptr;    // [n]
  float eps = 1e-6f;
  Mat out;  // [tokens, n] BF16 | F32
};

SB_HD float RowMean(float sum, int64_t n) { return Mul(sum, Div(1.0f, static_cast<float>(n))); }
// 1 / sqrt(sum * (1/n) + eps): the factor of both norms, from the sum of squares.
SB_HD float NormInverse(float sum_of_squares, int64_t n, float eps) {
  return Rsqrt(Add(RowMean(sum_of_squares, n), eps));
}
template <class V>
SB_HD V RmsNormValue(V u, V inverse, V weight) {
  return Mul(weight, Mul(u, inverse));
}
template <class V>
SB_HD V LayerNormValue(V centred, V inverse, V weight, V bias) {
  return Fma(Mul(centred, inverse), weight, bias);
}

Status CheckRmsNorm(const RmsNormArgs& args);
Status CheckLayerNorm(const LayerNormArgs& args);
void RmsNormRef(const RmsNormArgs& args);
void LayerNormRef(const LayerNormArgs& args);
Status RmsNorm(const CpuContext& context, const RmsNormArgs& args);
Status LayerNorm(const CpuContext& context, const LayerNormArgs& args);

}  // namespace samebits
