#include "device/cuda_kernel.h"
#include "device/cuda_rows.cuh"
#include "ops/quant/quant.h"

namespace samebits {
namespace {

// One block of 128 threads per group of 128 channels.
__global__ void QuantKernel(QuantArgs a) {
  __shared__ float most[kQuantGroup];
  const int64_t groups = (a.x.cols + kQuantGroup - 1) / kQuantGroup, r = blockIdx.x / groups, g = blockIdx.x % groups;
  const int t = static_cast<int>(threadIdx.x);
  const int64_t i = g * kQuantGroup + t;
  const float x = i < a.x.cols ? LoadAt(a.x, r, i) : 0.0f, magnitude = x < 0 ? -x : x;
  most[t] = magnitude > 0.0f ? magnitude : 0.0f;  // NaN gives 0: it never wins the maximum
  __syncthreads();
  for (int half = kQuantGroup / 2; half > 0; half /= 2) {
    if (t < half && most[t + half] > most[t]) most[t] = most[t + half];
    __syncthreads();
  }
  const float scale = QuantScale(most[0], a.power_of_two);
  if (t == 0 && a.scales.data) a.scales.data[r * a.scales.stride + g] = scale;
  if (i >= a.x.cols) return;
  const E4M3 y = QuantValue(x, scale);
  if (a.values.data) a.values.data[r * a.values.stride + i] = y;
  if (a.round_trip.data) StoreAt(a.round_trip, r, i, DequantValue(y, scale));
}

const char* RunQuant(const QuantArgs& a, cudaStream_t stream) {
  const int64_t blocks = a.x.rows * ((a.x.cols + kQuantGroup - 1) / kQuantGroup);
  if (blocks == 0) return nullptr;
  QuantKernel<<<static_cast<unsigned>(blocks), kQuantGroup, 0, stream>>>(a);
  return CudaSentence(cudaGetLastError(), "quant");
}

SB_CUDA_KERNEL(quant, "quant", "quant/cuda", "portable-1", QuantArgs, RunQuant);

}  // namespace
}  // namespace samebits
