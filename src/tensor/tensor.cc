#include "tensor/tensor.h"

#include <cstring>

#include "base/strings.h"
#include "numerics/float_order.h"

namespace samebits {

int64_t ElementCount(const Shape& shape) {
  int64_t n = 1;
  for (const int64_t d : shape) n *= d;
  return n;
}

std::string ShapeText(const Shape& shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i) out += (i ? ", " : "") + std::to_string(shape[i]);
  return out + "]";
}

Tensor::Tensor(DType dtype, Shape shape) : dtype_(dtype), shape_(std::move(shape)) {
  bytes_.resize((static_cast<size_t>(ElementCount(shape_)) * static_cast<size_t>(DTypeBits(dtype)) + 7) / 8);
}

bool SameBits(const TensorRef& a, const TensorRef& b) {
  return a.dtype == b.dtype && a.shape == b.shape && (a.bytes() == 0 || std::memcmp(a.data, b.data, a.bytes()) == 0);
}

namespace {

float HalfToF32(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16, e = (h >> 10) & 31u, m = h & 0x3ffu;
  if (e == 31) return FromBits(sign | 0x7f800000u | (m << 13));
  if (e == 0) return FromBits(sign | Bits(static_cast<float>(m) * 0x1p-24f));
  return FromBits(sign | ((e + 112) << 23) | (m << 13));
}

// Small float of `ebits` exponent and `mbits` mantissa bits without infinities (F4, F6 and the fnuz forms handled
// apart).
double SmallFloat(uint32_t u, int ebits, int mbits, int bias) {
  const uint32_t sign = u >> (ebits + mbits) & 1u, e = (u >> mbits) & ((1u << ebits) - 1), m = u & ((1u << mbits) - 1);
  double value = e == 0 ? static_cast<double>(m) : static_cast<double>(m + (1u << mbits));
  int exponent = static_cast<int>(e == 0 ? 1 : e) - bias - mbits;
  for (; exponent > 0; --exponent) value *= 2;
  for (; exponent < 0; ++exponent) value /= 2;
  return sign ? -value : value;
}

const double kNan = static_cast<double>(FromBits(0x7fc00000u));

template <class T>
T At(const void* data, int64_t i) {
  T v;
  std::memcpy(&v, static_cast<const uint8_t*>(data) + static_cast<size_t>(i) * sizeof(T), sizeof(T));
  return v;
}

// 4- and 6-bit elements are packed from the low bit of each byte upwards.
uint32_t PackedAt(const void* data, int64_t i, int bits) {
  const uint8_t* bytes = static_cast<const uint8_t*>(data);
  uint32_t value = 0;
  for (int b = 0; b < bits; ++b) {
    const int64_t at = i * bits + b;
    value |= static_cast<uint32_t>(bytes[at / 8] >> (at % 8) & 1) << b;
  }
  return value;
}

}  // namespace

