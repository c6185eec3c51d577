// GEMM kernels. Outputs lie across lanes and K is walked in the plan's order, so no horizontal sum exists and tiles are
// free. Registers: AVX-512 has 32, so 12 rows x 2 panels of accumulators, 2 weights, 1 broadcast; AVX2 has 16
// half-width ones, so 6 rows x 1 panel (12 + 2 + 1).

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

// One K block: acc[r][p] = ascending fma chain from +0 over kc <= 128 steps.
template <int R, int P, class TB>
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
      const F32x16 x = Splat(a[r * a_stride + k]);
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
void FewRows(const GemmTask& t, int64_t row, int64_t panel) {
  const TB* b = reinterpret_cast<const TB*>(t.b) + panel * t.k * kW;
  const float* a = t.a + row * t.a_stride;
  F32x16 total[R][P], segment[R][P], acc[R][P];
  for (int r = 0; r < R; ++r)
    for (int p = 0; p < P; ++p) total[r][p] = Splat(0.0f);
  for (int64_t s = 0; s < t.k; s += kSegment) {
    const int64_t s_end = s + kSegment < t.k ? s + kSegment : t.k;
    for (int r = 0; r < R; ++r)
      for (int p = 0; p < P; ++p) segment[r][p] = Splat(0.0f);
    for (int64_t k = s; k < s_end; k += kBlock) {
      Block<R, P>(a + k, t.a_stride, b + k * kW, t.k * kW, s_end - k < kBlock ? s_end - k : kBlock, acc);
      for (int r = 0; r < R; ++r)
        for (int p = 0; p < P; ++p) segment[r][p] = Add(segment[r][p], acc[r][p]);
    }
    for (int r = 0; r < R; ++r)
      for (int p = 0; p < P; ++p) total[r][p] = Add(total[r][p], segment[r][p]);
  }
  for (int r = 0; r < R; ++r)
    for (int p = 0; p < P; ++p) StoreOutput(t, row + r, panel + p, total[r][p]);
}

template <int R, int P, class TB>
void FewRowsPanels(const GemmTask& t, int64_t row, int64_t begin, int64_t end) {
  int64_t panel = begin;
  for (; panel + P <= end; panel += P) FewRows<R, P, TB>(t, row, panel);
  for (; panel < end; ++panel) FewRows<R, 1, TB>(t, row, panel);
}

// Adds one block's chain to the segment sums of R rows.
template <int R, int P>
void BlockIntoSegment(const float* a, int64_t a_stride, const float* b, int64_t kc, float* segment) {
  F32x16 acc[R][P];
  Block<R, P>(a, a_stride, b, kBlock * kW, kc, acc);
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) {
      float* s = segment + (r * P + p) * kW;
      Store(s, Add(Load(s), acc[r][p]));
    }
}

template <int P, int R = kTileRows>
void BlockRows(int64_t rows, const float* a, int64_t a_stride, const float* b, int64_t kc, float* segment) {
  if constexpr (R > 0) {
    if (rows == R) return BlockIntoSegment<R, P>(a, a_stride, b, kc, segment);
    BlockRows<P, R - 1>(rows, a, a_stride, b, kc, segment);
  }
}

// Many rows: a block of weights is widened to fp32 once and used by up to 96 rows.
template <int P, class TB>
void ManyRows(const GemmTask& t, int64_t panel) {
  alignas(64) float weights[P * kBlock * kW];
  alignas(64) float segment[kChunkRows * P * kW], total[kChunkRows * P * kW];
  const TB* b = reinterpret_cast<const TB*>(t.b) + panel * t.k * kW;
  for (int64_t row = 0; row < t.m; row += kChunkRows) {
    const int64_t rows = t.m - row < kChunkRows ? t.m - row : kChunkRows, cells = rows * P * kW;
    for (int64_t i = 0; i < cells; i += kW) Store(total + i, Splat(0.0f));
    for (int64_t s = 0; s < t.k; s += kSegment) {
      const int64_t s_end = s + kSegment < t.k ? s + kSegment : t.k;
      for (int64_t i = 0; i < cells; i += kW) Store(segment + i, Splat(0.0f));
      for (int64_t k = s; k < s_end; k += kBlock) {
        const int64_t kc = s_end - k < kBlock ? s_end - k : kBlock;
        for (int p = 0; p < P; ++p)
          for (int64_t i = 0; i < kc; ++i) Store(weights + (p * kBlock + i) * kW, Load(b + (p * t.k + k + i) * kW));
        for (int64_t r = 0; r < rows; r += kTileRows)
          BlockRows<P>(rows - r < kTileRows ? rows - r : kTileRows, t.a + (row + r) * t.a_stride + k, t.a_stride,
                       weights, kc, segment + r * P * kW);
      }
      for (int64_t i = 0; i < cells; i += kW) Store(total + i, Add(Load(total + i), Load(segment + i)));
    }
    for (int64_t r = 0; r < rows; ++r)
      for (int p = 0; p < P; ++p) StoreOutput(t, row + r, panel + p, Load(total + (r * P + p) * kW));
  }
}

