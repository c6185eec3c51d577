#include "base/strings.h"

#include <charconv>
#include <cstdarg>
#include <cstdio>

namespace samebits {

std::string Format(const char* fmt, ...) {
  va_list args, again;
  va_start(args, fmt);
  va_copy(again, args);
  const int n = std::vsnprintf(nullptr, 0, fmt, args);
  va_end(args);
  std::string out(n > 0 ? static_cast<size_t>(n) : 0, '\0');
  if (n > 0) std::vsnprintf(out.data(), out.size() + 1, fmt, again);
  va_end(again);
  return out;
}

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  while (true) {
    const size_t end = text.find(separator, begin);
    parts.emplace_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

std::string Join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i) out += separator;
    out += parts[i];
  }
  return out;
}

namespace {
template <class T>
Result<T> Parse(std::string_view text, const std::string& what, const char* kind) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return Error(what + ": \"" + std::string(text) + "\" is not " + kind);
  return value;
}
}  // namespace

Result<int64_t> ParseInt(std::string_view text, const std::string& what) {
  return Parse<int64_t>(text, what, "a whole number in range");
}
Result<double> ParseDouble(std::string_view text, const std::string& what) {
  return Parse<double>(text, what, "a number");
}

std::string WithCommas(int64_t n) {
  std::string digits =
      std::to_string(n < 0 ? 0 - static_cast<uint64_t>(n) : static_cast<uint64_t>(n));  // INT64_MIN too
  for (int64_t i = static_cast<int64_t>(digits.size()) - 3; i > 0; i -= 3) digits.insert(static_cast<size_t>(i), ",");
  return n < 0 ? "-" + digits : digits;
}

std::string HumanBytes(uint64_t bytes) {
  static const char* const kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1000 && unit < 5) value /= 1000, ++unit;
  return unit == 0 ? Format("%llu B", static_cast<unsigned long long>(bytes)) : Format("%.1f %s", value, kUnits[unit]);
}

}  // namespace samebits
