// Elementwise: SwiGLU and the residual add. fp32 inside, one rounding at the store.
//   SwiGLU: out = silu(gate) * up      Add: out = a + b
#pragma once

#include "numerics/mathfn.h"
#include "ops/op.h"

namespace samebits {

template <class V>
SB_HD V SwigluValue(V gate, V up) {
  return Mul(Silu(gate), up);
}

struct SwigluArgs {
  ConstMat gate, up;  // [tokens, n] BF16 | F32
  Mat out;            // [tokens, n], same dtype
};
struct AddArgs {
  ConstMat a, b;  // [tokens, n] BF16 | F32
  Mat out;        // may alias either
};

Status CheckSwiglu(const SwigluArgs& args);
void SwigluRef(const SwigluArgs& args);
Status Swiglu(const CpuContext& context, const SwigluArgs& args);
Status CheckAdd(const AddArgs& args);
void AddRef(const AddArgs& args);
Status AddRows(const CpuContext& context, const AddArgs& args);

}  // namespace samebits
