#include <cmath>
#include <limits>
#include <memory>

#include "base/strings.h"
#include "case.h"

namespace samebits {

void Fail(const std::string& why) { throw CaseFailed{why}; }
void Unsupported(const std::string& what) { throw CaseUnsupported{what}; }
void Malformed(const std::string& text) { throw CaseMalformed{text}; }
void Expect(bool ok, const std::string& what) {
  if (!ok) Fail(what);
}
void ExpectOk(const Status& status) {
  if (!status.ok()) Fail("refused: " + status.text());
}

Members::Members(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
  if (!object.is_object()) Malformed("\"" + where_ + "\" is not an object");
}
const Json& Members::operator[](const std::string& name) {
  const Json* member = Find(name);
  if (member == nullptr) Malformed("\"" + where_ + "\" has no member \"" + name + "\"");
  return *member;
}
const Json* Members::Find(const std::string& name) {
  const auto it = object_.find(name);
  if (it == object_.end()) return nullptr;
  read_.insert(name);
  return &*it;
}
bool Members::Flag(const std::string& name) {
  const Json* member = Find(name);
  if (member == nullptr) return false;
  if (!member->is_boolean()) Malformed("\"" + name + "\" is not true or false");
  return member->get<bool>();
}
std::string Members::Unread() const {
  static const char* const kInformation[] = {"would_give", "is_wrong",       "naive",        "without", "_gives",
                                             "with_bf16",  "worst_error_of", "fp32_sums_in", "note"};
  for (const auto& [name, value] : object_.items()) {
    bool information = read_.count(name) != 0;
    for (const char* part : kInformation) information |= name.find(part) != std::string::npos;
    if (!information) return "\"" + name + "\" in \"" + where_ + "\"";
  }
  return "";
}

const std::vector<CpuContext>& Contexts() {
  static ThreadPool one(1), three(3);
  static const std::vector<CpuContext> contexts = [] {
    std::vector<CpuContext> all;
    for (const Isa isa : AvailableIsas())
      for (ThreadPool* pool : {&one, &three}) all.push_back(CpuContext{pool, isa});
    return all;
  }();
  return contexts;
}

const Json& List(const Json& j) {
  if (!j.is_array()) Malformed("a list was expected, not " + j.dump().substr(0, 40));
  return j;
}

uint64_t HexBits(const Json& j, int digits) {
  const std::string text = Value<std::string>(j);
  if (text.size() != static_cast<size_t>(digits) + 2 || text.compare(0, 2, "0x") != 0)
    Malformed("\"" + text + "\" is not 0x and " + std::to_string(digits) + " hex digits");
  uint64_t bits = 0;
  for (size_t i = 2; i < text.size(); ++i) {
    const char c = text[i];
    const int d = c >= '0' && c <= '9'   ? c - '0'
                  : c >= 'a' && c <= 'f' ? c - 'a' + 10
                  : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                         : -1;
    if (d < 0) Malformed("\"" + text + "\" is not hex");
    bits = bits << 4 | static_cast<uint64_t>(d);
  }
  return bits;
}

template <>
float Value<float>(const Json& j) {
  if (j.is_number()) return static_cast<float>(j.get<double>());
  if (j.is_string() && j.get<std::string>() == "nan") return FromBits(0x7fc00000u);
  return FromBits(static_cast<uint32_t>(HexBits(j, 8)));
}
template <>
BF16 Value<BF16>(const Json& j) {
  if (j.is_string() && j.get<std::string>() == "nan") return BF16{0x7fc0};
  return BF16{static_cast<uint16_t>(HexBits(j, 4))};
}
template <>
E4M3 Value<E4M3>(const Json& j) {
  if (j.is_string() && j.get<std::string>() == "nan") return E4M3{0x7f};
  return E4M3{static_cast<uint8_t>(HexBits(j, 2))};
}
template <>
int64_t Value<int64_t>(const Json& j) {
  if (j.is_string()) {
    const Result<int64_t> n = ParseInt(j.get<std::string>(), "number");
    if (!n.ok()) Malformed(n.status().text());
    return *n;
  }
  if (!j.is_number_integer() || (j.is_number_unsigned() && j.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)))
    Malformed(j.dump().substr(0, 40) + " is not a whole number");
  return j.get<int64_t>();
}
template <>
int32_t Value<int32_t>(const Json& j) {
  const int64_t n = Value<int64_t>(j);
  if (n < INT32_MIN || n > INT32_MAX) Malformed(std::to_string(n) + " does not fit 32 bits");
  return static_cast<int32_t>(n);
}
template <>
double Value<double>(const Json& j) {
  if (j.is_number()) return j.get<double>();
  const std::string text = Value<std::string>(j);
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  const Result<double> x = ParseDouble(text, "number");
  if (!x.ok()) Malformed(x.status().text());
  return *x;
}
template <>
std::string Value<std::string>(const Json& j) {
  if (!j.is_string()) Malformed("text was expected, not " + j.dump().substr(0, 40));
  return j.get<std::string>();
}

int64_t Count(const Json& j, int64_t most) {
  const int64_t n = Value<int64_t>(j);
  if (n < 0 || n > most) Malformed(std::to_string(n) + " is not in 0.." + std::to_string(most));
  return n;
}

std::string Base64Bytes(const Json& j) {
  static const std::string kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  uint32_t bits = 0;
  int have = 0;
  for (const char c : Value<std::string>(j)) {
    if (c == '=') break;
    const size_t d = kDigits.find(c);
    if (d == std::string::npos) Malformed("a base64 text holds other characters");
    bits = bits << 6 | static_cast<uint32_t>(d);
    if ((have += 6) >= 8) out += static_cast<char>(bits >> (have -= 8));
  }
  return out;
}

std::string HexBytes(const Json& j) {
  const std::string text = Value<std::string>(j);
  if (text.size() % 2 != 0) Malformed("a hex text has an odd number of digits");
  std::string out;
  for (size_t i = 0; i < text.size(); i += 2) out += static_cast<char>(HexBits(Json("0x" + text.substr(i, 2)), 2));
  return out;
}
std::string HexOf(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) out += Format("%02x", static_cast<unsigned char>(c));
  return out;
}

void ExpectNear(const std::string& what, double got, const Json& want, double abs_tol, double rel_tol) {
  const double expected = Value<double>(want);
  const bool near = std::isnan(expected)   ? std::isnan(got)
                    : std::isinf(expected) ? got == expected
                                           : std::fabs(got - expected) <= abs_tol + rel_tol * std::fabs(expected);
  Expect(near, what + Format(" is %.9g, expected %.9g (tolerance %g + %g of it)", got, expected, abs_tol, rel_tol));
}

void ExpectBits(const std::string& what, float got, const Json& want) {
  const float expected = Value<float>(want);
  const bool same = IsNan(expected) ? IsNan(got) : Bits(got) == Bits(expected);
  Expect(same, what + Format(" is 0x%08x, expected ", Bits(got)) + want.dump());
}

void ExpectText(const std::string& what, const std::string& got, const Json& want) {
  Expect(got == Value<std::string>(want), what + " is " +
                                              Json(got).dump(-1, ' ', true, Json::error_handler_t::replace) +
                                              ", expected " + want.dump(-1, ' ', true));
}

}  // namespace samebits
