// GEMM kernels. Outputs lie across lanes and K is walked in the plan's order, so no horizontal sum exists and tiles are
// free. Registers: AVX-512 has 32, so 12 rows x 2 panels of accumulators, 2 weights, 1 broadcast; AVX2 has 16
// half-width ones, so 6 rows x 1 panel (12 + 2 + 1). From 5 rows on, activations come in tiles (GemmTask::tiled): 12
// strided rows need more address registers than there are, and reload them at every step.

#include "ops/gemm/gemm_simd.h"

#include "numerics/simd.h"

namespace samebits {
namespace SB_ISA {
namespace {

#if defined(SB_ISA_AVX512)
constexpr int kTileRows = 12, kTilePanels = 2, kVectorPanels = 8;
#elif defined(SB_ISA_SCALAR)
constexpr int kTileRows = 4, kTilePanels = 1, kVectorPanels = 1;
#else
constexpr int kTileRows = 6, kTilePanels = 1, kVectorPanels = 4;
#endif
constexpr int64_t kChunkRows = 96;  // rows whose partial sums stay in L1 while a block of weights is reused
constexpr int64_t kBlock = 128, kSegment = 1024, kW = 16;
static_assert(kBlock == kGemmBlock && kSegment == kGemmSegment && kW == kLanes);
static_assert(kGemmTile % kTileRows == 0 && kChunkRows % kGemmTile == 0);

// Element (r, k) of R rows that start at `a`: rows of `stride`, or a slice of a tile.
template <bool Tiled>
SB_HD float Activation(const float* a, int64_t stride, int r, int64_t k) {
  return Tiled ? a[k * kGemmTile + r] : a[r * stride + k];
}
// The rows from `row` on at column k.
template <bool Tiled>
SB_HD const float* Activations(const GemmTask& t, int64_t row, int64_t k) {
  return Tiled ? t.a + row / kGemmTile * kGemmTile * t.k + k * kGemmTile + row % kGemmTile : t.a + row * t.a_stride + k;
}

// One K block: acc[r][p] = ascending fma chain from +0 over kc <= 128 steps.
template <int R, int P, bool Tiled, class TB>
SB_HD void Block(const float* a, int64_t a_stride, const TB* b, int64_t panel_stride, int64_t kc, F32x16 (&acc)[R][P]) {
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) acc[r][p] = Splat(0.0f);
  for (int64_t k = 0; k < kc; ++k) {
    F32x16 w[P];
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) w[p] = Load(b + p * panel_stride + k * kW);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const F32x16 x = Splat(Activation<Tiled>(a, a_stride, r, k));
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) acc[r][p] = Fma(x, w[p], acc[r][p]);
    }
  }
}

SB_HD void StoreOutput(const GemmTask& t, int64_t row, int64_t panel, F32x16 total) {
  const int64_t column = panel * kW;
  const int count = static_cast<int>(t.n - column < kW ? t.n - column : kW);
  if (t.bias != nullptr) total = Add(total, count == kW ? Load(t.bias + column) : LoadFirst(t.bias + column, count));
  if (t.out_bf16) {
    BF16* out = static_cast<BF16*>(t.out) + row * t.out_stride + column;
    if (count == kW) return Store(out, total);
    StoreFirst(out, total, count);
  } else {
    float* out = static_cast<float*>(t.out) + row * t.out_stride + column;
    if (count == kW) return Store(out, total);
    StoreFirst(out, total, count);
  }
}

// Few rows: weights are read once, straight from the packed panels; all partial sums stay in registers.
template <int R, int P, class TB>
void FewRows(const GemmTask& t, int64_t panel) {
  constexpr bool kTiled = R >= kGemmTiledRows;
  const TB* b = reinterpret_cast<const TB*>(t.b) + panel * t.k * kW;
  F32x16 total[R][P], segment[R][P], acc[R][P];
  for (int r = 0; r < R; ++r)
    for (int p = 0; p < P; ++p) total[r][p] = Splat(0.0f);
  for (int64_t s = 0; s < t.k; s += kSegment) {
    const int64_t s_end = s + kSegment < t.k ? s + kSegment : t.k;
    for (int r = 0; r < R; ++r)
      for (int p = 0; p < P; ++p) segment[r][p] = Splat(0.0f);
    for (int64_t k = s; k < s_end; k += kBlock) {
      Block<R, P, kTiled>(Activations<kTiled>(t, 0, k), t.a_stride, b + k * kW, t.k * kW,
                          s_end - k < kBlock ? s_end - k : kBlock, acc);
      for (int r = 0; r < R; ++r)
        for (int p = 0; p < P; ++p) segment[r][p] = Add(segment[r][p], acc[r][p]);
    }
    for (int r = 0; r < R; ++r)
      for (int p = 0; p < P; ++p) total[r][p] = Add(total[r][p], segment[r][p]);
  }
  for (int r = 0; r < R; ++r)
    for (int p = 0; p < P; ++p) StoreOutput(t, r, panel + p, total[r][p]);
}

