// RoPE on the GPU: the tables are made on the host (rope_table_ref.cc) and copied once.
#pragma once

#include "ops/rope/rope.h"

namespace samebits {

struct CudaRopeArgs {
  Mat x;  // [tokens, heads * head_stride], rotated in place
  int64_t heads = 1, head_stride = 0, offset = 0;
  const int32_t* positions = nullptr;          // [tokens]
  const float *cos = nullptr, *sin = nullptr;  // [positions, half]
  int64_t half = 0;                            // table.dim() / 2
  RopeLayout layout = RopeLayout::kInterleaved;
};

}  // namespace samebits
