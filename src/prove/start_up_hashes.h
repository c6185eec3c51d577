// Hashes of the self-test's outputs, computed from the references (tools/update_goldens.sh prints them). Changing one
// is a change of the arithmetic: its own commit, and a line in doc/numerics_changes.md.
#pragma once

#include <cstdint>

namespace samebits {

struct SelfTestHash {
  const char* op;
  uint64_t hash;
};
inline constexpr SelfTestHash kSelfTestHashes[] = {
    {"embed", 0},
};

}  // namespace samebits
