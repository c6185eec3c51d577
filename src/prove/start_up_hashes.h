// Hashes of the self-test's outputs, computed from the references (`samebits manifest --hashes` prints them). Changing one
// is a change of the arithmetic: its own commit, and a line in doc/numerics_changes.md.
#pragma once

#include <cstdint>

namespace samebits {

struct SelfTestHash {
  const char* op;
  uint64_t hash;
};
inline constexpr SelfTestHash kSelfTestHashes[] = {
    {"embed", 0x7c53bcfd81fd1fe4u},         {"norm", 0xea3f4033610bdae5u},     {"gemm_bf16", 0x702011e902daec60u},
    {"gemm_bf16_f32", 0x3938b3ec5cdba08cu}, {"gemm_f32", 0x4bd21bff56e450d7u}, {"gemm_fp8", 0x76fb59430e3028aeu},
    {"quant", 0x3729a9576f68856bu},         {"rope", 0x6be198e39fa79e3eu},     {"hadamard", 0x7e86e8a752b2e40bu},
    {"indexer", 0x956b1c7c23f4ca6au},       {"topk", 0x3f76a0a997969ae9u},     {"attention", 0xf14cb8dc47f7de63u},
    {"route", 0x5081a9f226f1caadu},         {"exp", 0x49fab425aff495f5u},      {"moe", 0x6ee1816c5f6b69dau},
    {"sample", 0x4474c77f29d3232cu},
};

}  // namespace samebits
