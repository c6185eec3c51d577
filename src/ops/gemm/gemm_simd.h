// Between gemm_cpu.cc and gemm_simd.cc: one GEMM's panels, computed by the kernels of one instruction set.
#pragma once

#include <cstdint>

#include "numerics/isa.h"

namespace samebits {

constexpr int64_t kGemmTile = 12;      // rows of activations interleaved in a tile: 12 fills AVX-512's registers
constexpr int64_t kGemmTiledRows = 5;  // from so many rows on, the activations are tiled

enum class GemmWeightKind { kBF16, kF32, kE4M3 };

struct GemmTask {
  // fp32, or null for fp8. Below kGemmTiledRows rows [m, k]; else tiles of 12 rows, element (r, k) at
  // [(r / 12) * K + k][r % 12].
  const float* a = nullptr;
  int64_t a_stride = 0;
  const uint8_t* a8 = nullptr;  // [m, k] E4M3 bytes
  int64_t a8_stride = 0;
  const float* a_scale = nullptr;  // [m, blocks]
  int64_t a_scale_stride = 0;
  int64_t m = 0, n = 0, k = 0;
  const uint8_t* b = nullptr;  // packed, see PackedWeight
  GemmWeightKind kind = GemmWeightKind::kBF16;
  const float* b_scale = nullptr;
  const float* bias = nullptr;
  void* out = nullptr;
  bool out_bf16 = true;
  int64_t out_stride = 0;
};

// Columns [16 * begin, 16 * end) of every row.
#define SB_DECLARE_GEMM(isa, space)                                                               \
  namespace space {                                                                               \
  void GemmPanels(const GemmTask& task, int64_t panel_begin, int64_t panel_end);                  \
  void WidenBF16(const uint16_t* from, float* to, int64_t n);                                     \
  /* One tile from `rows` <= 12 rows of bf16 or fp32; the other rows' places stay as they are. */ \
  void TileRows(const void* from, bool bf16, int64_t stride, int64_t rows, int64_t k, float* to); \
  }
SB_FOR_EACH_ISA(SB_DECLARE_GEMM)
#undef SB_DECLARE_GEMM

}  // namespace samebits
