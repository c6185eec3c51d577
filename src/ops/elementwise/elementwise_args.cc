#include "base/strings.h"
#include "ops/elementwise/elementwise.h"

namespace samebits {
namespace {

bool Activation(DType d) { return d == DType::kBF16 || d == DType::kF32; }

Status SameShapes(const char* op, const ConstMat& a, const ConstMat& b, const ConstMat& out) {
  if (!Activation(a.dtype) || !Activation(b.dtype) || !Activation(out.dtype))
    return Error(Format("%s: operands must be BF16 or F32", op));
  if (a.rows != b.rows || a.cols != b.cols || a.rows != out.rows || a.cols != out.cols)
    return Error(Format("%s: shapes differ: [%lld, %lld], [%lld, %lld], out [%lld, %lld]", op,
                        static_cast<long long>(a.rows), static_cast<long long>(a.cols), static_cast<long long>(b.rows),
                        static_cast<long long>(b.cols), static_cast<long long>(out.rows),
                        static_cast<long long>(out.cols)));
  return Ok();
}

}  // namespace

Status CheckSwiglu(const SwigluArgs& args) { return SameShapes("swiglu", args.gate, args.up, args.out); }
Status CheckAdd(const AddArgs& args) { return SameShapes("add", args.a, args.b, args.out); }

}  // namespace samebits