template <int R, int P, class TB>
void FewRowsPanels(const GemmTask& t, int64_t begin, int64_t end) {
  int64_t panel = begin;
  for (; panel + P <= end; panel += P) FewRows<R, P, TB>(t, panel);
  for (; panel < end; ++panel) FewRows<R, 1, TB>(t, panel);
}

// As many panels (streams of weights) as the accumulators' registers allow.
template <int R>
constexpr int FewPanels() {
  constexpr int fit = kTileRows * kTilePanels / R;
  return fit < 1 ? 1 : fit < kVectorPanels ? fit : kVectorPanels;
}

// Adds one block's chain to the segment sums of R rows.
template <int R, int P>
void BlockIntoSegment(const float* a, const float* b, int64_t kc, float* segment) {
  F32x16 acc[R][P];
  Block<R, P, true>(a, 0, b, kBlock * kW, kc, acc);
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) {
      float* s = segment + (r * P + p) * kW;
      Store(s, Add(Load(s), acc[r][p]));
    }
}

template <int P, int R = kTileRows>
void BlockRows(int64_t rows, const float* a, const float* b, int64_t kc, float* segment) {
  if constexpr (R > 0) {
    if (rows == R) return BlockIntoSegment<R, P>(a, b, kc, segment);
    BlockRows<P, R - 1>(rows, a, b, kc, segment);
  }
}

// Adds one segment's sums to the totals of `rows` rows, in P panels: a block of weights is widened to fp32 once and used
// by all rows.
template <int P, class TB>
void AddSegment(const GemmTask& t, int64_t row, int64_t rows, int64_t panel, int64_t s, float* total) {
  alignas(64) float weights[P * kBlock * kW], segment[kChunkRows * P * kW];
  const TB* b = reinterpret_cast<const TB*>(t.b) + panel * t.k * kW;
  const int64_t s_end = s + kSegment < t.k ? s + kSegment : t.k, cells = rows * P * kW;
  for (int64_t i = 0; i < cells; i += kW) Store(segment + i, Splat(0.0f));
  for (int64_t k = s; k < s_end; k += kBlock) {
    const int64_t kc = s_end - k < kBlock ? s_end - k : kBlock;
    for (int p = 0; p < P; ++p)
      for (int64_t i = 0; i < kc; ++i) Store(weights + (p * kBlock + i) * kW, Load(b + (p * t.k + k + i) * kW));
    for (int64_t r = 0; r < rows; r += kTileRows)
      BlockRows<P>(rows - r < kTileRows ? rows - r : kTileRows, Activations<true>(t, row + r, k), weights, kc,
                   segment + r * P * kW);
  }
  for (int64_t i = 0; i < cells; i += kW) Store(total + i, Add(Load(total + i), Load(segment + i)));
}

// Many rows. 96 rows of K = 7168 (2.6 MiB) outgrow an L2, one segment of them (384 KiB) does not: up to 16 panels go
// through a segment before the next one.
template <class TB>
void ManyRows(const GemmTask& t, int64_t begin, int64_t end) {
  constexpr int64_t kPanels = 16;
  alignas(64) float total[kPanels * kChunkRows * kW];  // [pair of panels][row][2][16]; [row][16] where a pair lacks one
  for (int64_t first = begin; first < end; first += kPanels) {
    const int64_t last = first + kPanels < end ? first + kPanels : end;
    for (int64_t row = 0; row < t.m; row += kChunkRows) {
      const int64_t rows = t.m - row < kChunkRows ? t.m - row : kChunkRows, cells = (last - first) * rows * kW;
      for (int64_t i = 0; i < cells; i += kW) Store(total + i, Splat(0.0f));
      for (int64_t s = 0; s < t.k; s += kSegment) {
        int64_t panel = first;
        for (; panel + kTilePanels <= last; panel += kTilePanels)
          AddSegment<kTilePanels, TB>(t, row, rows, panel, s, total + (panel - first) * rows * kW);
        for (; panel < last; ++panel) AddSegment<1, TB>(t, row, rows, panel, s, total + (panel - first) * rows * kW);
      }
      for (int64_t panel = first; panel < last;) {
        const int64_t width = panel + kTilePanels <= last ? kTilePanels : 1;
        const float* from = total + (panel - first) * rows * kW;
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t p = 0; p < width; ++p) StoreOutput(t, row + r, panel + p, Load(from + (r * width + p) * kW));
        panel += width;
      }
    }
  }
}

