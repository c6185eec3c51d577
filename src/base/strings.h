// Small text helpers: printf-style formatting into std::string, splitting, number parsing that rejects junk.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace samebits {

std::string Format(const char* fmt, ...) __attribute__((format(printf, 1, 2)));
std::vector<std::string> Split(std::string_view text, char separator);
std::string Join(const std::vector<std::string>& parts, std::string_view separator);
// The whole text must be a number in range; `what` names the flag or field in the error.
Result<int64_t> ParseInt(std::string_view text, const std::string& what);
Result<double> ParseDouble(std::string_view text, const std::string& what);
// "1,234,567"
std::string WithCommas(int64_t n);
// "8.9 MB" (powers of 1000).
std::string HumanBytes(uint64_t bytes);

}  // namespace samebits
