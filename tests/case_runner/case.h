// What the operations of case files share: reading members, comparing with what is expected, and the three ways out.
// The schema is in tests/cases/README.md. Exceptions stay inside this program: one case cannot end the others.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "numerics/format.h"
#include "ops/op.h"

namespace samebits {

using Json = nlohmann::json;

struct CaseFailed {
  std::string why;
};
struct CaseUnsupported {
  std::string what;
};
struct CaseMalformed {  // the file's fault: a member missing, of the wrong type or out of range
  std::string text;
};
[[noreturn]] void Fail(const std::string& why);
[[noreturn]] void Unsupported(const std::string& what);
[[noreturn]] void Malformed(const std::string& text);
void Expect(bool ok, const std::string& what);
void ExpectOk(const Status& status);

// The members of `input` or `expected`. Remembers which were looked at: one that nobody reads is never passed over in
// silence.
class Members {
 public:
  Members(const Json& object, std::string where);
  const Json& operator[](const std::string& name);  // required
  const Json* Find(const std::string& name);        // null if absent
  bool Flag(const std::string& name);               // true if present and true
  // The first member never looked at and not marked as information by its name; empty if there is none.
  std::string Unread() const;

 private:
  const Json& object_;
  std::string where_;
  std::set<std::string> read_;
};

struct CaseOp {
  const char* name;
  void (*run)(Members& in, Members& want);
};
std::span<const CaseOp> TopkCaseOps();
std::span<const CaseOp> AttentionCaseOps();
std::span<const CaseOp> RouterCaseOps();
std::span<const CaseOp> GemmCaseOps();
std::span<const CaseOp> RopeCaseOps();
std::span<const CaseOp> CacheCaseOps();
std::span<const CaseOp> FileCaseOps();
std::span<const CaseOp> TextCaseOps();
std::span<const CaseOp> SamplingCaseOps();
std::span<const CaseOp> DiffCaseOps();

// Every instruction set of this machine, with one thread and with three.
const std::vector<CpuContext>& Contexts();

// --- reading ---------------------------------------------------------------------------------------------------------
// One value: a hex string of the bits, "nan", or a JSON number.
template <class T>
T Value(const Json& j);
template <>
float Value<float>(const Json& j);
template <>
BF16 Value<BF16>(const Json& j);
template <>
E4M3 Value<E4M3>(const Json& j);
template <>
int32_t Value<int32_t>(const Json& j);
template <>
int64_t Value<int64_t>(const Json& j);
template <>
double Value<double>(const Json& j);  // also "inf", "-inf"
template <>
std::string Value<std::string>(const Json& j);

uint64_t HexBits(const Json& j, int digits);
const Json& List(const Json& j);

template <class T>
std::vector<T> Row(const Json& j) {
  std::vector<T> v;
  for (const Json& x : List(j)) v.push_back(Value<T>(x));
  return v;
}
template <class T>
struct Rows {
  std::vector<T> data;
  int64_t rows = 0, cols = 0;
};
template <class T>
Rows<T> Matrix(const Json& j) {
  Rows<T> m;
  for (const Json& row : List(j)) {
    const std::vector<T> v = Row<T>(row);
    if (m.rows > 0 && m.cols != static_cast<int64_t>(v.size())) Malformed("the rows of a matrix differ in length");
    m.cols = static_cast<int64_t>(v.size());
    m.data.insert(m.data.end(), v.begin(), v.end());
    ++m.rows;
  }
  return m;
}
int64_t Count(const Json& j, int64_t most);  // 0 .. most
std::string Base64Bytes(const Json& j);
std::string HexBytes(const Json& j);
std::string HexOf(std::string_view bytes);

// The 32-bit generator of the schema.
class CaseGenerator {
 public:
  explicit CaseGenerator(uint32_t seed) : state_(seed) {}
  uint32_t Next() { return state_ = state_ * 1664525u + 1013904223u; }

 private:
  uint32_t state_;
};

// --- comparing -------------------------------------------------------------------------------------------------------
void ExpectNear(const std::string& what, double got, const Json& want, double abs_tol, double rel_tol = 0);
void ExpectBits(const std::string& what, float got, const Json& want);
template <class T>
void ExpectInts(const std::string& what, const std::vector<T>& got, const Json& want) {
  const std::vector<int64_t> expected = Row<int64_t>(want);
  std::string text;
  for (const T x : got) text += (text.empty() ? "" : ", ") + std::to_string(x);
  Expect(std::vector<int64_t>(got.begin(), got.end()) == expected,
         what + " is [" + text + "], expected " + want.dump());
}
// SHA-256 of the little-endian bytes.
template <class T>
std::string BytesOf(const std::vector<T>& v) {
  return std::string(reinterpret_cast<const char*>(v.data()), v.size() * sizeof(T));
}
template <class T>
bool SameBytesOf(const std::vector<T>& a, const std::vector<T>& b) {
  return BytesOf(a) == BytesOf(b);
}
void ExpectText(const std::string& what, const std::string& got, const Json& want);

}  // namespace samebits
