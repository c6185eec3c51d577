#include "store/digest.h"

#include <bit>
#include <cstring>
#include <mutex>

#include "store/digest_kernels.h"

namespace samebits {

#define SB_DECLARE(isa, ns)                \
  namespace ns {                           \
  const DigestKernels& GetDigestKernels(); \
  }
SB_FOR_EACH_ISA(SB_DECLARE)
#undef SB_DECLARE

namespace {

const DigestKernels& KernelsFor(Isa isa) {
  switch (isa) {
#define SB_CASE(value, ns) \
  case value:              \
    return ns::GetDigestKernels();
    SB_FOR_EACH_ISA(SB_CASE)
#undef SB_CASE
    default:
      return scalar::GetDigestKernels();
  }
}

const DigestKernels& Kernels() {
  static const DigestKernels& best = KernelsFor(BestIsa());
  return best;
}

Digest128 From(const uint64_t words[2]) { return Digest128{words[1], words[0]}; }

void StoreU64(uint8_t* to, uint64_t v) {
  if constexpr (std::endian::native == std::endian::big) v = __builtin_bswap64(v);
  std::memcpy(to, &v, 8);
}

void PutU64(std::string* out, uint64_t v) {
  uint8_t bytes[8];
  StoreU64(bytes, v);
  out->append(reinterpret_cast<const char*>(bytes), 8);
}

std::string Description(const char* kind, DType dtype, const Shape& shape) {
  std::string text = std::string(kind) + " " + DTypeName(dtype);
  text.push_back('\0');
  PutU64(&text, shape.size());
  for (const int64_t d : shape) PutU64(&text, static_cast<uint64_t>(d));
  return text;
}

Digest128 SetDigest(const char* kind, DType dtype, const Shape& shape, uint64_t count, const uint64_t sums[2]) {
  std::string text = Description(kind, dtype, shape);
  PutU64(&text, count);
  PutU64(&text, sums[0]);
  PutU64(&text, sums[1]);
  return HashBytes(text.data(), text.size());
}

// False for types without NaN, infinity and -0, and for the unsigned scale format, handled by `sign` = 0.
bool SpecialBitsOf(DType dtype, SpecialBits* bits) {
  switch (dtype) {
    case DType::kF16:
      return *bits = {0x8000, 0x7c00, 0x7bff}, true;
    case DType::kBF16:
      return *bits = {0x8000, 0x7f80, 0x7f7f}, true;
    case DType::kF32:
    case DType::kC64:
      return *bits = {0x80000000u, 0x7f800000u, 0x7f7fffffu}, true;
    case DType::kF64:
      return *bits = {uint64_t{1} << 63, 0x7ff0000000000000u, 0x7fefffffffffffffu}, true;
    case DType::kF8E5M2:
      return *bits = {0x80, 0x7c, 0x7b}, true;
    case DType::kF8E4M3:
      return *bits = {0x80, 0, 0x7e}, true;
    default:
      return false;
  }
}

void AddSpecials(DType dtype, const void* data, int64_t n, SpecialCounts* counts) {
  SpecialBits bits;
  if (SpecialBitsOf(dtype, &bits)) {
    int64_t c[3] = {0, 0, 0};
    const bool complex = dtype == DType::kC64;
    Kernels().specials(data, complex ? 2 * n : n, complex ? 4 : DTypeBits(dtype) / 8, bits, c);
    counts->nan += c[0], counts->inf += c[1], counts->neg_zero += c[2];
    return;
  }
  // One NaN code and nothing else special.
  const bool scale = dtype == DType::kF8E8M0, fnuz = dtype == DType::kF8E4M3FNUZ || dtype == DType::kF8E5M2FNUZ;
  if (!scale && !fnuz) return;
  const uint8_t nan = scale ? 0xff : 0x80;
  const uint8_t* p = static_cast<const uint8_t*>(data);
  for (int64_t i = 0; i < n; ++i) counts->nan += p[i] == nan;
}

}  // namespace

std::string Digest128::Hex() const {
  static const char* kDigits = "0123456789abcdef";
  std::string out(32, '0');
  for (int i = 0; i < 16; ++i) {
    out[static_cast<size_t>(i)] = kDigits[hi >> (60 - 4 * i) & 15];
    out[static_cast<size_t>(16 + i)] = kDigits[lo >> (60 - 4 * i) & 15];
  }
  return out;
}

bool Digest128::FromHex(std::string_view hex, Digest128* out) {
  if (hex.size() != 32) return false;
  uint64_t words[2] = {0, 0};
  for (size_t i = 0; i < 32; ++i) {
    const char c = hex[i];
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) return false;
    words[i / 16] = words[i / 16] << 4 | static_cast<uint64_t>(digit);
  }
  out->hi = words[0], out->lo = words[1];
  return true;
}

Digest128 HashBytes(const void* data, size_t bytes) {
  uint64_t out[2];
  Kernels().hash(data, bytes, out);
  return From(out);
}

Digest128 HashBytesWith(Isa isa, const void* data, size_t bytes) {
  uint64_t out[2];
  KernelsFor(isa).hash(data, bytes, out);
  return From(out);
}

HashStream::HashStream() { Kernels().stream_reset(state_); }
void HashStream::Update(const void* data, size_t bytes) { Kernels().stream_update(state_, data, bytes); }
Digest128 HashStream::Digest() const {
  uint64_t out[2];
  Kernels().stream_digest(state_, out);
  return From(out);
}

void Digest128::Store(uint8_t* to) const {
  StoreU64(to, lo);
  StoreU64(to + 8, hi);
}

