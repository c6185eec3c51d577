// Top-k on the GPU: the contract's Args with device pointers, and the page transform fused into the store.
#pragma once

#include "ops/topk/topk.h"
#include "ops/topk/topk_tuning.h"

namespace samebits {

struct CudaTopkArgs {
  TopkArgs topk;  // indices.data may be null if slots is given
  // Fused PageTransform: slots [rows, k] or none.
  int32_t* slots = nullptr;
  int64_t slots_stride = 0;
  const int32_t* page_table = nullptr;  // [requests, pages]
  int64_t page_table_stride = 0;
  const int32_t* request = nullptr;  // [rows] or none
  int32_t page_size = 64;
  int tuning = -1;  // index into kTopkTunings; -1: TopkPick
};

}  // namespace samebits
