// The meaning of RMSNorm and LayerNorm, row by row.

#include <vector>

#include "numerics/sum.h"
#include "ops/norm/norm.h"

namespace samebits {

void RmsNormRef(const RmsNormArgs& args) {
  const int64_t n = args.x.cols;
  std::vector<float> u(static_cast<size_t>(n));
  for (int64_t t = 0; t < args.x.rows; ++t) {
    for (int64_t i = 0; i < n; ++i) {
      float v = MatAt(args.x, t, i);
      if (args.residual) v = Add(v, MatAt(args.residual, t, i));
      u[static_cast<size_t>(i)] = v;
    }
    if (args.residual_out) {
      for (int64_t i = 0; i < n; ++i) {
        MatPut(args.residual_out, t, i, u[static_cast<size_t>(i)]);
        if (args.norm_of_rounded_sum) u[static_cast<size_t>(i)] = MatAt(args.residual_out, t, i);
      }
    }
    const float sum = RowPlanSum(
        n, [&](float acc, int64_t i) { return Fma(u[static_cast<size_t>(i)], u[static_cast<size_t>(i)], acc); });
    const float inverse = NormInverse(sum, n, args.eps);
    for (int64_t i = 0; i < n; ++i)
      MatPut(args.out, t, i, RmsNormValue(u[static_cast<size_t>(i)], inverse, args.weight[i]));
  }
}

void LayerNormRef(const LayerNormArgs& args) {
  const int64_t n = args.x.cols;
  std::vector<float> d(static_cast<size_t>(n));
  for (int64_t t = 0; t < args.x.rows; ++t) {
    const float total = RowPlanSum(n, [&](float acc, int64_t i) { return Add(acc, MatAt(args.x, t, i)); });
    const float mean = RowMean(total, n);
    for (int64_t i = 0; i < n; ++i) d[static_cast<size_t>(i)] = Sub(MatAt(args.x, t, i), mean);
    const float sum = RowPlanSum(
        n, [&](float acc, int64_t i) { return Fma(d[static_cast<size_t>(i)], d[static_cast<size_t>(i)], acc); });
    const float inverse = NormInverse(sum, n, args.eps);
    for (int64_t i = 0; i < n; ++i)
      MatPut(args.out, t, i, LayerNormValue(d[static_cast<size_t>(i)], inverse, args.weight[i], args.bias[i]));
  }
}

}  // namespace samebits
