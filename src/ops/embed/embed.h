// Embedding: one row of the table per token. No arithmetic; bf16 rows widen exactly to fp32.
#pragma once

#include "ops/op.h"

namespace samebits {

struct EmbedArgs {
  const int32_t* ids = nullptr;  // [tokens], each in [0, table.rows)
  ConstMat table;                // [vocab, hidden] BF16 | F32
  Mat out;                       // [tokens, hidden] BF16 (from BF16) | F32 (from either)
};

Status CheckEmbed(const EmbedArgs& args);
void EmbedRef(const EmbedArgs& args);
Status Embed(const CpuContext& context, const EmbedArgs& args);

}  // namespace samebits
