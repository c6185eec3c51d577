// RMSNorm and LayerNorm: one block of 64 threads per row, thread j is lane j of the row plan, so the plan's lanes and
// halving tree are walked as they stand.

#include "device/cuda_kernel.h"
#include "device/cuda_rows.cuh"
#include "numerics/sum.h"
#include "ops/norm/norm.h"

namespace samebits {
namespace {

// RowPlanSum over the block's lanes; every thread gets the sum. step(acc, i) as there.
template <class Step>
__device__ float BlockRowSum(int64_t n, float* lanes, const Step& step) {
  const int lane = static_cast<int>(threadIdx.x);
  float total = 0.0f;
  for (int64_t c = 0; c < n; c += kRowChunk) {
    const int64_t end = c + kRowChunk < n ? c + kRowChunk : n;
    float acc = 0.0f;
    for (int64_t i = c + lane; i < end; i += kRowLanes) acc = step(acc, i);
    lanes[lane] = acc;
    __syncthreads();
    for (int half = kRowLanes / 2; half > 0; half /= 2) {
      if (lane < half) lanes[lane] = Add(lanes[lane], lanes[lane + half]);
      __syncthreads();
    }
    total = Add(total, lanes[0]);
    __syncthreads();
  }
  return total;
}

__global__ void RmsNormKernel(RmsNormArgs a) {
  __shared__ float lanes[kRowLanes];
  extern __shared__ float row[];  // u; residual_out may alias what u is made from
  const int64_t t = blockIdx.x, n = a.x.cols;
  for (int64_t i = threadIdx.x; i < n; i += kRowLanes) {
    float u = LoadAt(a.x, t, i);
    if (a.residual.data) u = Add(u, LoadAt(a.residual, t, i));
    if (a.residual_out.data) {
      StoreAt(a.residual_out, t, i, u);
      if (a.norm_of_rounded_sum && a.residual_out.dtype == DType::kBF16) u = ToF32(RoundTo<BF16>(u));
    }
    row[i] = u;
  }
  __syncthreads();
  const float sum = BlockRowSum(n, lanes, [&](float acc, int64_t i) { return Fma(row[i], row[i], acc); });
  const float inverse = NormInverse(sum, n, a.eps);
  for (int64_t i = threadIdx.x; i < n; i += kRowLanes) StoreAt(a.out, t, i, RmsNormValue(row[i], inverse, a.weight[i]));
}

__global__ void LayerNormKernel(LayerNormArgs a) {
  __shared__ float lanes[kRowLanes];
  extern __shared__ float row[];
  const int64_t t = blockIdx.x, n = a.x.cols;
  const float total = BlockRowSum(n, lanes, [&](float acc, int64_t i) { return Add(acc, LoadAt(a.x, t, i)); });
  const float mean = RowMean(total, n);
  for (int64_t i = threadIdx.x; i < n; i += kRowLanes) row[i] = Sub(LoadAt(a.x, t, i), mean);
  __syncthreads();
  const float sum = BlockRowSum(n, lanes, [&](float acc, int64_t i) { return Fma(row[i], row[i], acc); });
  const float inverse = NormInverse(sum, n, a.eps);
  for (int64_t i = threadIdx.x; i < n; i += kRowLanes)
    StoreAt(a.out, t, i, LayerNormValue(row[i], inverse, a.weight[i], a.bias[i]));
}

constexpr int64_t kMostColumns = 24576;  // of one row in shared memory

const char* RunRmsNorm(const RmsNormArgs& a, cudaStream_t stream) {
  if (a.x.rows == 0) return nullptr;
  if (a.x.cols > kMostColumns) return "RMSNorm on the GPU: rows of up to 24576 columns are supported";
  const int bytes = static_cast<int>(a.x.cols) * 4;
  if (const char* e = CudaSentence(
          cudaFuncSetAttribute(RmsNormKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes), "RMSNorm"))
    return e;
  RmsNormKernel<<<static_cast<unsigned>(a.x.rows), kRowLanes, static_cast<size_t>(bytes), stream>>>(a);
  return CudaSentence(cudaGetLastError(), "RMSNorm");
}
const char* RunLayerNorm(const LayerNormArgs& a, cudaStream_t stream) {
  if (a.x.rows == 0) return nullptr;
  if (a.x.cols > kMostColumns) return "LayerNorm on the GPU: rows of up to 24576 columns are supported";
  const int bytes = static_cast<int>(a.x.cols) * 4;
  if (const char* e = CudaSentence(
          cudaFuncSetAttribute(LayerNormKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes), "LayerNorm"))
    return e;
  LayerNormKernel<<<static_cast<unsigned>(a.x.rows), kRowLanes, static_cast<size_t>(bytes), stream>>>(a);
  return CudaSentence(cudaGetLastError(), "LayerNorm");
}

SB_CUDA_KERNEL(rms_norm, "rms_norm", "rms_norm/cuda", "portable-1", RmsNormArgs, RunRmsNorm);
SB_CUDA_KERNEL(layer_norm, "layer_norm", "layer_norm/cuda", "portable-1", LayerNormArgs, RunLayerNorm);

}  // namespace
}  // namespace samebits
