// Attention kernels. A block of 64 keys is widened and transposed once for all heads; scores have keys across lanes, the
// value product has value columns across lanes. Both are ascending chains, so no horizontal sum exists.

#include "ops/attention/attention_simd.h"

#include "numerics/simd.h"
#include "numerics/simd_rows.h"
#include "ops/attention/attention.h"

namespace samebits {
namespace SB_ISA {
namespace {

constexpr int kB = kAttentionBlock, kV = kB / kLanes;
#if defined(SB_ISA_AVX512)
constexpr int kHeadTile = 4;  // 4 heads x 4 vectors of keys or columns: 16 accumulators
#else
constexpr int kHeadTile = 1;
#endif

// 16 rows of `columns` (at most 16) values, rows `stride` apart, to columns kB apart.
void Transpose(const float* rows, int64_t stride, int64_t columns, float* out) {
#if defined(SB_ISA_AVX512)
  __m512 r[16], t[16];
  for (int i = 0; i < 16; ++i) r[i] = _mm512_loadu_ps(rows + i * stride);
  for (int i = 0; i < 16; i += 2)
    t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]), t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
  for (int i = 0; i < 16; i += 4)
    for (int j = 0; j < 2; ++j) {
      const __m512d x = _mm512_castps_pd(t[i + j]), y = _mm512_castps_pd(t[i + j + 2]);
      r[i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(x, y));
      r[i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(x, y));
    }
  // Quarter L of r[4 i + c] now holds column 4 L + c of rows 4 i .. 4 i + 3.
  for (int c = 0; c < 4; ++c) {
    const __m512 a = _mm512_shuffle_f32x4(r[c], r[4 + c], 0x88), b = _mm512_shuffle_f32x4(r[8 + c], r[12 + c], 0x88);
    const __m512 d = _mm512_shuffle_f32x4(r[c], r[4 + c], 0xdd), e = _mm512_shuffle_f32x4(r[8 + c], r[12 + c], 0xdd);
    t[c] = _mm512_shuffle_f32x4(a, b, 0x88), t[8 + c] = _mm512_shuffle_f32x4(a, b, 0xdd);
    t[4 + c] = _mm512_shuffle_f32x4(d, e, 0x88), t[12 + c] = _mm512_shuffle_f32x4(d, e, 0xdd);
  }
  if (columns == kLanes) {
    for (int i = 0; i < 16; ++i) _mm512_storeu_ps(out + i * kB, t[i]);
  } else {
    for (int i = 0; i < columns; ++i) _mm512_storeu_ps(out + i * kB, t[i]);
  }
#else
  for (int64_t d = 0; d < columns; ++d)
    for (int j = 0; j < kLanes; ++j) out[d * kB + j] = rows[j * stride + d];
#endif
}

// dots[h][64] of H heads with the transposed block, by the GEMM plan over the head dimension.
template <int H>
void Scores(const float* q, int64_t dim, const float* transposed, float* out) {
  F32x16 total[H][kV], segment[H][kV], acc[H][kV];
  for (int h = 0; h < H; ++h)
    for (int v = 0; v < kV; ++v) total[h][v] = Splat(0.0f);
  for (int64_t s = 0; s < dim; s += kGemmSegment) {
    const int64_t s_end = s + kGemmSegment < dim ? s + kGemmSegment : dim;
    for (int h = 0; h < H; ++h)
      for (int v = 0; v < kV; ++v) segment[h][v] = Splat(0.0f);
    for (int64_t b = s; b < s_end; b += kGemmBlock) {
      const int64_t b_end = b + kGemmBlock < s_end ? b + kGemmBlock : s_end;
#pragma GCC unroll 4
      for (int h = 0; h < H; ++h)
#pragma GCC unroll 4
        for (int v = 0; v < kV; ++v) acc[h][v] = Splat(0.0f);
      for (int64_t d = b; d < b_end; ++d) {
        F32x16 k[kV];
#pragma GCC unroll 4
        for (int v = 0; v < kV; ++v) k[v] = Load(transposed + d * kB + v * kLanes);
#pragma GCC unroll 4
        for (int h = 0; h < H; ++h) {
          const F32x16 x = Splat(q[h * dim + d]);
#pragma GCC unroll 4
          for (int v = 0; v < kV; ++v) acc[h][v] = Fma(x, k[v], acc[h][v]);
        }
      }
      for (int h = 0; h < H; ++h)
        for (int v = 0; v < kV; ++v) segment[h][v] = Add(segment[h][v], acc[h][v]);
    }
    for (int h = 0; h < H; ++h)
      for (int v = 0; v < kV; ++v) total[h][v] = Add(total[h][v], segment[h][v]);
  }
  for (int h = 0; h < H; ++h)
    for (int v = 0; v < kV; ++v) Store(out + h * kB + v * kLanes, total[h][v]);
}

// o[h][c .. c+16W) = ascending chain over keys of weight * value.
template <int H, int W>
void Values(const float* weights, const float* values, int64_t value_stride, int64_t count, float* o,
            int64_t o_stride) {
  F32x16 acc[H][W];
#pragma GCC unroll 4
  for (int h = 0; h < H; ++h)
#pragma GCC unroll 4
    for (int w = 0; w < W; ++w) acc[h][w] = Splat(0.0f);
  for (int64_t j = 0; j < count; ++j) {
    F32x16 v[W];
#pragma GCC unroll 4
    for (int w = 0; w < W; ++w) v[w] = Load(values + j * value_stride + w * kLanes);
#pragma GCC unroll 4
    for (int h = 0; h < H; ++h) {
      const F32x16 x = Splat(weights[h * kB + j]);
#pragma GCC unroll 4
      for (int w = 0; w < W; ++w) acc[h][w] = Fma(x, v[w], acc[h][w]);
    }
  }
  for (int h = 0; h < H; ++h)
    for (int w = 0; w < W; ++w) Store(o + h * o_stride + w * kLanes, acc[h][w]);
}

// `width` is 64 or 16 columns.
template <int H>
void ValueColumns(const float* weights, const float* values, int64_t stride, int64_t count, float* o, int64_t o_stride,
                  int64_t width) {
  if (width == 4 * kLanes) {
    Values<H, 4>(weights, values, stride, count, o, o_stride);
  } else {
    Values<H, 1>(weights, values, stride, count, o, o_stride);
  }
}

// Scores to weights of one head, in place; returns the block's reference and l. Entries past count are absent.
AttentionState Weights(float* dots, int64_t count, float factor, bool bf16_weights) {
  float n[kB];
  float most = static_cast<float>(kAttentionEmpty);
  for (int v = 0; v < kV; ++v)
    Store(n + v * kLanes, RoundToInt(AttentionScore(Load(dots + v * kLanes), Splat(factor))));
  for (int64_t j = count; j < kB; ++j) n[j] = most;
  // Sixteen running maxima: one chain of 64 comparisons would cost more than the scores of a small head.
  float high[kLanes];
  F32x16 best = Load(n);
  for (int v = 1; v < kV; ++v) best = Select(Lt(best, Load(n + v * kLanes)), Load(n + v * kLanes), best);
  Store(high, best);
  for (int j = 0; j < kLanes; ++j) most = high[j] > most ? high[j] : most;
  float weight[kB];
  for (int v = 0; v < kV; ++v) {
    const F32x16 t = AttentionScore(Load(dots + v * kLanes), Splat(factor)), whole = Load(n + v * kLanes);
    const F32x16 w = Mul(Exp2Fraction(Sub(t, whole)), AttentionRescale(Sub(whole, Splat(most))));
    Store(weight + v * kLanes, w);
    Store(dots + v * kLanes, bf16_weights ? FromBits(Shl<16>(RoundToBF16Bits(w))) : w);
  }
  AttentionState state;
  state.m = static_cast<int>(most);
  for (int64_t j = 0; j < count; ++j) state.l = ::samebits::Add(state.l, weight[j]);
  return state;
}

struct Sums {
  AttentionState state;
  float* o;
};

void Merge(Sums* into, const Sums& from, int64_t padded) {
  const int m = into->state.m > from.state.m ? into->state.m : from.state.m;
  const float a = AttentionRescale(into->state.m, m), b = AttentionRescale(from.state.m, m);
  into->state.l = AttentionMergeValue(into->state.l, a, from.state.l, b);
  into->state.m = m;
  for (int64_t c = 0; c < padded; c += kLanes)
    Store(into->o + c, AttentionMergeValue(Load(into->o + c), Splat(a), Load(from.o + c), Splat(b)));
}

}  // namespace

