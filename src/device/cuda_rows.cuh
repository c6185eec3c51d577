// For portable kernels: reading and storing an element of a matrix of either activation type, as MatAt and MatPut do on
// the host, and rows of paged caches.
#pragma once

#include <cuda_runtime.h>

#include "numerics/format.h"
#include "tensor/tensor.h"

namespace samebits {

__device__ __forceinline__ float Load(const void* data, DType dtype, int64_t i) {
  return dtype == DType::kBF16 ? ToF32(static_cast<const BF16*>(data)[i]) : static_cast<const float*>(data)[i];
}
__device__ __forceinline__ float LoadAt(const ConstMat& m, int64_t r, int64_t c) {
  return Load(m.data, m.dtype, r * m.stride + c);
}
__device__ __forceinline__ float LoadAt(const Mat& m, int64_t r, int64_t c) {
  return Load(m.data, m.dtype, r * m.stride + c);
}
__device__ __forceinline__ void StoreAt(const Mat& m, int64_t r, int64_t c, float x) {
  const int64_t i = r * m.stride + c;
  if (m.dtype == DType::kBF16) {
    static_cast<BF16*>(m.data)[i] = RoundTo<BF16>(x);
  } else {
    static_cast<float*>(m.data)[i] = RoundTo<float>(x);
  }
}
// Grid for one thread per element.
inline unsigned BlocksFor(int64_t count, int threads = 256) {
  return static_cast<unsigned>((count + threads - 1) / threads);
}

}  // namespace samebits
