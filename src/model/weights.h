// The weights of a model as the forward pass uses them: names, shapes and dtypes checked, linears packed.
#pragma once

#include <string>
#include <vector>

#include "model/config.h"
#include "ops/gemm/gemm.h"
#include "store/checkpoint.h"

namespace samebits {

struct MlpWeights {
  PackedWeight gate, up, down;
};

struct LayerWeights {
  std::vector<float> attn_norm, mlp_norm, q_a_norm, kv_a_norm;
  PackedWeight q_a, q_b, kv_a, o;
  // kv_b, dequantised and cut for the absorbed form (spec 4.6): per head [kv_lora_rank, nope] and [v, kv_lora_rank].
  std::vector<PackedWeight> w_kc, w_vc;
  // V3.2 only.
  PackedWeight index_q, index_k, index_weights;
  std::vector<float> index_norm_weight, index_norm_bias;
  MlpWeights mlp;  // the dense MLP, or the shared experts
  // MoE layers only.
  PackedWeight router;
  std::vector<float> correction_bias;  // empty: none in the checkpoint
  std::vector<MlpWeights> experts;
};

struct ModelWeights {
  Checkpoint checkpoint;         // keeps the map of `embed` alive
  ConstMat embed;                // [vocab, hidden] BF16
  std::vector<BF16> embed_copy;  // used when the file leaves the table at an odd address
  std::vector<LayerWeights> layers;
  std::vector<float> final_norm;
  PackedWeight head;
  uint64_t bytes = 0;
};

// Errors name file and tensor. With `dense`, the indexer's weights are left out.
Result<ModelWeights> LoadWeights(const std::string& folder, const ModelConfig& config, const Profile& profile,
                                 bool dense, bool show_progress, const CpuContext& context);

}  // namespace samebits
