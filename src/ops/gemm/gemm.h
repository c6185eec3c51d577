// GEMM: out[M,N] = a[M,K] * b[N,K]^T + bias[N]. Weights are [N,K] row-major, as in checkpoints.
//
// Order: per output the GEMM plan of numerics/sum.h (K blocks of 128, one ascending fma chain each; segments of 1024).
//   fp8: the exact dot product of each 128-block, rounded once to fp32: p_b; then S = fma(p_b, a_scale*b_scale, S)
//   ascending in the segment, segments ascending. Any engine that gets the exact value may compute it.
// Output: kGemmOutputs below is the table; StoreOut<To>(acc) is the one rounding. fp32 stores the accumulator itself.
//   Nothing is ever widened after a narrow store; anything not in the table is refused by name.
// Free: M and N tiles, threads, packing. Every row's bits are those of M = 1.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "numerics/sum.h"
#include "ops/op.h"

namespace samebits {

struct GemmOutput {
  DType a, b, out;
};
inline constexpr GemmOutput kGemmOutputs[] = {
    {DType::kBF16, DType::kBF16, DType::kBF16},    {DType::kBF16, DType::kBF16, DType::kF32},
    {DType::kF32, DType::kBF16, DType::kF32},      {DType::kF32, DType::kF32, DType::kF32},
    {DType::kBF16, DType::kF32, DType::kF32},      {DType::kF8E4M3, DType::kF8E4M3, DType::kBF16},
    {DType::kF8E4M3, DType::kF8E4M3, DType::kF32},
};
template <class To>
SB_HD To StoreOut(float accumulator) {
  return RoundTo<To>(accumulator);
}

inline constexpr int64_t kScaleBlock = 128;  // rows of b and columns of a and b that share one fp8 scale
inline constexpr int64_t kPackLanes = 16;

// A weight packed at load for the CPU: outputs interleaved by 16, element (n, k) at [(n / 16) * K + k][n % 16], padding
// zero. BF16 and F32 keep their type; E4M3 keeps its bytes and the block scales [ceil(N/128), ceil(K/128)].
class PackedWeight {
 public:
  PackedWeight() = default;
  // b is [N, K]. E4M3 with NaN bytes is refused; `name` is the tensor named in errors. scale: fp8 only.
  static Result<PackedWeight> Pack(const std::string& name, DType dtype, const void* b, int64_t n, int64_t k,
                                   int64_t stride, const float* scale = nullptr, const CpuContext* context = nullptr);
  DType dtype() const { return dtype_; }
  int64_t n() const { return n_; }
  int64_t k() const { return k_; }
  bool empty() const { return data_.empty(); }
  const uint8_t* data() const { return data_.data(); }
  const float* scales() const { return scales_.data(); }
  float At(int64_t n, int64_t k) const;       // the element widened, unscaled
  float ScaleAt(int64_t n, int64_t k) const;  // 1 unless fp8
  uint64_t bytes() const { return data_.size() + 4 * scales_.size(); }

 private:
  DType dtype_ = DType::kBF16;
  int64_t n_ = 0, k_ = 0;
  std::vector<uint8_t> data_;
  std::vector<float> scales_;
};

struct GemmArgs {
  ConstMat a;                       // [M, K] BF16 | F32 | F8_E4M3
  View<const float> a_scale;        // [M, ceil(K/128)], fp8 only
  const PackedWeight* b = nullptr;  // [N, K]
  const float* bias = nullptr;      // [N] or none
  Mat out;                          // [M, N] BF16 | F32
};

// For the reference only: which order and which store. The defaults are the contract.
struct GemmRule {
  int64_t block = kGemmBlock;
  int64_t segment = kGemmSegment;
  int64_t splits = 1;  // K cut in this many equal pieces, each summed by the plan, then added ascending
  bool bf16_accumulator_store =
      false;  // round to bf16 before the store (fp32 out: a downgrade; with a second rounding)
};

Status CheckGemm(const GemmArgs& args);
void GemmRef(const GemmArgs& args, const GemmRule& rule = {});
Status Gemm(const CpuContext& context, const GemmArgs& args);
// Many GEMMs at once (heads of a batched product, experts of a grouped one): as if each were called alone.
Status GemmBatch(const CpuContext& context, std::span<const GemmArgs> batch);
std::span<const OpBackend<GemmArgs>> GemmBackends();

// The exact dot product of `n` <= 128 E4M3 pairs, rounded once to fp32. Products are multiples of 2^-18 below 2^18, so
// the sum is an integer below 2^43 in those units.
SB_HD float ExactDotE4M3(const E4M3* a, const E4M3* b, int n) {
  int64_t sum = 0;
  for (int i = 0; i < n; ++i)
    sum += static_cast<int64_t>(ToF32(a[i]) * 0x1p9f) * static_cast<int64_t>(ToF32(b[i]) * 0x1p9f);
  return static_cast<float>(static_cast<double>(sum)) * 0x1p-18f;
}

}  // namespace samebits
