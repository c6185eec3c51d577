#include "tensor/dtype.h"

namespace samebits {
namespace {

enum Kind : uint8_t { kInt, kReal, kComplex };
struct Row {
  const char* name;
  int bits;
  Kind kind;
};
constexpr Row kRows[kDTypeCount] = {
    {"BOOL", 8, kInt},     {"F4", 4, kReal},          {"F6_E2M3", 6, kReal},     {"F6_E3M2", 6, kReal},
    {"U8", 8, kInt},       {"I8", 8, kInt},           {"F8_E5M2", 8, kReal},     {"F8_E4M3", 8, kReal},
    {"F8_E8M0", 8, kReal}, {"F8_E4M3FNUZ", 8, kReal}, {"F8_E5M2FNUZ", 8, kReal}, {"I16", 16, kInt},
    {"U16", 16, kInt},     {"F16", 16, kReal},        {"BF16", 16, kReal},       {"I32", 32, kInt},
    {"U32", 32, kInt},     {"F32", 32, kReal},        {"C64", 64, kComplex},     {"F64", 64, kReal},
    {"I64", 64, kInt},     {"U64", 64, kInt},
};
const Row& Of(DType dtype) { return kRows[static_cast<int>(dtype)]; }

}  // namespace

const char* DTypeName(DType dtype) { return Of(dtype).name; }
int DTypeBits(DType dtype) { return Of(dtype).bits; }
bool IsInteger(DType dtype) { return Of(dtype).kind == kInt; }
bool IsFloat(DType dtype) { return Of(dtype).kind == kReal; }

std::optional<DType> DTypeFromName(std::string_view name) {
  for (int i = 0; i < kDTypeCount; ++i)
    if (name == kRows[i].name) return static_cast<DType>(i);
  return std::nullopt;
}

}  // namespace samebits
