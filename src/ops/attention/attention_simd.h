// Between attention_cpu.cc and attention_simd.cc: some heads of one token.
#pragma once

#include <cstdint>

#include "numerics/isa.h"

namespace samebits {

struct AttentionTask {
  const void* q;  // [heads, dim] of the token, from head 0
  bool q_bf16, kv_bf16, out_bf16;
  int64_t dim, value_dim, head_begin, head_end;
  const uint8_t* keys;    // pool
  const uint8_t* values;  // pool
  const int64_t* key_at;  // byte offsets of the list's rows
  const int64_t* value_at;
  int64_t count;
  bool values_are_keys;  // values are the first value_dim columns of the key rows
  float scale;
  void* out;       // [heads, value_dim] of the token
  float* lse;      // [heads] or null
  float* scratch;  // AttentionScratch(...) floats
};

inline int64_t AttentionScratch(int64_t heads, int64_t dim, int64_t value_dim) {
  const int64_t row = (dim + 15) / 16 * 16, values = (value_dim + 15) / 16 * 16;
  return 64 * (row + dim + values) + heads * (dim + 64 + 3 * values);
}
inline constexpr int64_t kAttentionMostHeads = 1024;

#define SB_DECLARE_ATTENTION(isa, space)          \
  namespace space {                               \
  void AttentionToken(const AttentionTask& task); \
  }
SB_FOR_EACH_ISA(SB_DECLARE_ATTENTION)
#undef SB_DECLARE_ATTENTION

}  // namespace samebits
