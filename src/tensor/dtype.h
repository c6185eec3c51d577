// Element types of tensors, at rest and in files. Names are those of safetensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "numerics/format.h"

namespace samebits {

enum class DType : uint8_t {
  kBool,
  kF4,
  kF6E2M3,
  kF6E3M2,
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,
  kF8E8M0,
  kF8E4M3FNUZ,
  kF8E5M2FNUZ,
  kI16,
  kU16,
  kF16,
  kBF16,
  kI32,
  kU32,
  kF32,
  kC64,
  kF64,
  kI64,
  kU64,
};
inline constexpr int kDTypeCount = 22;

// "BF16", "F8_E4M3", ... as written in safetensors headers.
const char* DTypeName(DType dtype);
std::optional<DType> DTypeFromName(std::string_view name);
// Bits per element: 4 and 6 exist; everything else is a multiple of 8.
int DTypeBits(DType dtype);
bool IsInteger(DType dtype);  // signed, unsigned and bool
bool IsFloat(DType dtype);    // real floating types of every width

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kF32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::kF64;
};
template <>
struct DTypeOf<BF16> {
  static constexpr DType value = DType::kBF16;
};
template <>
struct DTypeOf<E4M3> {
  static constexpr DType value = DType::kF8E4M3;
};
template <>
struct DTypeOf<E8M0> {
  static constexpr DType value = DType::kF8E8M0;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType value = DType::kI32;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr DType value = DType::kI64;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr DType value = DType::kU8;
};

}  // namespace samebits
