#include "forensics/compare_simd.h"

#include <cstring>

#if defined(SB_ISA_AVX512)
#include <immintrin.h>
#endif

#include "numerics/float_order.h"
#include "numerics/format.h"

namespace samebits {
namespace SB_ISA {
namespace {

using Sums = FloatCompareSums;

constexpr int kBlock = 64;  // elements that are skipped together when equal

SB_HD bool IsInf(float x) { return (Bits(x) & 0x7fffffffu) == 0x7f800000u; }

template <class T>
SB_HD T At(const void* p, int64_t i) {
  T v;
  std::memcpy(&v, static_cast<const char*>(p) + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return v;
}

SB_HD int64_t Ordered(float, float x) { return OrderedBits32(Bits(x)); }
SB_HD int64_t Ordered(BF16, float x) { return OrderedBits16(static_cast<uint16_t>(Bits(x) >> 16)); }

SB_HD int Bucket(uint64_t ulp) {
  const int b = 63 - __builtin_clzll(ulp);
  return b > 17 ? 17 : b;
}

SB_HD void CountSide(float x, int64_t* nan, int64_t* inf, int64_t* neg_zero) {
  *nan += IsNan(x);
  *inf += IsInf(x);
  *neg_zero += Bits(x) == 0x80000000u;
}

// The meaning of every counter, one element at a time. The vector paths below hand over what is rare.
template <class T>
SB_HD void One(float a, float b, bool same_bits, int64_t at, int lane, Sums* s) {
  CountSide(a, &s->nan_a, &s->inf_a, &s->neg_zero_a);
  CountSide(b, &s->nan_b, &s->inf_b, &s->neg_zero_b);
  if (!same_bits) {
    ++s->bit_mismatches;
    if (s->first_bit < 0) s->first_bit = at;
    s->last_bit = at;
  }
  const bool nan_a = IsNan(a), nan_b = IsNan(b);
  if (nan_a != nan_b || (!nan_a && a != b)) {
    ++s->value_mismatches;
    if (s->first_value < 0) s->first_value = at;
    s->last_value = at;
  }
  if (nan_a || nan_b) {
    s->nan_one_side += nan_a != nan_b;
    return;
  }
  ++s->number_pairs;
  const double x = static_cast<double>(a), y = static_cast<double>(b);
  if (!IsInf(a) && !IsInf(b)) {
    s->aa[lane] += x * x;
    s->bb[lane] += y * y;
    s->ab[lane] += x * y;
  }
  if (a == b) return;
  const double d = x - y, m = d < 0 ? -d : d;
  s->a_larger += a > b;
  s->b_larger += a < b;
  s->dd[lane] += d * d;
  s->abs[lane] += m;
  if (m > s->max_abs) s->max_abs = m, s->max_abs_at = at;
  if (y != 0) {
    const double rel = m / (y < 0 ? -y : y);
    if (rel > s->max_rel) s->max_rel = rel, s->max_rel_at = at;
  }
  const int64_t steps = Ordered(T{}, a) - Ordered(T{}, b);
  const uint64_t ulp = static_cast<uint64_t>(steps < 0 ? -steps : steps);
  if (ulp > s->max_ulp) s->max_ulp = ulp;
  ++s->ulp_histogram[Bucket(ulp)];
}

template <class T>
SB_HD void Several(const void* a, const void* b, int64_t i, int64_t n, int64_t base, Sums* s) {
  for (int64_t k = i; k < i + n; ++k) {
    const T x = At<T>(a, k), y = At<T>(b, k);
    One<T>(ToF32(x), ToF32(y), std::memcmp(&x, &y, sizeof(T)) == 0, base + k, static_cast<int>((base + k) % 16), s);
  }
}

template <class T>
SB_HD void SameOne(float a, int lane, Sums* s) {
  CountSide(a, &s->nan_a, &s->inf_a, &s->neg_zero_a);
  CountSide(a, &s->nan_b, &s->inf_b, &s->neg_zero_b);
  if (IsNan(a)) return;
  ++s->number_pairs;
  if (!IsInf(a)) s->same[lane] += static_cast<double>(a) * static_cast<double>(a);
}

#if defined(SB_ISA_AVX512)

SB_HD __m512 Load16(const float* p) { return _mm512_loadu_ps(p); }
SB_HD __m512 Load16(const BF16* p) {
  const __m256i h = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}
SB_HD __m512d Low(__m512 v) { return _mm512_cvtps_pd(_mm512_castps512_ps256(v)); }
SB_HD __m512d High(__m512 v) { return _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1)); }
// NaN, infinity or -0: left to the scalar code.
SB_HD __mmask16 Rare(__m512 v) { return _mm512_fpclass_ps_mask(v, 0x01 | 0x04 | 0x08 | 0x10 | 0x80); }
// Position on the line of floats of the format; kShift drops the zero bits below a bf16.
template <int kShift>
SB_HD __m512i OrderedV(__m512 v) {
  const __m512i u = _mm512_castps_si512(v), sign = _mm512_srai_epi32(u, 31);
  const __m512i m = _mm512_srli_epi32(_mm512_and_si512(u, _mm512_set1_epi32(0x7fffffff)), kShift);
  return _mm512_sub_epi32(_mm512_xor_si512(m, sign), sign);
}

// Eighteen 4-bit counters a lane, spilled before they can overflow: shifts by 32 and more give 0, which selects the
// word.
struct Histogram {
  __m512i word[3] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512()};
  int filled = 0;

