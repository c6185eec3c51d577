// GEMM on the GPU: weights row-major as in checkpoints, on the device.
#pragma once

#include "ops/gemm/gemm.h"

namespace samebits {

struct CudaGemmArgs {
  ConstMat a;                      // [M, K] BF16 | F32 | F8_E4M3
  View<const float> a_scale;       // [M, ceil(K/128)], fp8 only
  ConstMat b;                      // [N, K] BF16 | F32 | F8_E4M3
  const float* b_scale = nullptr;  // [ceil(N/128), ceil(K/128)], fp8 only
  const float* bias = nullptr;     // [N] or none
  Mat out;                         // [M, N] BF16 | F32
};

}  // namespace samebits