template <class TB>
void Panels(const GemmTask& t, int64_t begin, int64_t end) {
  switch (t.m) {
    case 0:
      return;
    case 1:
      return FewRowsPanels<1, kVectorPanels, TB>(t, 0, begin, end);
    case 2:
      return FewRowsPanels<2, kVectorPanels / 2 ? kVectorPanels / 2 : 1, TB>(t, 0, begin, end);
    case 3:
      return FewRowsPanels<3, kTilePanels, TB>(t, 0, begin, end);
    case 4:
      return FewRowsPanels<4, kTilePanels, TB>(t, 0, begin, end);
    default:
      break;
  }
  int64_t panel = begin;
  for (; panel + kTilePanels <= end; panel += kTilePanels) ManyRows<kTilePanels, TB>(t, panel);
  for (; panel < end; ++panel) ManyRows<1, TB>(t, panel);
}

// fp8: every product (8 significant bits) and every partial sum (below 2^43 in units of 2^-18) is exact in fp64, so the
// order inside a block is free; the block's value is rounded to fp32 once.
typedef double F64x8 __attribute__((vector_size(64)));

template <int R>
void ScaledRows(const GemmTask& t, int64_t row, int64_t panel, const double* b, const float* b_scale) {
  float total[R][kW] = {}, segment[R][kW];
  for (int64_t s = 0; s < t.k; s += kSegment) {
    const int64_t s_end = s + kSegment < t.k ? s + kSegment : t.k;
    std::memset(segment, 0, sizeof segment);
    for (int64_t k = s; k < s_end; k += kBlock) {
      const int64_t kc = s_end - k < kBlock ? s_end - k : kBlock, block = k / kBlock;
      alignas(64) float a[R][kBlock + kW];
      for (int r = 0; r < R; ++r) {
        const uint8_t* from = t.a8 + (row + r) * t.a8_stride + k;
        int64_t i = 0;
        for (; i + kW <= kc; i += kW) Store(a[r] + i, LoadE4M3(reinterpret_cast<const E4M3*>(from + i)));
        for (; i < kc; ++i) a[r][i] = ToF32(E4M3{from[i]});
      }
      F64x8 acc[R][2];
      for (int r = 0; r < R; ++r) acc[r][0] = acc[r][1] = F64x8{};
      for (int64_t i = 0; i < kc; ++i) {
        F64x8 w[2];
        std::memcpy(w, b + (k + i) * kW, sizeof w);
        for (int r = 0; r < R; ++r) {
          const double x = static_cast<double>(a[r][i]);
          acc[r][0] += x * w[0];
          acc[r][1] += x * w[1];
        }
      }
      for (int r = 0; r < R; ++r) {
        const float scale = ::samebits::Mul(t.a_scale[(row + r) * t.a_scale_stride + block], b_scale[block]);
        for (int64_t j = 0; j < kW; ++j)
          segment[r][j] = ::samebits::Fma(static_cast<float>(acc[r][j / 8][j % 8]), scale, segment[r][j]);
      }
    }
    for (int r = 0; r < R; ++r)
      for (int64_t j = 0; j < kW; ++j) total[r][j] = ::samebits::Add(total[r][j], segment[r][j]);
  }
  for (int r = 0; r < R; ++r) StoreOutput(t, row + r, panel, Load(total[r]));
}

void ScaledPanels(const GemmTask& t, int64_t begin, int64_t end, double* widened) {
  const int64_t blocks = (t.k + kBlock - 1) / kBlock;
  for (int64_t panel = begin; panel < end; ++panel) {
    const uint8_t* b = t.b + panel * t.k * kW;
    for (int64_t i = 0; i < t.k; ++i) {
      float w[kW];
      Store(w, LoadE4M3(reinterpret_cast<const E4M3*>(b + i * kW)));
      for (int64_t j = 0; j < kW; ++j) widened[i * kW + j] = static_cast<double>(w[j]);
    }
    // 16 columns never straddle a scale row: 128 is a multiple of 16.
    const float* b_scale = t.b_scale + panel * kW / kBlock * blocks;
    int64_t row = 0;
    for (; row + 4 <= t.m; row += 4) ScaledRows<4>(t, row, panel, widened, b_scale);
    for (; row < t.m; ++row) ScaledRows<1>(t, row, panel, widened, b_scale);
  }
}

}  // namespace

void GemmPanels(const GemmTask& task, int64_t begin, int64_t end) {
  switch (task.kind) {
    case GemmWeightKind::kBF16:
      return Panels<BF16>(task, begin, end);
    case GemmWeightKind::kF32:
      return Panels<float>(task, begin, end);
    case GemmWeightKind::kE4M3: {
      double* widened = static_cast<double*>(__builtin_malloc(static_cast<size_t>(task.k * kW) * sizeof(double)));
      ScaledPanels(task, begin, end, widened);
      __builtin_free(widened);
      return;
    }
  }
}

void WidenBF16(const uint16_t* from, float* to, int64_t n) {
  const BF16* x = reinterpret_cast<const BF16*>(from);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) Store(to + i, Load(x + i));
  for (; i < n; ++i) to[i] = ToF32(x[i]);
}

}  // namespace SB_ISA
}  // namespace samebits
