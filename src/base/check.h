// SB_CHECK: for our own mistakes only. What a user can cause is a Status.
#pragma once

#include <string>

namespace samebits {
[[noreturn]] void CheckFailed(const char* expr, const char* file, int line, const std::string& why);
}  // namespace samebits

#define SB_CHECK(cond, why)                                      \
  do {                                                           \
    if (!(cond)) [[unlikely]]                                    \
      ::samebits::CheckFailed(#cond, __FILE__, __LINE__, (why)); \
  } while (false)