  SB_HD void Add(__mmask16 lanes, __m512i ulp, Sums* s) {
    const __m512i exponent = _mm512_srli_epi32(_mm512_castps_si512(_mm512_cvt_roundepu32_ps(ulp, 0x08 | 0x03)), 23);
    const __m512i bucket = _mm512_min_epi32(_mm512_sub_epi32(exponent, _mm512_set1_epi32(127)), _mm512_set1_epi32(17));
    const __m512i shift = _mm512_slli_epi32(bucket, 2), one = _mm512_maskz_set1_epi32(lanes, 1);
    word[0] = _mm512_add_epi32(word[0], _mm512_sllv_epi32(one, shift));
    word[1] = _mm512_add_epi32(word[1], _mm512_sllv_epi32(one, _mm512_sub_epi32(shift, _mm512_set1_epi32(32))));
    word[2] = _mm512_add_epi32(word[2], _mm512_sllv_epi32(one, _mm512_sub_epi32(shift, _mm512_set1_epi32(64))));
    if (++filled == 15) Spill(s);
  }
  SB_HD void Spill(Sums* s) {
    // Sum neighbouring lanes' nibbles as bytes first: 16 lanes x 15 = 240 fits a byte.
    for (int w = 0; w < 3; ++w) {
      const __m512i low = _mm512_and_si512(word[w], _mm512_set1_epi32(0x0f0f0f0f));
      const __m512i high = _mm512_and_si512(_mm512_srli_epi32(word[w], 4), _mm512_set1_epi32(0x0f0f0f0f));
      const uint32_t even = Bytes(low), odd = Bytes(high);
      for (int k = 0; k < 8 && 8 * w + k < 18; ++k)
        s->ulp_histogram[8 * w + k] += ((k % 2 ? odd : even) >> (8 * (k / 2))) & 0xff;
      word[w] = _mm512_setzero_si512();
    }
    filled = 0;
  }
  static SB_HD uint32_t Bytes(__m512i v) {
    const __m256i a = _mm256_add_epi8(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
    const __m128i b = _mm_add_epi8(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    const __m128i c = _mm_add_epi8(b, _mm_srli_si128(b, 8));
    return static_cast<uint32_t>(_mm_cvtsi128_si32(_mm_add_epi8(c, _mm_srli_si128(c, 4))));
  }
};

struct Lanes {
  __m512d lo, hi;
  SB_HD explicit Lanes(const double* p) : lo(_mm512_loadu_pd(p)), hi(_mm512_loadu_pd(p + 8)) {}
  SB_HD void To(double* p) const { _mm512_storeu_pd(p, lo), _mm512_storeu_pd(p + 8, hi); }
  SB_HD void AddProduct(__m512d xl, __m512d yl, __m512d xh, __m512d yh) {
    lo = _mm512_add_pd(lo, _mm512_mul_pd(xl, yl));
    hi = _mm512_add_pd(hi, _mm512_mul_pd(xh, yh));
  }
};

template <class T>
void Run(const T* a, const T* b, int64_t n, int64_t base, Sums* s) {
  constexpr int kShift = sizeof(T) == 2 ? 16 : 0;
  Lanes same(s->same), aa(s->aa), bb(s->bb), ab(s->ab), dd(s->dd), abs(s->abs);
  Histogram histogram;
  __m512i max_ulp = _mm512_setzero_si512();
  const auto save = [&] { same.To(s->same), aa.To(s->aa), bb.To(s->bb), ab.To(s->ab), dd.To(s->dd), abs.To(s->abs); };
  const auto load = [&] {
    same = Lanes(s->same), aa = Lanes(s->aa), bb = Lanes(s->bb), ab = Lanes(s->ab), dd = Lanes(s->dd),
    abs = Lanes(s->abs);
  };
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    constexpr int kVectors = kBlock * static_cast<int>(sizeof(T)) / 64;
    __m512i any = _mm512_setzero_si512();
    for (int v = 0; v < kVectors; ++v)
      any = _mm512_or_si512(any, _mm512_xor_si512(_mm512_loadu_si512(reinterpret_cast<const char*>(a + i) + 64 * v),
                                                  _mm512_loadu_si512(reinterpret_cast<const char*>(b + i) + 64 * v)));
    if (_mm512_test_epi64_mask(any, any) == 0) {
      __m512 x[kBlock / 16];
      __mmask16 rare = 0;
      for (int v = 0; v < kBlock / 16; ++v) {
        x[v] = Load16(a + i + 16 * v);
        rare = static_cast<__mmask16>(rare | _mm512_fpclass_ps_mask(x[v], 0x01 | 0x04 | 0x08 | 0x10 | 0x80));
      }
      if (rare) [[unlikely]] {
        save();
        for (int64_t k = i; k < i + kBlock; ++k) SameOne<T>(ToF32(At<T>(a, k)), static_cast<int>((base + k) % 16), s);
        load();
        continue;
      }
      for (int v = 0; v < kBlock / 16; ++v) {
        const __m512d lo = Low(x[v]), hi = High(x[v]);
        same.AddProduct(lo, lo, hi, hi);
      }
      s->number_pairs += kBlock;
      continue;
    }
    for (int64_t k = i; k < i + kBlock; k += 16) {
      const __m512 x = Load16(a + k), y = Load16(b + k);
      if (static_cast<unsigned>(Rare(x)) | static_cast<unsigned>(Rare(y))) [[unlikely]] {
        save();
        Several<T>(a, b, k, 16, base, s);
        load();
        continue;
      }
      s->number_pairs += 16;
      const __m512d xl = Low(x), xh = High(x), yl = Low(y), yh = High(y);
      aa.AddProduct(xl, xl, xh, xh);
      bb.AddProduct(yl, yl, yh, yh);
      ab.AddProduct(xl, yl, xh, yh);
      const __mmask16 differ = _mm512_cmp_ps_mask(x, y, _CMP_NEQ_UQ);
      if (!differ) continue;
      const int first = __builtin_ctz(differ), last = 31 - __builtin_clz(differ), count = __builtin_popcount(differ);
      s->bit_mismatches += count;
      s->value_mismatches += count;
      if (s->first_bit < 0) s->first_bit = base + k + first;
      if (s->first_value < 0) s->first_value = base + k + first;
      s->last_bit = s->last_value = base + k + last;
      const int larger = __builtin_popcount(_mm512_cmp_ps_mask(x, y, _CMP_GT_OQ));
      s->a_larger += larger;
      s->b_larger += count - larger;
      const __m512d dl = _mm512_sub_pd(xl, yl), dh = _mm512_sub_pd(xh, yh);
      const __m512d ml = _mm512_abs_pd(dl), mh = _mm512_abs_pd(dh);
      dd.AddProduct(dl, dl, dh, dh);
      abs.lo = _mm512_add_pd(abs.lo, ml);
      abs.hi = _mm512_add_pd(abs.hi, mh);
      const __m512d best = _mm512_set1_pd(s->max_abs), ratio = _mm512_set1_pd(s->max_rel);
      const __m512d bl = _mm512_mul_pd(ratio, _mm512_abs_pd(yl)), bh = _mm512_mul_pd(ratio, _mm512_abs_pd(yh));
      // d / |b| > r implies d >= fl(r * |b|): rounding is monotone and d is a double.
      unsigned look = static_cast<unsigned>(_mm512_cmp_pd_mask(ml, best, _CMP_GT_OQ)) |
                      static_cast<unsigned>(_mm512_cmp_pd_mask(ml, bl, _CMP_GE_OQ)) |
                      (static_cast<unsigned>(_mm512_cmp_pd_mask(mh, best, _CMP_GT_OQ)) |
                       static_cast<unsigned>(_mm512_cmp_pd_mask(mh, bh, _CMP_GE_OQ)))
                          << 8;
      for (look &= differ; look != 0; look &= look - 1) {
        const int j = __builtin_ctz(look);
        const double p = static_cast<double>(ToF32(At<T>(a, k + j))), q = static_cast<double>(ToF32(At<T>(b, k + j)));
        const double m = p < q ? q - p : p - q;
        if (m > s->max_abs) s->max_abs = m, s->max_abs_at = base + k + j;
        if (q != 0 && m / (q < 0 ? -q : q) > s->max_rel)
          s->max_rel = m / (q < 0 ? -q : q), s->max_rel_at = base + k + j;
      }
      // Distances need 32 bits without a sign: the larger minus the smaller.
      const __m512i oa = OrderedV<kShift>(x), ob = OrderedV<kShift>(y);
      const __m512i ulp = _mm512_sub_epi32(_mm512_max_epi32(oa, ob), _mm512_min_epi32(oa, ob));
      max_ulp = _mm512_max_epu32(max_ulp, ulp);
      histogram.Add(differ, ulp, s);
    }
  }
  histogram.Spill(s);
  const uint64_t most = _mm512_reduce_max_epu32(max_ulp);
  if (most > s->max_ulp) s->max_ulp = most;
  save();
  Several<T>(a, b, i, n - i, base, s);
}

#else

template <class T>
void Run(const T* a, const T* b, int64_t n, int64_t base, Sums* s) {
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    if (std::memcmp(a + i, b + i, kBlock * sizeof(T)) != 0) {
      Several<T>(a, b, i, kBlock, base, s);
      continue;
    }
    // Rare values have all exponent bits set, or are -0.
    bool rare = false;
    float x[kBlock];
    for (int k = 0; k < kBlock; ++k) {
      x[k] = ToF32(At<T>(a, i + k));
      rare |= (Bits(x[k]) & 0x7f800000u) == 0x7f800000u || Bits(x[k]) == 0x80000000u;
    }
    if (rare) {
      for (int k = 0; k < kBlock; ++k) SameOne<T>(x[k], k % 16, s);
      continue;
    }
    for (int k = 0; k < kBlock; k += 16)
      for (int j = 0; j < 16; ++j) s->same[j] += static_cast<double>(x[k + j]) * static_cast<double>(x[k + j]);
    s->number_pairs += kBlock;
  }
  Several<T>(a, b, i, n - i, base, s);
}

#endif

}  // namespace

void CompareFloats(FloatKind kind, const void* a, const void* b, int64_t n, int64_t base, FloatCompareSums* sums) {
  if (kind == FloatKind::kF32) return Run(static_cast<const float*>(a), static_cast<const float*>(b), n, base, sums);
  Run(static_cast<const BF16*>(a), static_cast<const BF16*>(b), n, base, sums);
}

}  // namespace SB_ISA
}  // namespace samebits
