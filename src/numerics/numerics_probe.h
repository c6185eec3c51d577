// For the tests of this folder: the vector code of simd.h, one entry per thing to compare with the scalar definitions.
#pragma once

#include <cstdint>

#include "numerics/format.h"
#include "numerics/isa.h"

namespace samebits {

// Functions of one fp32 value to one fp32 value.
enum class MathFn { kExp, kLog, kSigmoid, kSilu, kSoftplus, kRsqrt, kExp2Fraction, kCount };
const char* MathFnName(MathFn fn);
float MathFnScalar(MathFn fn, float x);

// Lane operations of three operands (those an operation does not take are ignored); results as bits.
enum class LaneOp {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kFma,
  kSqrt,
  kAbs,
  kMax,
  kMin,
  kAddI,
  kSubI,
  kAndI,
  kOrI,
  kShl,
  kShr,
  kSar,
  kSelectLt,
  kSelectNan,
  kCount
};
uint32_t LaneOpScalar(LaneOp op, uint32_t a, uint32_t b, uint32_t c);

bool IsaAvailable(Isa isa);

#define SB_DECLARE_PROBE(isa, space)                                                                               \
  namespace space {                                                                                                \
  void MathRow(MathFn fn, const float* x, float* out, int64_t n);                                                  \
  /* FNV-1a over the bits of fn at the inputs first, first + stride, ... (count of them). */                       \
  uint64_t MathHash(MathFn fn, uint32_t first, uint32_t stride, int64_t count, uint64_t hash);                     \
  void LaneRow(LaneOp op, const uint32_t* a, const uint32_t* b, const uint32_t* c, uint32_t* out, int64_t blocks); \
  void ToBF16Row(const float* x, BF16* out, int64_t n);                                                            \
  void FromBF16Row(const BF16* x, float* out, int64_t n);                                                          \
  void ToE4M3Row(const float* x, E4M3* out, int64_t n);                                                            \
  void FromE4M3Row(const E4M3* x, float* out);                                                                     \
  float RowSum(const float* x, int64_t n);                                                                         \
  float RowSumOfSquares(const float* x, int64_t n);                                                                \
  float RowMax16(const float* x);                                                                                  \
  }
SB_FOR_EACH_ISA(SB_DECLARE_PROBE)
#undef SB_DECLARE_PROBE

inline constexpr uint64_t kFnvStart = 0xcbf29ce484222325u, kFnvPrime = 0x100000001b3u;
// FNV-1a on whole 32-bit words.
inline uint64_t FnvWord(uint64_t hash, uint32_t word) { return (hash ^ word) * kFnvPrime; }

}  // namespace samebits