template <class TB, int R = 1>
void Panels(const GemmTask& t, int64_t begin, int64_t end) {
  if constexpr (R <= kTileRows) {
    if (t.m == R) return FewRowsPanels<R, FewPanels<R>(), TB>(t, begin, end);
    return Panels<TB, R + 1>(t, begin, end);
  } else {
    ManyRows<TB>(t, begin, end);
  }
}

// fp8: every product (8 significant bits) and every partial sum (below 2^43 in units of 2^-18) is exact in fp64, so the
// order inside a block is free, and fused or not; the block's value is rounded to fp32 once.
typedef double F64x8 __attribute__((vector_size(64)));

SB_HD void FmaExact(double x, const F64x8& w, F64x8& acc) {
#if defined(SB_ISA_AVX512)
  acc = (F64x8)_mm512_fmadd_pd(_mm512_set1_pd(x), (__m512d)w, (__m512d)acc);
#elif defined(SB_ISA_AVX2)
  __m256d lanes[2], sum[2];
  std::memcpy(lanes, &w, sizeof lanes), std::memcpy(sum, &acc, sizeof sum);
  for (int i = 0; i < 2; ++i) sum[i] = _mm256_fmadd_pd(_mm256_set1_pd(x), lanes[i], sum[i]);
  std::memcpy(&acc, sum, sizeof sum);
#else
  acc += x * w;
#endif
}

// Sixteen E4M3 that are not NaN, in fp64. On x86 by way of fp16, whose layout holds E4M3's exponent, mantissa and
// subnormals 2^-8 too small.
SB_HD void WidenE4M3(const uint8_t* p, F64x8 (&to)[2]) {
#if defined(SB_ISA_AVX512)
  const __m256i wide = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  const __m256i half = _mm256_and_si256(_mm256_slli_epi16(wide, 7), _mm256_set1_epi16(static_cast<short>(0xbfff)));
  const __m512 x = _mm512_mul_ps(_mm512_cvtph_ps(half), _mm512_set1_ps(0x1p8f));
  to[0] = (F64x8)_mm512_cvtps_pd(_mm512_castps512_ps256(x));
  to[1] = (F64x8)_mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1));
#else
  float x[kW];
  Store(x, LoadE4M3(reinterpret_cast<const E4M3*>(p)));
  for (int j = 0; j < kW; ++j) to[j / 8][j % 8] = static_cast<double>(x[j]);
#endif
}

#if defined(SB_ISA_AVX512)
constexpr int kScaledRows = 6, kScaledPanels = 2;  // 24 accumulators, 4 weights, 1 broadcast
#else
constexpr int kScaledRows = 2, kScaledPanels = 1;
#endif

// One K block of R rows (a: [R][kBlock]) and P panels into the segment sums; panel_scale[p] is b's scale of the block.
template <int R, int P>
void ScaledBlock(const double* a, const F64x8* b, int64_t kc, const float* row_scale, int64_t row_scale_stride,
                 const float* panel_scale, float* segment) {
  F64x8 acc[R][P * 2];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int p = 0; p < P * 2; ++p) acc[r][p] = F64x8{};
  for (int64_t i = 0; i < kc; ++i) {
    F64x8 w[P * 2];
#pragma GCC unroll 8
    for (int p = 0; p < P * 2; ++p) w[p] = b[(p / 2 * kBlock + i) * 2 + p % 2];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (int p = 0; p < P * 2; ++p) FmaExact(a[r * kBlock + i], w[p], acc[r][p]);
  }
  for (int r = 0; r < R; ++r)
    for (int p = 0; p < P; ++p) {
      float dot[kW];
      for (int j = 0; j < kW; ++j) dot[j] = static_cast<float>(acc[r][p * 2 + j / 8][j % 8]);
      float* s = segment + (r * P + p) * kW;
      Store(s, Fma(Load(dot), Splat(::samebits::Mul(row_scale[r * row_scale_stride], panel_scale[p])), Load(s)));
    }
}

template <int P, int R = kScaledRows>
void ScaledBlockRows(int64_t rows, const double* a, const F64x8* b, int64_t kc, const float* row_scale,
                     int64_t row_scale_stride, const float* panel_scale, float* segment) {
  if constexpr (R > 0) {
    if (rows == R) return ScaledBlock<R, P>(a, b, kc, row_scale, row_scale_stride, panel_scale, segment);
    ScaledBlockRows<P, R - 1>(rows, a, b, kc, row_scale, row_scale_stride, panel_scale, segment);
  }
}

// The last block of a row may end where the allocation does.
void WidenActivations(const uint8_t* from, int64_t kc, double* to) {
  for (int64_t i = 0; i < kc; i += kW) {
    uint8_t padded[kW] = {};
    const int64_t count = kc - i < kW ? kc - i : kW;
    if (count < kW) std::memcpy(padded, from + i, static_cast<size_t>(count));
    F64x8 wide[2];
    WidenE4M3(count < kW ? padded : from + i, wide);
    std::memcpy(to + i, wide, sizeof wide);
  }
}

