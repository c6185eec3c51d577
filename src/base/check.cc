#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace samebits {

void CheckFailed(const char* expr, const char* file, int line, const std::string& why) {
  std::fprintf(stderr, "samebits: internal error at %s:%d: %s (%s)\n", file, line, expr, why.c_str());
  std::abort();
}

}  // namespace samebits
