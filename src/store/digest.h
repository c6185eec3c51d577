// Fingerprints of tensors: XXH3-128 of rows, and what is built from it. Bits never depend on the instruction set.
//
//   row digest       XXH3-128 (seed 0) of the row's bytes
//   ordered digest   XXH3-128 of the description (dtype, shape) and all row digests in order
//   order-free       XXH3-128 of the description and a commutative 128-bit sum of the row digests: equal when the rows
//                    are the same but stand elsewhere
//   element set      the same over elements: equal when the values are the same in any order
//
// A tensor's rows are its last dimension. An ordered digest made of row digests costs one pass for all of them, and a
// digest of any choice of rows (one request of a batch) can be had later without the data. Equal ordered digests mean
// equal bytes but for a chance of 2^-128; this is a fingerprint, not a defence against forgery: Sha256 is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "numerics/isa.h"
#include "tensor/tensor.h"

namespace samebits {

struct Digest128 {
  uint64_t hi = 0, lo = 0;
  friend bool operator==(const Digest128&, const Digest128&) = default;
  friend auto operator<=>(const Digest128&, const Digest128&) = default;
  // 32 hex digits, most significant first, as xxhsum -H2 prints.
  std::string Hex() const;
  // 16 bytes: low half, high half, each little-endian.
  void Store(uint8_t* to) const;
  static bool FromHex(std::string_view hex, Digest128* out);
};

Digest128 HashBytes(const void* data, size_t bytes);
// For tests and benchmarks: a chosen instruction set, which must be available.
Digest128 HashBytesWith(Isa isa, const void* data, size_t bytes);

// XXH3-128 of pieces; equal to HashBytes of their concatenation.
class HashStream {
 public:
  HashStream();
  void Update(const void* data, size_t bytes);
  void Update(std::string_view text) { Update(text.data(), text.size()); }
  Digest128 Digest() const;

 private:
  alignas(64) unsigned char state_[640];
};

// NaN, infinities and negative zeros of floating types; zero for the others.
struct SpecialCounts {
  int64_t nan = 0, inf = 0, neg_zero = 0;
  friend bool operator==(const SpecialCounts&, const SpecialCounts&) = default;
};

// Rows as a probe hands them over: `count` rows of `cols` elements, `stride` elements apart; of row r only lens[r]
// elements count if lens is given. Whole-byte dtypes only.
struct DigestRows {
  const void* data = nullptr;
  DType dtype = DType::kU8;
  int64_t count = 0, cols = 0, stride = 0;
  const int32_t* lens = nullptr;
  Shape shape = {};  // of the whole tensor, if it is not [count, cols]
};

struct RowDigests {
  std::vector<Digest128> rows;
  Digest128 ordered, order_free;
  SpecialCounts specials;
};
// Neither pool (may be null) nor its size changes a bit.
RowDigests DigestOf(const DigestRows& rows, ThreadPool* pool = nullptr);
// Per row, the element set of that row: equal for index lists that name the same positions in another order.
std::vector<Digest128> RowElementSets(const DigestRows& rows);
// From row digests alone, for `shape` and `dtype` of the tensor they make up.
Digest128 OrderedFromRows(DType dtype, const Shape& shape, const Digest128* rows, size_t count);
Digest128 OrderFreeFromRows(DType dtype, const Shape& shape, const Digest128* rows, size_t count);

struct TensorDigests {
  Digest128 ordered, order_free, element_set;
  SpecialCounts specials;
};
// Any dtype; sub-byte tensors are one row. element_set costs a second pass and is left zero unless asked for.
TensorDigests DigestTensor(const TensorRef& tensor, bool with_element_set);

// SHA-256 as 64 hex digits: for the identity of files and recordings.
class Sha256 {
 public:
  void Update(const void* data, size_t bytes);
  void Update(std::string_view text) { Update(text.data(), text.size()); }
  std::string Hex();  // finishes; call once

 private:
  void Block(const uint8_t* block);
  uint32_t state_[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  uint8_t buffer_[64];
  size_t filled_ = 0;
  uint64_t total_ = 0;
};
std::string Sha256Hex(std::string_view bytes);

}  // namespace samebits