double ElementAsDouble(const TensorRef& t, int64_t i) {
  const void* d = t.data;
  switch (t.dtype) {
    case DType::kBool:
    case DType::kU8:
      return At<uint8_t>(d, i);
    case DType::kI8:
      return At<int8_t>(d, i);
    case DType::kI16:
      return At<int16_t>(d, i);
    case DType::kU16:
      return At<uint16_t>(d, i);
    case DType::kI32:
      return At<int32_t>(d, i);
    case DType::kU32:
      return At<uint32_t>(d, i);
    case DType::kI64:
      return static_cast<double>(At<int64_t>(d, i));
    case DType::kU64:
      return static_cast<double>(At<uint64_t>(d, i));
    case DType::kF64:
      return At<double>(d, i);
    case DType::kF32:
      return static_cast<double>(At<float>(d, i));
    case DType::kC64:
      return static_cast<double>(At<float>(d, 2 * i));  // the real part
    case DType::kBF16:
      return static_cast<double>(ToF32(At<BF16>(d, i)));
    case DType::kF16:
      return static_cast<double>(HalfToF32(At<uint16_t>(d, i)));
    case DType::kF8E4M3:
      return static_cast<double>(ToF32(At<E4M3>(d, i)));
    case DType::kF8E8M0:
      return static_cast<double>(ToF32(At<E8M0>(d, i)));
    case DType::kF8E5M2:
      return static_cast<double>(HalfToF32(static_cast<uint16_t>(At<uint8_t>(d, i) << 8)));
    case DType::kF8E4M3FNUZ:
      return At<uint8_t>(d, i) == 0x80 ? kNan : SmallFloat(At<uint8_t>(d, i), 4, 3, 8);
    case DType::kF8E5M2FNUZ:
      return At<uint8_t>(d, i) == 0x80 ? kNan : SmallFloat(At<uint8_t>(d, i), 5, 2, 16);
    case DType::kF4:
      return SmallFloat(PackedAt(d, i, 4), 2, 1, 1);
    case DType::kF6E2M3:
      return SmallFloat(PackedAt(d, i, 6), 2, 3, 1);
    case DType::kF6E3M2:
      return SmallFloat(PackedAt(d, i, 6), 3, 2, 3);
  }
  return 0;
}

std::string DescribeDifference(const TensorRef& a, const TensorRef& b) {
  if (a.dtype != b.dtype) return Format("dtypes differ: %s and %s", DTypeName(a.dtype), DTypeName(b.dtype));
  if (a.shape != b.shape) return "shapes differ: " + ShapeText(a.shape) + " and " + ShapeText(b.shape);
  if (SameBits(a, b)) return "";
  const int bits = DTypeBits(a.dtype);
  int64_t first = -1, count = 0;
  for (int64_t i = 0; i < a.elements(); ++i) {
    const bool same =
        bits < 8 ? PackedAt(a.data, i, bits) == PackedAt(b.data, i, bits)
                 : std::memcmp(static_cast<const char*>(a.data) + i * (bits / 8),
                               static_cast<const char*>(b.data) + i * (bits / 8), static_cast<size_t>(bits / 8)) == 0;
    if (same) continue;
    if (first < 0) first = i;
    ++count;
  }
  if (first < 0) return "padding bits differ";
  std::string at = "[";
  int64_t rest = first;
  Shape coordinate(a.shape.size());
  for (size_t d = a.shape.size(); d-- > 0;) {
    coordinate[d] = rest % a.shape[d];
    rest /= a.shape[d];
  }
  for (size_t d = 0; d < coordinate.size(); ++d) at += (d ? ", " : "") + std::to_string(coordinate[d]);
  at += "]";
  auto hex = [&](const TensorRef& t) {
    if (bits < 8) return Format("0x%x", PackedAt(t.data, first, bits));
    std::string out = "0x";
    for (int k = bits / 8; k-- > 0;) out += Format("%02x", static_cast<const uint8_t*>(t.data)[first * (bits / 8) + k]);
    return out;
  };
  std::string out = Format("%lld of %lld elements differ, first at %s: %s (%.9g) and %s (%.9g)",
                           static_cast<long long>(count), static_cast<long long>(a.elements()), at.c_str(),
                           hex(a).c_str(), ElementAsDouble(a, first), hex(b).c_str(), ElementAsDouble(b, first));
  if (a.dtype == DType::kF32) {
    const int64_t ulps = OrderedBits32(At<uint32_t>(a.data, first)) - OrderedBits32(At<uint32_t>(b.data, first));
    out += Format(", %lld ulp apart", static_cast<long long>(ulps < 0 ? -ulps : ulps));
  } else if (a.dtype == DType::kBF16) {
    const int ulps = OrderedBits16(At<uint16_t>(a.data, first)) - OrderedBits16(At<uint16_t>(b.data, first));
    out += Format(", %d ulp apart", ulps < 0 ? -ulps : ulps);
  }
  return out;
}

}  // namespace samebits
