// Digests of whole runs that the repository holds every build to: XXH3-128 of the named rows, all layers and positions.
// Of prove's default request on models/tiny-v32; printed by `samebits prove models/tiny-v32 --golden`. Changing one is a change of the arithmetic (doc/numerics_changes.md).
#pragma once

namespace samebits {

struct GoldenDigest {
  const char* what;  // "tiny-v32 deepseek logits"
  const char* hex;
};
inline constexpr GoldenDigest kGoldenDigests[] = {
    {"tiny-v32 portable-1", "b2163b9ca85a5df5e972c25fc6a9f146"},
    {"tiny-v32 portable-1/float32", "30ddd7244ddf52934deee3d2ac428d85"},
};

}  // namespace samebits