Digest128 OrderedFromRows(DType dtype, const Shape& shape, const Digest128* rows, size_t count) {
  std::string text = Description("ordered", dtype, shape);
  const size_t start = text.size();
  text.resize(start + 16 * count);
  for (size_t r = 0; r < count; ++r) rows[r].Store(reinterpret_cast<uint8_t*>(text.data()) + start + 16 * r);
  return HashBytes(text.data(), text.size());
}

Digest128 OrderFreeFromRows(DType dtype, const Shape& shape, const Digest128* rows, size_t count) {
  uint64_t sums[2] = {0, 0};
  for (size_t r = 0; r < count; ++r) sums[0] += rows[r].lo, sums[1] += rows[r].hi;
  return SetDigest("rows", dtype, shape, count, sums);
}

RowDigests DigestOf(const DigestRows& in, ThreadPool* pool) {
  SB_CHECK(DTypeBits(in.dtype) % 8 == 0, "rows of a sub-byte dtype");
  const size_t element = static_cast<size_t>(DTypeBits(in.dtype)) / 8;
  const size_t stride = static_cast<size_t>(in.stride) * element;
  RowDigests out;
  out.rows.resize(static_cast<size_t>(in.count));
  const char* data = static_cast<const char*>(in.data);
  const bool dense = in.lens == nullptr && in.stride == in.cols;
  const int64_t row_bytes = in.cols * static_cast<int64_t>(element);
  std::mutex mutex;
  const auto body = [&](int64_t begin, int64_t end) {
    SpecialCounts specials;
    int64_t counted = begin;
    for (int64_t r = begin; r < end; ++r) {
      const int64_t n = in.lens ? in.lens[r] : in.cols;
      const char* row = data + static_cast<size_t>(r) * stride;
      out.rows[static_cast<size_t>(r)] = HashBytes(row, static_cast<size_t>(n) * element);
      if (!dense) AddSpecials(in.dtype, row, n, &specials);
      if (dense && (r + 1 == end || (r + 1 - counted) * row_bytes >= 16384)) {
        // Rows without gaps are counted a few at a time, while they are still in cache.
        AddSpecials(in.dtype, data + static_cast<size_t>(counted) * stride, (r + 1 - counted) * in.cols, &specials);
        counted = r + 1;
      }
    }
    const std::lock_guard<std::mutex> lock(mutex);
    out.specials.nan += specials.nan, out.specials.inf += specials.inf, out.specials.neg_zero += specials.neg_zero;
  };
  // Waking the pool costs microseconds: worth it from about 100 kB on.
  const int64_t rows_per_piece = 100'000 / static_cast<int64_t>(element * static_cast<size_t>(in.cols) + 1) + 1;
  if (pool != nullptr && in.count > rows_per_piece) {
    pool->Run(in.count, rows_per_piece, body);
  } else {
    body(0, in.count);
  }
  const Shape shape = in.shape.empty() ? Shape{in.count, in.cols} : in.shape;
  out.ordered = OrderedFromRows(in.dtype, shape, out.rows.data(), out.rows.size());
  out.order_free = OrderFreeFromRows(in.dtype, shape, out.rows.data(), out.rows.size());
  return out;
}

std::vector<Digest128> RowElementSets(const DigestRows& in) {
  const int bytes = DTypeBits(in.dtype) / 8;
  SB_CHECK(DTypeBits(in.dtype) % 8 == 0, "rows of a sub-byte dtype");
  std::vector<Digest128> out;
  out.reserve(static_cast<size_t>(in.count));
  for (int64_t r = 0; r < in.count; ++r) {
    const int64_t n = in.lens ? in.lens[r] : in.cols;
    uint64_t sums[2] = {0, 0};
    Kernels().element_sums(static_cast<const char*>(in.data) + r * in.stride * bytes, n, bytes, sums);
    out.push_back(SetDigest("elements", in.dtype, {n}, static_cast<uint64_t>(n), sums));
  }
  return out;
}

TensorDigests DigestTensor(const TensorRef& t, bool with_element_set) {
  TensorDigests out;
  const int bits = DTypeBits(t.dtype);
  const bool whole = bits % 8 == 0;
  const int64_t elements = t.elements();
  const int64_t cols = t.shape.empty() ? 1 : t.shape.back();
  const size_t row_bytes = whole ? static_cast<size_t>(cols) * static_cast<size_t>(bits / 8) : t.bytes();
  const int64_t count = elements == 0 ? 0 : whole ? elements / cols : 1;
  std::vector<Digest128> rows(static_cast<size_t>(count));
  const char* data = static_cast<const char*>(t.data);
  for (int64_t r = 0; r < count; ++r) {
    rows[static_cast<size_t>(r)] = HashBytes(data + static_cast<size_t>(r) * row_bytes, row_bytes);
    if (whole) AddSpecials(t.dtype, data + static_cast<size_t>(r) * row_bytes, cols, &out.specials);
  }
  out.ordered = OrderedFromRows(t.dtype, t.shape, rows.data(), rows.size());
  out.order_free = OrderFreeFromRows(t.dtype, t.shape, rows.data(), rows.size());
  if (with_element_set) {
    uint64_t sums[2] = {0, 0};
    if (whole) {
      Kernels().element_sums(t.data, elements, bits / 8, sums);
    } else {
      const uint8_t* packed = static_cast<const uint8_t*>(t.data);
      for (int64_t i = 0; i < elements; ++i) {
        const int64_t at = i * bits;
        uint32_t pair = packed[at / 8];
        if (at % 8 + bits > 8) pair |= static_cast<uint32_t>(packed[at / 8 + 1]) << 8;
        const uint8_t code = static_cast<uint8_t>(pair >> (at % 8) & ((1u << bits) - 1));
        Kernels().element_sums(&code, 1, 1, sums);
      }
    }
    out.element_set = SetDigest("elements", t.dtype, t.shape, static_cast<uint64_t>(elements), sums);
  }
  return out;
}

}  // namespace samebits
