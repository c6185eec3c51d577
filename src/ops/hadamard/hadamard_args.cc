#include "base/strings.h"
#include "ops/hadamard/hadamard.h"

namespace samebits {

Status CheckHadamard(const HadamardArgs& args) {
  if (args.x.dtype != args.out.dtype || (args.x.dtype != DType::kBF16 && args.x.dtype != DType::kF32))
    return Error("hadamard: x and out must both be BF16 or both F32");
  if (args.n < 1 || args.n > 1024 || (args.n & (args.n - 1)) != 0)
    return Error(Format("hadamard: n = %lld; powers of two up to 1024 are supported", static_cast<long long>(args.n)));
  if (args.x.cols % args.n != 0 || args.x.rows != args.out.rows || args.x.cols != args.out.cols)
    return Error(Format("hadamard: %lld columns must be a multiple of n = %lld, and out shaped like x",
                        static_cast<long long>(args.x.cols), static_cast<long long>(args.n)));
  return Ok();
}

}  // namespace samebits
