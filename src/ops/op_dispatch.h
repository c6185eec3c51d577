// SB_ISA_TABLE: one kernel, the namespaces it was compiled in, and the one to run.
#pragma once

#include "ops/op.h"

namespace samebits {

// A kernel's name and its function for each instruction set in this build.
template <class Fn>
struct IsaTable {
  const char* name;
  Fn scalar = nullptr, avx2 = nullptr, avx512 = nullptr, neon = nullptr;
  // The function for the context's instruction set, or the scalar one; logs which it was.
  Fn For(const CpuContext& context) const {
    const Isa isa = context.isa;
    const Fn wanted = isa == Isa::kAvx512 ? avx512 : isa == Isa::kAvx2 ? avx2 : isa == Isa::kNeon ? neon : scalar;
    if (context.log != nullptr) context.log->Ran(name, wanted != nullptr ? isa : Isa::kScalar);
    return wanted != nullptr ? wanted : scalar;
  }
};

}  // namespace samebits

// IsaTable of a kernel declared in every namespace: SB_ISA_TABLE(RmsNormRows).
#if defined(SB_HAVE_AVX512)
#define SB_ISA_TABLE(fn)                                                                                        \
  (::samebits::IsaTable<decltype(&::samebits::scalar::fn)>{#fn, &::samebits::scalar::fn, &::samebits::avx2::fn, \
                                                           &::samebits::avx512::fn, nullptr})
#elif defined(SB_HAVE_NEON)
#define SB_ISA_TABLE(fn)                                                                                   \
  (::samebits::IsaTable<decltype(&::samebits::scalar::fn)>{#fn, &::samebits::scalar::fn, nullptr, nullptr, \
                                                           &::samebits::neon::fn})
#else
#define SB_ISA_TABLE(fn) \
  (::samebits::IsaTable<decltype(&::samebits::scalar::fn)>{#fn, &::samebits::scalar::fn, nullptr, nullptr, nullptr})
#endif
