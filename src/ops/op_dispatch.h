// SB_ISA_TABLE: one kernel, the namespaces it was compiled in, and the one to run.
#pragma once

#include "numerics/isa.h"

namespace samebits {

// Picks space::kFunction from a table with one entry per instruction set in this build.
template <class Fn>
struct IsaTable {
  Fn scalar = nullptr, avx2 = nullptr, avx512 = nullptr, neon = nullptr;
  Fn For(Isa isa) const {
    const Fn fn = isa == Isa::kAvx512 ? avx512 : isa == Isa::kAvx2 ? avx2 : isa == Isa::kNeon ? neon : scalar;
    return fn != nullptr ? fn : scalar;
  }
};

}  // namespace samebits

// IsaTable of a kernel declared in every namespace: SB_ISA_TABLE(RmsNormRows).
#if defined(SB_HAVE_AVX512)
#define SB_ISA_TABLE(fn)                                                                                   \
  (::samebits::IsaTable<decltype(&::samebits::scalar::fn)>{&::samebits::scalar::fn, &::samebits::avx2::fn, \
                                                           &::samebits::avx512::fn, nullptr})
#elif defined(SB_HAVE_NEON)
#define SB_ISA_TABLE(fn)                                                                              \
  (::samebits::IsaTable<decltype(&::samebits::scalar::fn)>{&::samebits::scalar::fn, nullptr, nullptr, \
                                                           &::samebits::neon::fn})
#else
#define SB_ISA_TABLE(fn) \
  (::samebits::IsaTable<decltype(&::samebits::scalar::fn)>{&::samebits::scalar::fn, nullptr, nullptr, nullptr})
#endif
