// Speed only, never bits: which kernel takes which shape. Every entry gives the same bytes and is run by the GPU tests.
#pragma once

#include <cstdint>

namespace samebits {

enum class TopkKind {
  kRows,    // one block per row, the row's keys in registers; n <= threads * items
  kStream,  // `cluster` blocks per row read it once and keep candidates above a sampled bound
};
struct TopkTuning {
  TopkKind kind;
  int threads, items;  // kStream: candidates kept per row <= threads * items
  int samples;         // per thread, kStream only
  int cluster;
};

inline constexpr TopkTuning kTopkTunings[] = {
    {TopkKind::kRows, 128, 8, 0, 1},       // 0
    {TopkKind::kRows, 256, 8, 0, 1},       // 1
    {TopkKind::kRows, 256, 12, 0, 1},      // 2
    {TopkKind::kRows, 256, 16, 0, 1},      // 3
    {TopkKind::kRows, 512, 8, 0, 1},       // 4
    {TopkKind::kRows, 512, 16, 0, 1},      // 5
    {TopkKind::kRows, 1024, 8, 0, 1},      // 6
    {TopkKind::kStream, 512, 4, 2, 1},     // 7
    {TopkKind::kStream, 512, 8, 4, 1},     // 8
    {TopkKind::kStream, 512, 12, 4, 1},    // 9
    {TopkKind::kStream, 512, 12, 8, 1},    // 10
    {TopkKind::kStream, 512, 12, 8, 2},    // 11
    {TopkKind::kStream, 512, 12, 8, 4},    // 12
    {TopkKind::kStream, 512, 12, 8, 8},    // 13
    {TopkKind::kStream, 512, 12, 8, 16},   // 14
    {TopkKind::kStream, 512, 16, 16, 8},   // 15
    {TopkKind::kStream, 512, 16, 16, 16},  // 16
    {TopkKind::kRows, 1024, 16, 0, 1},     // 17
    {TopkKind::kStream, 256, 8, 2, 1},     // 18
    {TopkKind::kStream, 256, 8, 4, 1},     // 19
    {TopkKind::kStream, 256, 16, 8, 1},    // 20
};
inline constexpr int kTopkTuningCount = static_cast<int>(sizeof(kTopkTunings) / sizeof(kTopkTunings[0]));
// Longest part of a row one block of kStream can order: its map of chosen places is 16 KB.
inline constexpr int64_t kTopkStreamChunk = 131072;

// Whether the entry can take this shape on a device with (or without) clusters.
constexpr bool TopkFits(const TopkTuning& t, int64_t n, int64_t k, bool clusters) {
  if (t.kind == TopkKind::kRows) return n <= int64_t{t.threads} * t.items;
  if (t.cluster > 1 && !clusters) return false;
  return k <= int64_t{t.threads} * t.items;
}

constexpr int TopkPick(int64_t rows, int64_t n, int64_t k, int sm_count, bool clusters) {
  if (n <= 1024) return 0;
  if (n <= 2048) return 1;
  if (n <= 3072) return 2;
  if (n <= 4096) return rows < sm_count ? 4 : 3;
  if (n <= 8192 && rows < sm_count) return 6;
  if (n <= 8192 && 4 * k >= n) return 5;
  if (n > 262144) return !clusters ? 10 : rows * 16 > sm_count ? 15 : 16;
  if (clusters && n > 16384) {  // few rows: as many blocks for each as fit the device at once
    if (rows * 8 <= sm_count) return 13;
    if (rows * 4 <= sm_count) return 12;
    if (rows * 2 <= sm_count) return 11;
  }
  if (n > 49152) return k <= 2560 && n <= 131072 ? 9 : 10;
  return k <= 1024 && n <= 32768 ? 19 : k <= 2560 ? 8 : 9;
}

}  // namespace samebits
