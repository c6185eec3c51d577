#include "numerics/numerics_probe.h"
#include "numerics/simd.h"
#include "numerics/simd_rows.h"

namespace samebits {
namespace SB_ISA {

SB_HD F32x16 Apply(MathFn fn, F32x16 x) {
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

void MathRow(MathFn fn, const float* x, float* out, int64_t n) {
  ForLanes(n, [&](int64_t i, int c) { StoreAny(out, false, i, c, Apply(fn, LoadAny(x, false, i, c))); });
}

uint64_t MathHash(MathFn fn, uint32_t first, uint32_t stride, int64_t count, uint64_t hash) {
  uint32_t in[kLanes], out[kLanes];
  for (int64_t i = 0; i < count; i += kLanes) {
    for (uint32_t j = 0; j < kLanes; ++j) in[j] = first + (static_cast<uint32_t>(i) + j) * stride;
    float x[kLanes];
    std::memcpy(x, in, sizeof x);
    StoreI(out, Bits(Apply(fn, Load(x))));
    const int64_t n = count - i < kLanes ? count - i : kLanes;
    for (int64_t j = 0; j < n; ++j) hash = FnvWord(hash, out[j]);
  }
  return hash;
}

SB_HD I32x16 Lane(LaneOp op, F32x16 a, F32x16 b, F32x16 c) {
  switch (op) {
    case LaneOp::kAdd:
      return Bits(Add(a, b));
    case LaneOp::kSub:
      return Bits(Sub(a, b));
    case LaneOp::kMul:
      return Bits(Mul(a, b));
    case LaneOp::kDiv:
      return Bits(Div(a, b));
    case LaneOp::kFma:
      return Bits(Fma(a, b, c));
    case LaneOp::kSqrt:
      return Bits(Sqrt(a));
    case LaneOp::kAbs:
      return Bits(AbsF(a));
    case LaneOp::kMax:
      return Bits(Max(a, b));
    case LaneOp::kMin:
      return Bits(Min(a, b));
    case LaneOp::kAddI:
      return AddI(Bits(a), Bits(b));
    case LaneOp::kSubI:
      return SubI(Bits(a), Bits(b));
    case LaneOp::kAndI:
      return AndI(Bits(a), Bits(b));
    case LaneOp::kOrI:
      return OrI(Bits(a), Bits(b));
    case LaneOp::kShl:
      return Shl<5>(Bits(a));
    case LaneOp::kShr:
      return Shr<5>(Bits(a));
    case LaneOp::kSar:
      return Sar<5>(Bits(a));
    case LaneOp::kSelectLt:
      return Bits(Select(Lt(a, b), b, c));
    default:
      return Bits(Select(IsNan(a), b, c));
  }
}

void LaneRow(LaneOp op, const uint32_t* a, const uint32_t* b, const uint32_t* c, uint32_t* out, int64_t blocks) {
  for (int64_t i = 0; i < blocks * kLanes; i += kLanes) {
    float fa[kLanes], fb[kLanes], fc[kLanes];
    std::memcpy(fa, a + i, sizeof fa);
    std::memcpy(fb, b + i, sizeof fb);
    std::memcpy(fc, c + i, sizeof fc);
    StoreI(out + i, Lane(op, Load(fa), Load(fb), Load(fc)));
  }
}

void ToBF16Row(const float* x, BF16* out, int64_t n) {
  ForLanes(n, [&](int64_t i, int c) { StoreAny(out, true, i, c, LoadAny(x, false, i, c)); });
}
void FromBF16Row(const BF16* x, float* out, int64_t n) {
  ForLanes(n, [&](int64_t i, int c) { StoreAny(out, false, i, c, LoadAny(x, true, i, c)); });
}
void ToE4M3Row(const float* x, E4M3* out, int64_t n) {
  ForLanes(n, [&](int64_t i, int c) { StoreE4M3(out + i, LoadAny(x, false, i, c), c); });
}
void FromE4M3Row(const E4M3* x, float* out) { Store(out, LoadE4M3(x)); }

float RowSum(const float* x, int64_t n) {
  return RowPlanSumV(n, [&](F32x16 acc, int64_t i, int c) { return Add(acc, LoadAny(x, false, i, c)); });
}
float RowSumOfSquares(const float* x, int64_t n) {
  return RowPlanSumV(n, [&](F32x16 acc, int64_t i, int c) {
    const F32x16 v = LoadAny(x, false, i, c);
    return Fma(v, v, acc);
  });
}
float RowMax16(const float* x) { return MaxOf(Load(x)); }

}  // namespace SB_ISA
}  // namespace samebits