// A block of weights is widened once, into L1 (32 KiB for two panels), and used by up to 96 rows.
template <int P>
void ScaledPanelRows(const GemmTask& t, int64_t panel) {
  alignas(64) F64x8 weights[P * kBlock * 2];
  alignas(64) double a[kScaledRows * kBlock];
  alignas(64) float segment[kChunkRows * P * kW], total[kChunkRows * P * kW];
  const uint8_t* b = t.b + panel * t.k * kW;
  const int64_t blocks = (t.k + kBlock - 1) / kBlock;
  for (int64_t row = 0; row < t.m; row += kChunkRows) {
    const int64_t rows = t.m - row < kChunkRows ? t.m - row : kChunkRows, cells = rows * P * kW;
    for (int64_t i = 0; i < cells; i += kW) Store(total + i, Splat(0.0f));
    for (int64_t s = 0; s < t.k; s += kSegment) {
      const int64_t s_end = s + kSegment < t.k ? s + kSegment : t.k;
      for (int64_t i = 0; i < cells; i += kW) Store(segment + i, Splat(0.0f));
      for (int64_t k = s; k < s_end; k += kBlock) {
        const int64_t kc = s_end - k < kBlock ? s_end - k : kBlock, block = k / kBlock;
        float panel_scale[P];
        for (int p = 0; p < P; ++p) {
          // 16 columns never straddle a scale row: 128 is a multiple of 16.
          panel_scale[p] = t.b_scale[(panel + p) * kW / kBlock * blocks + block];
          for (int64_t i = 0; i < kc; ++i) {
            F64x8 wide[2];
            WidenE4M3(b + (p * t.k + k + i) * kW, wide);
            weights[(p * kBlock + i) * 2] = wide[0], weights[(p * kBlock + i) * 2 + 1] = wide[1];
          }
        }
        for (int64_t r = 0; r < rows; r += kScaledRows) {
          const int64_t count = rows - r < kScaledRows ? rows - r : kScaledRows;
          for (int64_t i = 0; i < count; ++i)
            WidenActivations(t.a8 + (row + r + i) * t.a8_stride + k, kc, a + i * kBlock);
          ScaledBlockRows<P>(count, a, weights, kc, t.a_scale + (row + r) * t.a_scale_stride + block, t.a_scale_stride,
                             panel_scale, segment + r * P * kW);
        }
      }
      for (int64_t i = 0; i < cells; i += kW) Store(total + i, Add(Load(total + i), Load(segment + i)));
    }
    for (int64_t r = 0; r < rows; ++r)
      for (int p = 0; p < P; ++p) StoreOutput(t, row + r, panel + p, Load(total + (r * P + p) * kW));
  }
}

void ScaledPanels(const GemmTask& t, int64_t begin, int64_t end) {
  int64_t panel = begin;
  for (; panel + kScaledPanels <= end; panel += kScaledPanels) ScaledPanelRows<kScaledPanels>(t, panel);
  for (; panel < end; ++panel) ScaledPanelRows<1>(t, panel);
}

}  // namespace

void GemmPanels(const GemmTask& task, int64_t begin, int64_t end) {
  switch (task.kind) {
    case GemmWeightKind::kBF16:
      return Panels<BF16>(task, begin, end);
    case GemmWeightKind::kF32:
      return Panels<float>(task, begin, end);
    case GemmWeightKind::kE4M3:
      return ScaledPanels(task, begin, end);
  }
}

void WidenBF16(const uint16_t* from, float* to, int64_t n) {
  const BF16* x = reinterpret_cast<const BF16*>(from);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) Store(to + i, Load(x + i));
  for (; i < n; ++i) to[i] = ToF32(x[i]);
}

void TileRows(const void* from, bool bf16, int64_t stride, int64_t rows, int64_t k, float* to) {
  constexpr int64_t kStep = 64;  // 3 KiB of the tile: a cache line is filled while it is in L1
  for (int64_t first = 0; first < k; first += kStep) {
    const int64_t end = first + kStep < k ? first + kStep : k;
    for (int64_t r = 0; r < rows; ++r) {
      if (bf16) {
        const uint16_t* x = static_cast<const uint16_t*>(from) + r * stride;
        for (int64_t i = first; i < end; ++i) to[i * kGemmTile + r] = ToF32(BF16{x[i]});
      } else {
        const float* x = static_cast<const float*>(from) + r * stride;
        for (int64_t i = first; i < end; ++i) to[i * kGemmTile + r] = x[i];
      }
    }
  }
}

}  // namespace SB_ISA
}  // namespace samebits
