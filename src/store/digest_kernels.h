// What digest_simd.cc provides once per instruction set. Tiny on purpose: it is compiled with wide-vector flags.
#pragma once

#include <cstddef>
#include <cstdint>

namespace samebits {

// An integer description of a floating format's special values: |x| = x & ~sign.
struct SpecialBits {
  uint64_t sign = 0;      // the sign bit
  uint64_t infinity = 0;  // |x| of infinity; 0 if the format has none
  uint64_t largest = 0;   // |x| above this is NaN (or infinity)
};

struct DigestKernels {
  void (*hash)(const void* data, size_t bytes, uint64_t out[2]);  // out: low, high
  void (*rows)(const void* data, int64_t count, size_t row_bytes, size_t stride_bytes, uint64_t* out);
  void (*stream_reset)(void* state);
  void (*stream_update)(void* state, const void* data, size_t bytes);
  void (*stream_digest)(const void* state, uint64_t out[2]);
  // Adds to sums[2] the mixed values of n elements of 1, 2, 4 or 8 bytes.
  void (*element_sums)(const void* data, int64_t n, int element_bytes, uint64_t sums[2]);
  // Adds to counts[3]: NaN, infinity, negative zero. 1, 2, 4 or 8 bytes.
  void (*specials)(const void* data, int64_t n, int element_bytes, const SpecialBits& bits, int64_t counts[3]);
};

}  // namespace samebits
