# The only place where a floating-point flag is set. Contract: doc/numerics.md, ground rules.
# Contraction is off everywhere: a fused multiply-add happens where the source says Fma() and nowhere else.
set(SB_NUMERIC_CXX_FLAGS -ffp-contract=off -fno-fast-math -fno-unsafe-math-optimizations)
set(SB_NUMERIC_CUDA_FLAGS -fmad=false -ftz=false -prec-div=true -prec-sqrt=true -Xcompiler=-ffp-contract=off)

# One SIMD source is compiled once per instruction set (see src/numerics/simd.h). SB_ISA names the inline namespace.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(SB_ISAS scalar avx2 avx512)
  set(SB_ISA_FLAGS_scalar -DSB_ISA=scalar -DSB_ISA_SCALAR=1)
  set(SB_ISA_FLAGS_avx2 -DSB_ISA=avx2 -DSB_ISA_AVX2=1 -mavx2 -mfma -mf16c)
  set(SB_ISA_FLAGS_avx512 -DSB_ISA=avx512 -DSB_ISA_AVX512=1 -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512dq
                          -mavx512vl -mprefer-vector-width=512)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # g++ 12 warns inside its own intrinsics (PR 105593)
    list(APPEND SB_ISA_FLAGS_avx512 -Wno-maybe-uninitialized -Wno-uninitialized)
  endif()
  add_compile_definitions(SB_HAVE_AVX2=1 SB_HAVE_AVX512=1)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set(SB_ISAS scalar neon)
  set(SB_ISA_FLAGS_scalar -DSB_ISA=scalar -DSB_ISA_SCALAR=1)
  set(SB_ISA_FLAGS_neon -DSB_ISA=neon -DSB_ISA_NEON=1)
  add_compile_definitions(SB_HAVE_NEON=1)
else()
  set(SB_ISAS scalar)
  set(SB_ISA_FLAGS_scalar -DSB_ISA=scalar -DSB_ISA_SCALAR=1)
endif()
