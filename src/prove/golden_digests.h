// Digests of whole runs that the repository holds every build to: XXH3-128 of the named rows, all layers and positions.
// Printed by `samebits prove --golden`. Changing one is a change of the arithmetic (doc/numerics_changes.md).
#pragma once

namespace samebits {

struct GoldenDigest {
  const char* what;  // "tiny-v32 deepseek logits"
  const char* hex;
};
inline constexpr GoldenDigest kGoldenDigests[] = {
    {"", ""},
};

}  // namespace samebits
