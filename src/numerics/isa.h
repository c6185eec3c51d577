// The instruction sets one SIMD source is compiled for. Which one runs never changes a bit.
#pragma once

#include <vector>

namespace samebits {

enum class Isa { kScalar, kAvx2, kAvx512, kNeon };

const char* IsaName(Isa isa);
// Built into this program and supported by this machine, slowest first. Never empty: scalar is always there.
std::vector<Isa> AvailableIsas();
// The last of AvailableIsas().
Isa BestIsa();

// Expands ONE(isa_enum, namespace) for each instruction set in this build; dispatch tables are made with it.
#if defined(SB_HAVE_AVX512)
#define SB_FOR_EACH_ISA(ONE) \
  ONE(::samebits::Isa::kScalar, scalar) ONE(::samebits::Isa::kAvx2, avx2) ONE(::samebits::Isa::kAvx512, avx512)
#elif defined(SB_HAVE_NEON)
#define SB_FOR_EACH_ISA(ONE) ONE(::samebits::Isa::kScalar, scalar) ONE(::samebits::Isa::kNeon, neon)
#else
#define SB_FOR_EACH_ISA(ONE) ONE(::samebits::Isa::kScalar, scalar)
#endif

}  // namespace samebits
