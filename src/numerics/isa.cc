#include "numerics/isa.h"

namespace samebits {

const char* IsaName(Isa isa) {
  switch (isa) {
    case Isa::kScalar:
      return "scalar";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
    case Isa::kNeon:
      return "neon";
  }
  return "unknown";
}

std::vector<Isa> AvailableIsas() {
  std::vector<Isa> isas = {Isa::kScalar};
#if defined(SB_HAVE_AVX2)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) isas.push_back(Isa::kAvx2);
#endif
#if defined(SB_HAVE_AVX512)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    isas.push_back(Isa::kAvx512);
#endif
#if defined(SB_HAVE_NEON)
  isas.push_back(Isa::kNeon);
#endif
  return isas;
}

Isa BestIsa() { return AvailableIsas().back(); }

}  // namespace samebits
