#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdint>
#include <cstring>

#include "store/digest_kernels.h"

namespace samebits {
namespace SB_ISA {
namespace {

void Hash(const void* data, size_t bytes, uint64_t out[2]) {
  const XXH128_hash_t h = XXH3_128bits(data, bytes);
  out[0] = h.low64, out[1] = h.high64;
}

void Rows(const void* data, int64_t count, size_t row_bytes, size_t stride_bytes, uint64_t* out) {
  const char* row = static_cast<const char*>(data);
  for (int64_t r = 0; r < count; ++r, row += stride_bytes, out += 2) Hash(row, row_bytes, out);
}

XXH3_state_t* State(void* state) { return static_cast<XXH3_state_t*>(state); }
static_assert(sizeof(XXH3_state_t) <= 640 && alignof(XXH3_state_t) <= 64, "HashStream::state_ is too small");

void StreamReset(void* state) {
  std::memset(state, 0, sizeof(XXH3_state_t));
  XXH3_128bits_reset(State(state));
}
void StreamUpdate(void* state, const void* data, size_t bytes) { XXH3_128bits_update(State(state), data, bytes); }
void StreamDigest(const void* state, uint64_t out[2]) {
  const XXH128_hash_t h = XXH3_128bits_digest(static_cast<const XXH3_state_t*>(state));
  out[0] = h.low64, out[1] = h.high64;
}

// A bijection of 64-bit words in which every input bit reaches every output bit.
inline uint64_t Mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

template <class T>
void Sums(const void* data, int64_t n, uint64_t sums[2]) {
  const unsigned char* p = static_cast<const unsigned char*>(data);
  uint64_t a = 0, b = 0;
  for (int64_t i = 0; i < n; ++i) {
    T x;
    std::memcpy(&x, p + static_cast<size_t>(i) * sizeof(T), sizeof(T));
    a += Mix(static_cast<uint64_t>(x) + 0x9e3779b97f4a7c15u);
    b += Mix(static_cast<uint64_t>(x) + 0xd1b54a32d192ed03u);
  }
  sums[0] += a, sums[1] += b;
}

void ElementSums(const void* data, int64_t n, int element_bytes, uint64_t sums[2]) {
  switch (element_bytes) {
    case 1:
      return Sums<uint8_t>(data, n, sums);
    case 2:
      return Sums<uint16_t>(data, n, sums);
    case 4:
      return Sums<uint32_t>(data, n, sums);
    default:
      return Sums<uint64_t>(data, n, sums);
  }
}

// Counters as wide as the elements, emptied before they can overflow, so that the loop runs at full vector width.
template <class T>
void Count(const void* data, int64_t n, const SpecialBits& bits, int64_t counts[3]) {
  const unsigned char* p = static_cast<const unsigned char*>(data);
  const T sign = static_cast<T>(bits.sign), largest = static_cast<T>(bits.largest);
  const T infinity = static_cast<T>(bits.infinity);
  constexpr int64_t kPiece = sizeof(T) == 1 ? 192 : sizeof(T) == 2 ? 32768 : 1 << 30;
  for (int64_t begin = 0; begin < n; begin += kPiece) {
    const int64_t end = begin + kPiece < n ? begin + kPiece : n;
    T above = 0, inf = 0, zero = 0;
    for (int64_t i = begin; i < end; ++i) {
      T x;
      std::memcpy(&x, p + static_cast<size_t>(i) * sizeof(T), sizeof(T));
      const T magnitude = static_cast<T>(x & static_cast<T>(~sign));
      above = static_cast<T>(above + (magnitude > largest ? 1 : 0));
      inf = static_cast<T>(inf + (magnitude == infinity ? 1 : 0));
      zero = static_cast<T>(zero + (x == sign ? 1 : 0));
    }
    if (bits.infinity == 0) inf = 0;
    counts[0] += static_cast<int64_t>(above) - static_cast<int64_t>(inf);
    counts[1] += static_cast<int64_t>(inf);
    counts[2] += static_cast<int64_t>(zero);
  }
}

void Specials(const void* data, int64_t n, int element_bytes, const SpecialBits& bits, int64_t counts[3]) {
  switch (element_bytes) {
    case 1:
      return Count<uint8_t>(data, n, bits, counts);
    case 2:
      return Count<uint16_t>(data, n, bits, counts);
    case 4:
      return Count<uint32_t>(data, n, bits, counts);
    default:
      return Count<uint64_t>(data, n, bits, counts);
  }
}

}  // namespace

const DigestKernels& GetDigestKernels() {
  static constexpr DigestKernels kKernels = {Hash,         Rows,        StreamReset, StreamUpdate,
                                             StreamDigest, ElementSums, Specials};
  return kKernels;
}

}  // namespace SB_ISA
}  // namespace samebits