void AttentionToken(const AttentionTask& t) {
  const int64_t heads = t.head_end - t.head_begin, padded = (t.value_dim + kLanes - 1) / kLanes * kLanes;
  const int64_t row_stride = (t.dim + kLanes - 1) / kLanes * kLanes;
  float* at = t.scratch;
  const auto take = [&](int64_t n) {
    float* p = at;
    at += n;
    return p;
  };
  float* rows = take(kB * row_stride);   // keys widened, row-major
  float* transposed = take(kB * t.dim);  // [dim, 64]
  float* values = t.values_are_keys && padded <= row_stride ? rows : take(kB * padded);
  const int64_t value_stride = values == rows ? row_stride : padded;
  float* q = take(heads * t.dim);
  float* dots = take(heads * kB);
  float* o = take(3 * heads * padded);
  const auto sums = [&](int which, int64_t h) { return o + (which * heads + h) * padded; };
  for (int64_t h = 0; h < heads; ++h)
    ForLanes(t.dim, [&](int64_t i, int c) {
      StoreAny(q + h * t.dim, false, i, c, LoadAny(t.q, t.q_bf16, (t.head_begin + h) * t.dim + i, c));
    });

  Sums segment[1024], total[1024];
  for (int64_t h = 0; h < heads; ++h) {
    segment[h] = {{}, sums(1, h)}, total[h] = {{}, sums(2, h)};
    for (int64_t c = 0; c < padded; c += kLanes)
      Store(segment[h].o + c, Splat(0.0f)), Store(total[h].o + c, Splat(0.0f));
  }
  const float factor = AttentionScoreFactor(t.scale);
  int blocks = 0;
  for (int64_t begin = 0; begin < t.count; begin += kB) {
    const int64_t count = t.count - begin < kB ? t.count - begin : kB;
    for (int64_t j = 0; j < count; ++j) {
      ForLanes(t.dim, [&](int64_t i, int c) {
        StoreAny(rows + j * row_stride, false, i, c, LoadAny(t.keys + t.key_at[begin + j], t.kv_bf16, i, c));
      });
      if (values != rows)
        ForLanes(t.value_dim, [&](int64_t i, int c) {
          Store(values + j * padded + i, LoadAny(t.values + t.value_at[begin + j], t.kv_bf16, i, c));
        });
    }
    for (int64_t i = count * row_stride; i < kB * row_stride; ++i) rows[i] = 0.0f;
    for (int64_t d = 0; d < t.dim; d += kLanes)
      for (int v = 0; v < kV; ++v)
        Transpose(rows + v * kLanes * row_stride + d, row_stride, t.dim - d < kLanes ? t.dim - d : kLanes,
                  transposed + d * kB + v * kLanes);
    int64_t h = 0;
    for (; h + kHeadTile <= heads; h += kHeadTile) Scores<kHeadTile>(q + h * t.dim, t.dim, transposed, dots + h * kB);
    for (; h < heads; ++h) Scores<1>(q + h * t.dim, t.dim, transposed, dots + h * kB);
    AttentionState state[1024];
    for (h = 0; h < heads; ++h) state[h] = Weights(dots + h * kB, count, factor, t.kv_bf16);
    // Columns outermost: 64 keys x 64 columns stay in L1 for all heads, where a whole value block would not.
    for (int64_t c = 0; c < padded;) {
      const int64_t width = padded - c >= 4 * kLanes ? 4 * kLanes : kLanes;
      h = 0;
      for (; h + kHeadTile <= heads; h += kHeadTile)
        ValueColumns<kHeadTile>(dots + h * kB, values + c, value_stride, count, sums(0, h) + c, padded, width);
      for (; h < heads; ++h)
        ValueColumns<1>(dots + h * kB, values + c, value_stride, count, sums(0, h) + c, padded, width);
      c += width;
    }
    for (h = 0; h < heads; ++h) Merge(&segment[h], {state[h], sums(0, h)}, padded);
    if (++blocks == kAttentionSegmentBlocks || begin + kB >= t.count) {
      blocks = 0;
      for (h = 0; h < heads; ++h) {
        Merge(&total[h], segment[h], padded);
        segment[h].state = {};
        for (int64_t c = 0; c < padded; c += kLanes) Store(segment[h].o + c, Splat(0.0f));
      }
    }
  }
  for (int64_t h = 0; h < heads; ++h) {
    const float l = total[h].state.l;
    ForLanes(t.value_dim, [&](int64_t i, int c) {
      const F32x16 out = l > 0.0f ? Div(Load(total[h].o + i), Splat(l)) : Splat(0.0f);
      StoreAny(t.out, t.out_bf16, (t.head_begin + h) * t.value_dim + i, c, out);
    });
    if (t.lse) t.lse[t.head_begin + h] = AttentionLse(total[h].state.m, l);
  }
}

}  // namespace SB_ISA
}  // namespace samebits
