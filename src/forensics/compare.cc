#include "forensics/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/strings.h"
#include "forensics/compare_simd.h"
#include "numerics/float_order.h"

namespace samebits {

#define SB_DECLARE(isa, ns)                                                                     \
  namespace ns {                                                                                \
  void CompareFloats(FloatKind, const void*, const void*, int64_t, int64_t, FloatCompareSums*); \
  }
SB_FOR_EACH_ISA(SB_DECLARE)
#undef SB_DECLARE

CompareFloats CompareFloatsFor(Isa isa) {
#define SB_PICK(id, ns) \
  if (isa == (id)) return ns::CompareFloats;
  SB_FOR_EACH_ISA(SB_PICK)
#undef SB_PICK
  return scalar::CompareFloats;
}

uint64_t ElementBits(const TensorRef& t, int64_t i) {
  const int bits = DTypeBits(t.dtype);
  const uint8_t* bytes = static_cast<const uint8_t*>(t.data);
  uint64_t value = 0;
  if (bits >= 8) {
    std::memcpy(&value, bytes + i * (bits / 8), static_cast<size_t>(bits / 8));
    return value;
  }
  for (int b = 0; b < bits; ++b) {
    const int64_t at = i * bits + b;
    value |= static_cast<uint64_t>(bytes[at / 8] >> (at % 8) & 1) << b;
  }
  return value;
}

namespace {

double SumLanes(const double* lane) {
  double sum = 0;
  for (int j = 0; j < 16; ++j) sum += lane[j];
  return sum;
}

bool SignBitAt(uint64_t u, int bits) { return u >> (bits - 1) & 1; }

bool IsUnsignedFloat(DType dtype) { return dtype == DType::kF8E8M0; }

// Steps from +0 on the line of floats; the sign is the top bit. E8M0 has none.
int64_t Position(DType dtype, uint64_t u) {
  const int bits = DTypeBits(dtype);
  if (IsUnsignedFloat(dtype) || !SignBitAt(u, bits)) return static_cast<int64_t>(u);
  return -static_cast<int64_t>(u & ~(uint64_t{1} << (bits - 1)));
}

uint64_t Distance(int64_t a, int64_t b) {
  return a > b ? static_cast<uint64_t>(a) - static_cast<uint64_t>(b)
               : static_cast<uint64_t>(b) - static_cast<uint64_t>(a);
}

void Mark(int64_t i, int64_t* count, int64_t* first, int64_t* last) {
  ++*count;
  if (*first < 0) *first = i;
  *last = i;
}

void CountSide(DType dtype, uint64_t bits, double x, SideCounts* side) {
  side->nan += std::isnan(x);
  side->inf += std::isinf(x);
  side->neg_zero += x == 0 && !IsUnsignedFloat(dtype) && SignBitAt(bits, DTypeBits(dtype));
}

// Types without a vector kernel. Same meanings, same lanes.
void CompareOtherFloats(const TensorRef& a, const TensorRef& b, CompareStats* s) {
  double dd[16] = {}, abs[16] = {}, aa[16] = {}, bb[16] = {}, ab[16] = {};
  for (int64_t i = 0; i < s->elements; ++i) {
    const uint64_t u = ElementBits(a, i), v = ElementBits(b, i);
    const double x = ElementAsDouble(a, i), y = ElementAsDouble(b, i);
    CountSide(a.dtype, u, x, &s->a);
    CountSide(b.dtype, v, y, &s->b);
    if (u != v) Mark(i, &s->bit_mismatches, &s->first_bit, &s->last_bit);
    const bool nan_a = std::isnan(x), nan_b = std::isnan(y);
    if (nan_a != nan_b || (!nan_a && x != y)) Mark(i, &s->value_mismatches, &s->first_value, &s->last_value);
    if (nan_a || nan_b) {
      s->nan_one_side += nan_a != nan_b;
      continue;
    }
    ++s->number_pairs;
    const int lane = static_cast<int>(i % 16);
    if (std::isfinite(x) && std::isfinite(y)) aa[lane] += x * x, bb[lane] += y * y, ab[lane] += x * y;
    if (x == y) continue;
    const double d = x - y, m = std::fabs(d);
    s->a_larger += x > y;
    s->b_larger += x < y;
    dd[lane] += d * d;
    abs[lane] += m;
    if (m > s->max_abs) s->max_abs = m, s->max_abs_at = i;
    if (y != 0 && m / std::fabs(y) > s->max_rel) s->max_rel = m / std::fabs(y), s->max_rel_at = i;
    const uint64_t ulp = Distance(Position(a.dtype, u), Position(b.dtype, v));
    s->max_ulp = std::max(s->max_ulp, ulp);
    if (ulp > 0) ++s->ulp_histogram[std::min(kUlpBuckets - 1, 63 - __builtin_clzll(ulp))];
  }
  s->sum_diff2 = SumLanes(dd), s->sum_abs = SumLanes(abs);
  s->sum_a2 = SumLanes(aa), s->sum_b2 = SumLanes(bb), s->sum_ab = SumLanes(ab);
}

template <class T>
T LoadAt(const void* data, int64_t i) {
  T v;
  std::memcpy(&v, static_cast<const char*>(data) + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return v;
}

template <class T>
void CompareIntegers(const TensorRef& a, const TensorRef& b, bool is_bool, CompareStats* s) {
  constexpr int64_t kBlock = 256;
  s->number_pairs = s->elements;
  for (int64_t i = 0; i < s->elements; i += kBlock) {
    const int64_t n = std::min(kBlock, s->elements - i);
    if (std::memcmp(static_cast<const char*>(a.data) + i * static_cast<int64_t>(sizeof(T)),
                    static_cast<const char*>(b.data) + i * static_cast<int64_t>(sizeof(T)),
                    static_cast<size_t>(n) * sizeof(T)) == 0)
      continue;
    for (int64_t k = i; k < i + n; ++k) {
      const T x = LoadAt<T>(a.data, k), y = LoadAt<T>(b.data, k);
      if (x == y) continue;
      Mark(k, &s->bit_mismatches, &s->first_bit, &s->last_bit);
      if (is_bool && (x != 0) == (y != 0)) continue;
      Mark(k, &s->value_mismatches, &s->first_value, &s->last_value);
      if (is_bool) continue;
      (x > y ? s->a_larger : s->b_larger) += 1;
      const uint64_t d = x > y ? static_cast<uint64_t>(x) - static_cast<uint64_t>(y)
                               : static_cast<uint64_t>(y) - static_cast<uint64_t>(x);
      if (d > s->max_abs_integer) s->max_abs_integer = d, s->max_abs_at = k;
    }
  }
  s->max_abs = static_cast<double>(s->max_abs_integer);
}

// C64: two floats an element; only equality is meant.
void CompareComplex(const TensorRef& a, const TensorRef& b, CompareStats* s) {
  for (int64_t i = 0; i < s->elements; ++i) {
    if (ElementBits(a, i) == ElementBits(b, i)) continue;
    Mark(i, &s->bit_mismatches, &s->first_bit, &s->last_bit);
    bool same = true;
    for (int64_t k = 2 * i; k < 2 * i + 2; ++k) {
      const float x = LoadAt<float>(a.data, k), y = LoadAt<float>(b.data, k);
      same = same && (x == y || (x != x && y != y));
    }
    if (!same) Mark(i, &s->value_mismatches, &s->first_value, &s->last_value);
  }
}

void CompareWide(FloatKind kind, Isa isa, const TensorRef& a, const TensorRef& b, CompareStats* s) {
  FloatCompareSums sums = {};
  sums.max_abs_at = sums.max_rel_at = sums.first_bit = sums.last_bit = sums.first_value = sums.last_value = -1;
  CompareFloatsFor(isa)(kind, a.data, b.data, s->elements, 0, &sums);
  double aa[16], bb[16], ab[16];
  for (int j = 0; j < 16; ++j)
    aa[j] = sums.same[j] + sums.aa[j], bb[j] = sums.same[j] + sums.bb[j], ab[j] = sums.same[j] + sums.ab[j];
  s->bit_mismatches = sums.bit_mismatches, s->first_bit = sums.first_bit, s->last_bit = sums.last_bit;
  s->value_mismatches = sums.value_mismatches, s->first_value = sums.first_value, s->last_value = sums.last_value;
  s->number_pairs = sums.number_pairs, s->nan_one_side = sums.nan_one_side;
  s->a = {sums.nan_a, sums.inf_a, sums.neg_zero_a};
  s->b = {sums.nan_b, sums.inf_b, sums.neg_zero_b};
  s->max_abs = sums.max_abs, s->max_abs_at = sums.max_abs_at;
  s->max_rel = sums.max_rel, s->max_rel_at = sums.max_rel_at;
  s->sum_abs = SumLanes(sums.abs), s->sum_diff2 = SumLanes(sums.dd);
  s->sum_a2 = SumLanes(aa), s->sum_b2 = SumLanes(bb), s->sum_ab = SumLanes(ab);
  s->a_larger = sums.a_larger, s->b_larger = sums.b_larger;
  s->max_ulp = sums.max_ulp;
  std::copy(sums.ulp_histogram, sums.ulp_histogram + kUlpBuckets, s->ulp_histogram);
}

void ExactInteger(const TensorRef& t, int64_t i, bool* negative, uint64_t* magnitude) {
  const uint64_t u = ElementBits(t, i);
  const int bits = DTypeBits(t.dtype);
  const bool is_signed =
      t.dtype == DType::kI8 || t.dtype == DType::kI16 || t.dtype == DType::kI32 || t.dtype == DType::kI64;
  *negative = is_signed && SignBitAt(u, bits);
  const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  *magnitude = *negative ? (~u + 1) & mask : u;
  if (t.dtype == DType::kBool) *magnitude = u != 0;
}

bool SameExactValue(const TensorRef& a, const TensorRef& b, int64_t i) {
  if (IsInteger(a.dtype) && IsInteger(b.dtype)) {
    bool na, nb;
    uint64_t ma, mb;
    ExactInteger(a, i, &na, &ma), ExactInteger(b, i, &nb, &mb);
    return na == nb && ma == mb;
  }
  if (IsInteger(b.dtype)) return SameExactValue(b, a, i);
  const double y = ElementAsDouble(b, i);
  if (!IsInteger(a.dtype)) {
    const double x = ElementAsDouble(a, i);
    return x == y || (std::isnan(x) && std::isnan(y));
  }
  bool negative;
  uint64_t magnitude;
  ExactInteger(a, i, &negative, &magnitude);
  if (!(y == std::floor(y)) || !std::isfinite(y)) return false;
  const double m = std::fabs(y);
  if (m >= 0x1p64 || static_cast<uint64_t>(m) != magnitude) return false;
  return magnitude == 0 || negative == (y < 0);
}

}  // namespace

double CompareStats::RelativeL2() const {
  if (sum_diff2 == 0) return 0;
  return sum_b2 == 0 ? std::numeric_limits<double>::infinity() : std::sqrt(sum_diff2) / std::sqrt(sum_b2);
}

double CompareStats::Cosine() const {
  if (sum_a2 == 0 && sum_b2 == 0) return 1;
  if (sum_a2 == 0 || sum_b2 == 0) return 0;
  const double cosine = sum_ab / (std::sqrt(sum_a2) * std::sqrt(sum_b2));
  return bit_mismatches == 0 ? 1 : std::clamp(cosine, -1.0, 1.0);
}

const char* CompareStatusName(CompareStatus status) {
  switch (status) {
    case CompareStatus::kEqualBits:
      return "equal_bits";
    case CompareStatus::kEqualValues:
      return "equal_values";
    case CompareStatus::kDifferent:
      return "different";
    case CompareStatus::kShapeMismatch:
      return "shape_mismatch";
    case CompareStatus::kDtypeMismatch:
      return "dtype_mismatch";
  }
  return "";
}

Comparison CompareTensorsWith(Isa isa, const TensorRef& a, const TensorRef& b) {
  Comparison out;
  if (a.shape != b.shape) {
    out.status = CompareStatus::kShapeMismatch;
    return out;
  }
  if (a.dtype != b.dtype) {
    out.status = CompareStatus::kDtypeMismatch;
    out.exact_values_equal = true;
    for (int64_t i = 0; i < a.elements() && out.exact_values_equal; ++i)
      out.exact_values_equal = SameExactValue(a, b, i);
    return out;
  }
  CompareStats& s = out.stats;
  s.elements = a.elements();
  switch (a.dtype) {
    case DType::kF32:
      CompareWide(FloatKind::kF32, isa, a, b, &s);
      break;
    case DType::kBF16:
      CompareWide(FloatKind::kBF16, isa, a, b, &s);
      break;
    case DType::kBool:
    case DType::kU8:
      CompareIntegers<uint8_t>(a, b, a.dtype == DType::kBool, &s);
      break;
    case DType::kI8:
      CompareIntegers<int8_t>(a, b, false, &s);
      break;
    case DType::kI16:
      CompareIntegers<int16_t>(a, b, false, &s);
      break;
    case DType::kU16:
      CompareIntegers<uint16_t>(a, b, false, &s);
      break;
    case DType::kI32:
      CompareIntegers<int32_t>(a, b, false, &s);
      break;
    case DType::kU32:
      CompareIntegers<uint32_t>(a, b, false, &s);
      break;
    case DType::kI64:
      CompareIntegers<int64_t>(a, b, false, &s);
      break;
    case DType::kU64:
      CompareIntegers<uint64_t>(a, b, false, &s);
      break;
    case DType::kC64:
      CompareComplex(a, b, &s);
      break;
    default:
      CompareOtherFloats(a, b, &s);
  }
  out.status = s.bit_mismatches == 0     ? CompareStatus::kEqualBits
               : s.value_mismatches == 0 ? CompareStatus::kEqualValues
                                         : CompareStatus::kDifferent;
  return out;
}

Comparison CompareTensors(const TensorRef& a, const TensorRef& b) {
  static const Isa best = BestIsa();
  return CompareTensorsWith(best, a, b);
}

uint64_t UlpDistance(const TensorRef& a, const TensorRef& b, int64_t i) {
  if (!IsFloat(a.dtype) || a.dtype != b.dtype) return 0;
  if (std::isnan(ElementAsDouble(a, i)) || std::isnan(ElementAsDouble(b, i))) return 0;
  return Distance(Position(a.dtype, ElementBits(a, i)), Position(b.dtype, ElementBits(b, i)));
}

std::string ElementText(const TensorRef& t, int64_t i) {
  if (t.dtype == DType::kBool) return ElementBits(t, i) ? "true" : "false";
  if (IsInteger(t.dtype)) {
    bool negative;
    uint64_t magnitude;
    ExactInteger(t, i, &negative, &magnitude);
    return (negative ? "-" : "") + std::to_string(magnitude);
  }
  const double x = ElementAsDouble(t, i);
  if (std::isnan(x)) return "nan";
  return Format(t.dtype == DType::kF64 ? "%.17g" : DTypeBits(t.dtype) <= 16 ? "%.6g" : "%.9g", x);
}

std::string CoordinateText(const Shape& shape, int64_t flat) {
  Shape at(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    at[d] = shape[d] > 0 ? flat % shape[d] : 0;
    flat = shape[d] > 0 ? flat / shape[d] : 0;
  }
  return ShapeText(at);
}

}  // namespace samebits
