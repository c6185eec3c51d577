// What hopper-1's GEMM may choose freely, and how it chooses. No entry changes a bit of the result.
#pragma once

#include <cstdint>

namespace samebits {

// A tile is 64 * warpgroups rows of P by n rows of Q; P is the wgmma's A operand. swap: P is the weights, Q the tokens
// (few tokens then fill a narrow n); else P is the tokens. A cluster is `multicast` P tiles that share one Q tile,
// times `split` ranks that share out the segments of K.
struct HopperGemmTuning {
  int warpgroups, n;
  bool swap;
  int multicast, split;
};
inline constexpr HopperGemmTuning kHopperGemmTunings[] = {
    {2, 192, false, 2, 1}, {2, 192, false, 1, 1}, {2, 128, false, 2, 1}, {2, 128, false, 1, 1}, {2, 128, false, 4, 1},
    {1, 8, true, 1, 1},    {1, 8, true, 1, 2},    {1, 8, true, 1, 4},    {1, 8, true, 1, 7},    {1, 8, true, 1, 8},
    {1, 16, true, 1, 1},   {1, 16, true, 1, 2},   {1, 16, true, 1, 4},   {1, 16, true, 1, 7},   {1, 16, true, 1, 8},
    {1, 32, true, 2, 1},   {1, 32, true, 1, 2},   {1, 32, true, 1, 4},   {1, 32, true, 1, 7},   {1, 64, true, 1, 1},
    {1, 64, true, 2, 1},   {1, 64, true, 4, 1},   {1, 64, true, 2, 2},   {1, 64, true, 1, 4},   {1, 64, true, 1, 7},
    {1, 128, true, 1, 1},  {1, 128, true, 2, 1},  {1, 128, true, 4, 1},  {1, 128, true, 1, 2},  {1, 128, true, 2, 2},
    {1, 128, true, 1, 4},  {1, 128, true, 2, 4},  {1, 128, true, 1, 7},  {1, 128, true, 1, 8},  {2, 128, true, 1, 1},
    {2, 128, true, 2, 1},  {2, 128, true, 1, 4},  {2, 64, true, 2, 1},   {2, 16, true, 1, 1},   {2, 16, true, 1, 4},
    {2, 160, false, 2, 1}, {2, 160, false, 1, 1}, {2, 96, false, 2, 1},  {2, 96, false, 1, 1},  {2, 128, true, 1, 7},
    {2, 128, true, 1, 8},
};
inline constexpr int kHopperGemmTuningCount = sizeof(kHopperGemmTunings) / sizeof(kHopperGemmTunings[0]);

inline constexpr int64_t kHopperStepK = 64;  // elements of K per pipeline stage: one 128-byte swizzle row
inline constexpr int kHopperMaxStages = 12;
inline constexpr int64_t kHopperSmem = 226 * 1024;      // one block on a multiprocessor
inline constexpr int64_t kHopperSmemPair = 111 * 1024;  // two

constexpr int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// How an entry lies on a shape; stages == 0: it does not fit.
struct HopperGemmLayout {
  int segments_per_rank = 0, slots = 0, stages = 0, blocks_per_sm = 1;
  int64_t stage_bytes = 0, slot_bytes = 0, smem_bytes = 0, p_tiles = 0, q_tiles = 0;
};
constexpr HopperGemmLayout LayoutOf(const HopperGemmTuning& t, int64_t m, int64_t n, int64_t segments,
                                    int sm_count) {
  HopperGemmLayout l;
  if (t.split > segments) return l;
  l.segments_per_rank = static_cast<int>(CeilDiv(segments, t.split));
  l.stage_bytes = (64 * t.warpgroups + t.n) * 2 * kHopperStepK;
  const int64_t p_rows = t.swap ? n : m, q_rows = t.swap ? m : n;
  l.p_tiles = CeilDiv(CeilDiv(p_rows, 64 * t.warpgroups), t.multicast) * t.multicast;
  l.q_tiles = CeilDiv(q_rows, t.n);
  // Partial sums kept in shared memory: a rank's segments one by one, the first rank's as their running sum.
  const int later = static_cast<int>(segments) - l.segments_per_rank;  // segments outside the first rank
  l.slots = !t.swap ? 0 : later < 2 ? 1 : later < l.segments_per_rank ? later : l.segments_per_rank;
  l.slot_bytes = (int64_t{64} * t.warpgroups + 4) * t.n * 4;
  for (const int64_t budget : {kHopperSmemPair, kHopperSmem}) {
    if (budget == kHopperSmemPair && (t.warpgroups == 2 || l.p_tiles * l.q_tiles * t.split <= sm_count)) continue;
    const int64_t left = budget - 1024 - l.slots * l.slot_bytes;
    const int64_t stages = left < 0 ? 0 : left / l.stage_bytes;
    l.stages = static_cast<int>(stages < kHopperMaxStages ? stages : kHopperMaxStages);
    l.blocks_per_sm = budget == kHopperSmemPair ? 2 : 1;
    if (l.stages >= 4) break;
  }
  if (l.stages < 3) l.stages = 0;
  l.smem_bytes = 1024 + l.stages * l.stage_bytes + l.slots * l.slot_bytes;
  return l;
}

// Microseconds, roughly: the slowest of tensor cores, L2 and memory, over whole rounds of tiles, and the fixed cost of
// filling a pipeline and of adding ranks.
constexpr double HopperGemmEstimate(const HopperGemmTuning& t, int64_t m, int64_t n, int64_t k, int64_t segments,
                                    int sm_count) {
  const HopperGemmLayout l = LayoutOf(t, m, n, segments, sm_count);
  if (l.stages == 0) return 1e30;
  const int64_t blocks = l.p_tiles * l.q_tiles * t.split, slots = int64_t{sm_count} * l.blocks_per_sm;
  const double k_rank = static_cast<double>(k) * l.segments_per_rank / static_cast<double>(segments);
  // Rounds: blocks that share a multiprocessor share its tensor cores and its bandwidth.
  const int64_t per_sm = CeilDiv(blocks, sm_count);
  (void)slots;
  const double macs = 64.0 * t.warpgroups * (t.n < 32 ? 32 : t.n) * k_rank;
  const double tensor = macs / 2048 / 1550;                                                   // cycles, MHz
  const double l2 = 2.0 * (64.0 * t.warpgroups + double(t.n) / t.multicast) * k_rank / 52e3;  // bytes per us, one SM
  const double round = tensor > l2 ? tensor : l2;
  const double memory = 2.0 * (double(n) * double(k) + double(m) * double(k) + double(m) * double(n)) / 4.0e6;
  const double compute = round * double(per_sm);
  return (compute > memory ? compute : memory) + 2.0 + (t.split > 1 ? 1.0 : 0.0) + 0.3 * double(per_sm);
}

constexpr int HopperGemmPick(int64_t m, int64_t n, int64_t k, int64_t segments, int sm_count) {
  int best = -1;
  double least = 1e29;
  for (int i = 0; i < kHopperGemmTuningCount; ++i) {
    const double us = HopperGemmEstimate(kHopperGemmTunings[i], m, n, k, segments, sm_count);
    if (us < least) least = us, best = i;
  }
  return best;
}

}  // namespace samebits
