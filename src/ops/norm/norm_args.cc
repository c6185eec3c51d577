#include "base/strings.h"
#include "ops/norm/norm.h"

namespace samebits {
namespace {

bool IsActivation(const ConstMat& m) { return m.dtype == DType::kBF16 || m.dtype == DType::kF32; }

Status CheckShape(const char* what, const ConstMat& m, const ConstMat& x) {
  if (!IsActivation(m)) return Error(Format("norm: %s is %s; BF16 and F32 are allowed", what, DTypeName(m.dtype)));
  if (m.rows != x.rows || m.cols != x.cols)
    return Error(Format("norm: %s is [%lld, %lld], expected [%lld, %lld]", what, static_cast<long long>(m.rows),
                        static_cast<long long>(m.cols), static_cast<long long>(x.rows),
                        static_cast<long long>(x.cols)));
  return Ok();
}

}  // namespace

Status CheckRmsNorm(const RmsNormArgs& args) {
  if (args.weight == nullptr) return Error("norm: no weight given");
  if (!IsActivation(args.x)) return Error(Format("norm: x is %s; BF16 and F32 are allowed", DTypeName(args.x.dtype)));
  if (args.residual) SB_RETURN_IF_ERROR(CheckShape("residual", args.residual, args.x));
  if (args.residual_out) SB_RETURN_IF_ERROR(CheckShape("residual_out", args.residual_out, args.x));
  if (args.norm_of_rounded_sum && args.residual && !args.residual_out)
    return Error("norm: norm_of_rounded_sum needs residual_out, whose dtype rounds the sum");
  return CheckShape("out", args.out, args.x);
}

Status CheckLayerNorm(const LayerNormArgs& args) {
  if (args.weight == nullptr || args.bias == nullptr) return Error("layer norm: weight and bias are needed");
  if (!IsActivation(args.x))
    return Error(Format("layer norm: x is %s; BF16 and F32 are allowed", DTypeName(args.x.dtype)));
  return CheckShape("out", args.out, args.x);
}

}  // namespace samebits
