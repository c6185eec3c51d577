// Top-k of one row: find the k-th largest order key by radix (11, 11, 10 bits, each pass over the survivors of the last),
// then one ordered pass that emits everything above it and the first few equal to it. No candidate is ever sorted.

#include "ops/topk/topk_simd.h"

#include "numerics/simd.h"
#include "numerics/simd_rows.h"

namespace samebits {
namespace SB_ISA {
namespace {

constexpr int kBins = 2048;

// The bin, counted from the top, that holds the k-th largest; *k becomes its rank inside the bin.
int BinOf(const uint32_t* histogram, int64_t* k) {
  for (int bin = kBins - 1; bin > 0; --bin) {
    if (*k <= histogram[bin]) return bin;
    *k -= histogram[bin];
  }
  return 0;
}

// Two histograms, so that a run of equal keys does not wait for its own store.
void Count(const uint32_t* keys, int64_t n, int shift, uint32_t (&histogram)[kBins]) {
  uint32_t odd[kBins] = {};
  std::memset(histogram, 0, sizeof histogram);
  int64_t i = 0;
  for (; i + 2 <= n; i += 2) {
    ++histogram[(keys[i] >> shift) & (kBins - 1)];
    ++odd[(keys[i + 1] >> shift) & (kBins - 1)];
  }
  if (i < n) ++histogram[(keys[i] >> shift) & (kBins - 1)];
  for (int b = 0; b < kBins; ++b) histogram[b] += odd[b];
}

// Keeps the keys whose bits above `shift` equal prefix; order does not matter here.
int64_t Keep(const uint32_t* keys, int64_t n, int shift, uint32_t prefix, uint32_t* kept) {
  int64_t count = 0;
#if defined(SB_ISA_AVX512)
  const __m512i want = _mm512_set1_epi32(static_cast<int>(prefix));
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m512i v = _mm512_loadu_si512(keys + i);
    const __mmask16 m = _mm512_cmpeq_epi32_mask(_mm512_srlv_epi32(v, _mm512_set1_epi32(shift)), want);
    _mm512_mask_compressstoreu_epi32(kept + count, m, v);
    count += __builtin_popcount(m);
  }
  for (; i < n; ++i)
    if (keys[i] >> shift == prefix) kept[count++] = keys[i];
#else
  for (int64_t i = 0; i < n; ++i) {
    kept[count] = keys[i];
    count += keys[i] >> shift == prefix;
  }
#endif
  return count;
}

// The k-th largest key (1 <= k <= n); *equal receives how many keys equal to it are among the k.
uint32_t Threshold(const uint32_t* keys, int64_t n, int64_t k, uint32_t* scratch, int64_t* equal) {
  uint32_t histogram[kBins];
  Count(keys, n, 21, histogram);
  uint32_t prefix = static_cast<uint32_t>(BinOf(histogram, &k));
  int64_t left = Keep(keys, n, 21, prefix, scratch);
  Count(scratch, left, 10, histogram);
  prefix = prefix << 11 | static_cast<uint32_t>(BinOf(histogram, &k));
  left = Keep(scratch, left, 10, prefix, scratch);
  Count(scratch, left, 0, histogram);
  // Only 10 bits are left, but Count looks at 11: the lowest bit of the prefix is set or clear for all of them.
  const uint32_t low = static_cast<uint32_t>(BinOf(histogram, &k));
  *equal = k;
  return prefix << 10 | (low & 1023);
}

// Indices with key > threshold, and the first `equal` with key == threshold, ascending.
int64_t Emit(const uint32_t* keys, int64_t n, uint32_t threshold, int64_t equal, int32_t* out) {
  int64_t count = 0, i = 0;
#if defined(SB_ISA_AVX512)
  const __m512i t = _mm512_set1_epi32(static_cast<int>(threshold));
  __m512i index = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  for (; i + 16 <= n; i += 16) {
    const __m512i v = _mm512_loadu_si512(keys + i);
    uint32_t take = _mm512_cmpgt_epu32_mask(v, t), ties = _mm512_cmpeq_epi32_mask(v, t);
    for (; ties != 0 && equal > 0; ties &= ties - 1, --equal) take |= ties & -ties;
    _mm512_mask_compressstoreu_epi32(out + count, static_cast<__mmask16>(take), index);
    count += __builtin_popcount(take);
    index = _mm512_add_epi32(index, _mm512_set1_epi32(16));
  }
#endif
  for (; i < n; ++i) {
    const bool tie = keys[i] == threshold && equal > 0;
    equal -= tie;
    if (keys[i] > threshold || tie) out[count++] = static_cast<int32_t>(i);
  }
  return count;
}

}  // namespace

int64_t TopkRow(const float* scores, int64_t len, int64_t k, uint32_t* keys, int32_t* out, int32_t* nan_count) {
  int64_t nans = 0;
  ForLanes(len, [&](int64_t i, int c) {
    const F32x16 x = LoadAny(scores, false, i, c);
    StoreI(keys + i, OrderKeys(x));  // scratch has room for a whole last vector
  });
  for (int64_t i = 0; i < len; ++i) nans += keys[i] == 0;
  if (nan_count) *nan_count = static_cast<int32_t>(nans);
  const int64_t numbers = len - nans, chosen = numbers < k ? numbers : k;
  int64_t count = 0;
  if (chosen == numbers) {
    for (int64_t i = 0; i < len; ++i)
      if (keys[i] != 0) out[count++] = static_cast<int32_t>(i);
  } else {
    int64_t equal = 0;
    const uint32_t threshold = Threshold(keys, len, chosen, keys + len + kLanes, &equal);
    count = Emit(keys, len, threshold, equal, out);
  }
  for (int64_t j = count; j < k; ++j) out[j] = -1;
  return count;
}

}  // namespace SB_ISA
}  // namespace samebits
