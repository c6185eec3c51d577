// config.json of DeepSeek V3, V3.1, R1 and V3.2 as released (spec 1.1), checked.
#pragma once

#include <string>

#include "base/status.h"
#include "ops/rope/rope.h"

namespace samebits {

enum class ModelFamily { kV3, kV32 };

// Which of two published behaviours the forward pass follows; every difference between them is read from here.
//   deepseek  DeepSeek's own inference code: bf16 rounding points, latent and indexer keys through fp8, Hadamard.
//   Default. float32   Hugging Face's model in float32: no activation is rounded, no Hadamard, no fp8. What
//   tests/golden holds.
struct Profile {
  const char* name;             // "deepseek", "float32"
  const char* contract_suffix;  // appended to the contract id: "portable-1" or "portable-1/float32"
  DType activation;             // BF16 | F32
  bool latent_round_trip;       // V3.2: the latent goes through E4M3 before it is cached and used
  bool index_fp8, index_hadamard;
  bool fp8_activations;         // fp8 weights: quantise activations (else use dequantised weights)
  bool norm_of_rounded_sum_v3;  // V3's residual add rounds before the norm
  float route_norm_eps;         // 0, or Hugging Face's 1e-20
};
inline constexpr Profile kDeepseekProfile = {"deepseek", "", DType::kBF16, true, true, true, true, true, 0.0f};
inline constexpr Profile kFloat32Profile = {"float32", "/float32", DType::kF32, false, false,
                                            false,     false,      true,        1e-20f};
// By name; the error lists the names.
Result<const Profile*> ProfileFromName(const std::string& name);

struct ModelConfig {
  ModelFamily family = ModelFamily::kV32;
  int64_t vocab_size = 0, hidden_size = 0, intermediate_size = 0, moe_intermediate_size = 0;
  int num_layers = 0, first_k_dense = 0, mtp_layers = 0;
  int num_heads = 0, q_lora_rank = 0, kv_lora_rank = 0, nope_dim = 0, rope_dim = 0, v_dim = 0;
  int n_experts = 0, n_shared_experts = 0, experts_per_token = 0, n_group = 1, topk_group = 1;
  bool norm_topk_prob = true;
  float routed_scaling = 1.0f, norm_eps = 1e-6f;
  int index_heads = 0, index_dim = 0, index_topk = 0;  // V3.2 only
  bool fp8_weights = false;
  bool ue8m0_scales =
      true;  // activation scales are powers of two (scale_fmt "ue8m0"; V3.2 without quantization_config too)
  int max_positions = 0;
  int bos_id = 0, eos_id = 1;
  YarnConfig rope;
  float attention_scale = 0;  // (nope + rope)^-1/2 times YaRN's multiplier

  bool sparse() const { return family == ModelFamily::kV32; }
};

// `path` is named in errors: missing, not JSON, a field of the wrong type or out of range, an unknown architecture,
// a feature this version lacks (by name). Fields that only matter for training are ignored; unknown ones are refused.
Result<ModelConfig> ParseModelConfig(const std::string& json, const std::string& path);

}  // namespace samebits
