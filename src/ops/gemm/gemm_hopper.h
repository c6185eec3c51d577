// hopper-1's GEMM: bf16 x bf16 to bf16 or fp32 on Hopper's tensor cores, weights [N, K] as in checkpoints.
//
// Order: the plan of gemm.h with the inner sum taken by wgmma. Per output, each segment of kHopperGemmSegment elements
// of K is one accumulator that starts at zero and takes wgmma ...k16 instructions (bf16, fp32 accumulator) over groups
// of 16, ascending; a short last group is filled with zeros. Segment sums are then added in fp32 in ascending order
// from +0, the bias is added in fp32, and StoreOut rounds once. portable-1's blocks of 128 have no counterpart: adding
// registers every 8 instructions would cost more than it says about the result.
// The plan is a function of K alone, so that neither M nor a layer's split over N by rank can change a row's bits.
// Free: everything in gemm_hopper_tuning.h, and which operand is the instruction's A and which its B.
#pragma once

#include "ops/gemm/gemm.h"
#include "ops/gemm/gemm_hopper_tuning.h"

namespace samebits {

inline constexpr int64_t kHopperGemmSegment = kGemmSegment;
inline constexpr int64_t kHopperGemmGroup = 16;

// |result - exact| <= HopperGemmBound(K) * sum |a_k b_k|, before the store's rounding. wgmma aligns the products of a
// group and the accumulator to the largest of them and truncates: at most 2^-22 of it per group is assumed here; then
// one rounding per segment.
constexpr double HopperGemmBound(int64_t k) {
  const int64_t in_segment = k < kHopperGemmSegment ? k : kHopperGemmSegment;
  const int64_t groups = (in_segment + kHopperGemmGroup - 1) / kHopperGemmGroup;
  const int64_t segments = (k + kHopperGemmSegment - 1) / kHopperGemmSegment;
  return static_cast<double>(groups) * 0x1p-22 + static_cast<double>(segments) * 0x1p-24;
}

// Device pointers. a, b, strides: 16-byte aligned.
struct HopperGemmArgs {
  ConstMat a;                   // [M, K] BF16
  ConstMat b;                   // [N, K] BF16
  const float* bias = nullptr;  // [N] or none
  Mat out;                      // [M, N] BF16 | F32
  int tuning = -1;              // index into kHopperGemmTunings; -1: HopperGemmPick
};

}  // namespace samebits
