#include "numerics/numerics_probe.h"

#include "numerics/mathfn.h"

namespace samebits {

bool IsaAvailable(Isa isa) {
  for (const Isa available : AvailableIsas())
    if (available == isa) return true;
  return false;
}

const char* MathFnName(MathFn fn) {
  static const char* const kNames[] = {"exp", "log", "sigmoid", "silu", "softplus", "rsqrt", "exp2 fraction"};
  return kNames[static_cast<int>(fn)];
}

float MathFnScalar(MathFn fn, float x) {
  switch (fn) {
    case MathFn::kExp:
      return Exp(x);
    case MathFn::kLog:
      return Log(x);
    case MathFn::kSigmoid:
      return Sigmoid(x);
    case MathFn::kSilu:
      return Silu(x);
    case MathFn::kSoftplus:
      return Softplus(x);
    case MathFn::kRsqrt:
      return Rsqrt(x);
    default:
      return Exp2Fraction(x);
  }
}

uint32_t LaneOpScalar(LaneOp op, uint32_t a, uint32_t b, uint32_t c) {
  const float x = FromBits(a), y = FromBits(b), z = FromBits(c);
  switch (op) {
    case LaneOp::kAdd:
      return Bits(Add(x, y));
    case LaneOp::kSub:
      return Bits(Sub(x, y));
    case LaneOp::kMul:
      return Bits(Mul(x, y));
    case LaneOp::kDiv:
      return Bits(Div(x, y));
    case LaneOp::kFma:
      return Bits(Fma(x, y, z));
    case LaneOp::kSqrt:
      return Bits(Sqrt(x));
    case LaneOp::kAbs:
      return a & 0x7fffffffu;
    case LaneOp::kMax:
      return x > y ? a : b;
    case LaneOp::kMin:
      return x < y ? a : b;
    case LaneOp::kAddI:
      return AddI(a, b);
    case LaneOp::kSubI:
      return SubI(a, b);
    case LaneOp::kAndI:
      return AndI(a, b);
    case LaneOp::kOrI:
      return OrI(a, b);
    case LaneOp::kShl:
      return Shl<5>(a);
    case LaneOp::kShr:
      return Shr<5>(a);
    case LaneOp::kSar:
      return Sar<5>(a);
    case LaneOp::kSelectLt:
      return Lt(x, y) ? b : c;
    default:
      return IsNan(x) ? b : c;
  }
}

}  // namespace samebits
