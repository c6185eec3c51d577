// What hopper-1's GEMM may choose freely, and how it chooses. No entry changes a bit of the result.
#pragma once

#include <cstdint>
#include <initializer_list>

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
    {2, 128, true, 1, 8},  {2, 64, true, 1, 4},   {2, 64, true, 1, 2},   {2, 128, true, 1, 2},  {2, 80, true, 1, 2},
    {2, 80, true, 1, 4},
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
constexpr HopperGemmLayout LayoutOf(const HopperGemmTuning& t, int64_t m, int64_t n, int64_t segments, int sm_count) {
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
  // A block that has a multiprocessor to itself may use all of it; but large clusters need room to be placed at all.
  const bool alone = t.multicast * t.split <= 4 && l.p_tiles * l.q_tiles * t.split <= sm_count;
  for (const int64_t budget : {kHopperSmemPair, kHopperSmem}) {
    if (budget == kHopperSmemPair && (t.warpgroups == 2 || alone)) continue;
    const int64_t left = budget - 1024 - l.slots * l.slot_bytes;
    const int64_t stages = left < 0 ? 0 : left / l.stage_bytes;
    l.stages = static_cast<int>(stages < kHopperMaxStages ? stages : kHopperMaxStages);
    l.blocks_per_sm = budget == kHopperSmemPair ? 2 : 1;
    if (l.stages >= 3) break;
  }
  if (l.stages < 3) l.stages = 0;
  l.smem_bytes = 1024 + l.stages * l.stage_bytes + l.slots * l.slot_bytes;
  return l;
}

// Microseconds, roughly: a block takes the slowest of tensor cores, bytes into its multiprocessor and bytes out of L2;
// blocks run in rounds; memory bounds the whole. The constants were fitted to a sweep of every entry over the shapes of
// bench/gpu/gemm_bench.py on an H200; they steer the choice of an entry and nothing else.
constexpr double HopperGemmEstimate(const HopperGemmTuning& t, int64_t m, int64_t n, int64_t k, int64_t segments,
                                    int sm_count) {
  const HopperGemmLayout l = LayoutOf(t, m, n, segments, sm_count);
  if (l.stages == 0 || (!t.swap && m <= 64)) return 1e30;
  constexpr double kMegahertz = 1640, kOneWarpgroup = 1.4, kNarrowest = 76;  // n below this takes no less time
  constexpr double kIntoSm = 97e3, kOutOfL2 = 78e3, kMemory = 2.4e6;         // bytes per microsecond
  constexpr double kPerBlock = 3.15, kPerLaunch = 0.1, kPerPeer = 0.78, kPerRank = 0.3;  // microseconds
  const int64_t blocks = l.p_tiles * l.q_tiles * t.split;
  // Clusters of blocks that fill a multiprocessor each leave the rest of a group of 16 or 18 multiprocessors idle.
  const int cluster = t.multicast * t.split;
  if (l.blocks_per_sm == 1 && cluster > 2) sm_count = cluster > 4 ? sm_count * 3 / 4 : sm_count * 15 / 16;
  const double rows = 64.0 * t.warpgroups, columns = t.n, rounds = static_cast<double>(CeilDiv(blocks, sm_count));
  const double busy = blocks < sm_count ? static_cast<double>(blocks) / sm_count : 1.0;
  const int64_t rank_k = l.segments_per_rank * (k < 1024 ? k : 1024);
  const double depth = static_cast<double>(rank_k < k ? rank_k : k);
  double block = rows * (columns < kNarrowest ? kNarrowest : columns) * depth / 2048 / kMegahertz;
  if (t.warpgroups == 1) block *= kOneWarpgroup;
  const double in = 2 * (rows + columns) * depth / kIntoSm;
  const double out = 2 * (rows + columns / t.multicast) * depth / kOutOfL2 * busy;
  if (block < in) block = in;
  if (block < out) block = out;
  if (l.stages < 4) block *= 1.5;  // one stage is being read, one released: too few are in flight
  const double mk = static_cast<double>(m) * static_cast<double>(k),
               nk = static_cast<double>(n) * static_cast<double>(k);
  const double memory = 2 * (mk + nk + static_cast<double>(m) * static_cast<double>(n)) / kMemory;
  const double compute = (block + kPerBlock) * rounds;
  const double longer = compute > memory ? compute : memory, shorter = compute > memory ? memory : compute;
  return longer + 0.1 * shorter + kPerLaunch + kPerPeer * (t.multicast - 1) + (t.split > 1 ? kPerRank * t.split : 0.0);
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
