// What model tests share: random checkpoints of any shape, fp8 or not, and one way to run sequences.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/strings.h"
#include "model/score.h"
#include "numerics/random_inputs.h"
#include "store/safetensors.h"

namespace samebits {

// A checkpoint in memory that tests may spoil before it is written.
struct RandomCheckpoint {
  std::map<std::string, Tensor> tensors;
  std::string config;

  Status Write(const std::string& folder) const {
    SB_RETURN_IF_ERROR(MakeFolders(folder));
    SB_RETURN_IF_ERROR(WriteFile(JoinPath(folder, "config.json"), config));
    std::vector<NamedTensor> named;
    for (const auto& [name, t] : tensors) named.push_back({name, t.ref()});
    return WriteSafetensors(JoinPath(folder, "model.safetensors"), named);
  }
};

// A folder's name under the system's temporary folder; removed with the object.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& name)
      : path_(JoinPath(std::filesystem::temp_directory_path().string(), Format("samebits-%d-", getpid()) + name)) {}
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct RandomModelOptions {
  bool v32 = true, fp8 = false, ue8m0 = true;
  uint64_t seed = 1;
};

// The shape of spec 1.2's tiny-s: 1 dense and 2 MoE layers, partial fp8 scale blocks (kv_a has 160 rows), heads whose key
// and value rows share a scale block, more positions than index_topk.
inline RandomCheckpoint MakeRandomCheckpoint(const RandomModelOptions& o) {
  RandomCheckpoint c;
  RandomInputs random(o.seed);
  const auto put = [&](const std::string& name, DType dtype, Shape shape) -> Tensor& {
    return c.tensors[name] = Tensor(dtype, std::move(shape));
  };
  const auto bf16 = [&](const std::string& name, Shape shape, float scale, float centre = 0.0f) {
    Tensor& t = put(name, DType::kBF16, std::move(shape));
    for (int64_t i = 0; i < t.elements(); ++i) t.As<BF16>()[i] = RoundToBF16(centre + random.Normal() * scale);
  };
  const auto f32 = [&](const std::string& name, Shape shape, float scale) {
    Tensor& t = put(name, DType::kF32, std::move(shape));
    for (int64_t i = 0; i < t.elements(); ++i) t.As<float>()[i] = random.Normal() * scale;
  };
  const auto linear = [&](const std::string& name, int64_t n, int64_t k) {
    const float size = Div(1.0f, Sqrt(static_cast<float>(k)));
    if (!o.fp8) return bf16(name, {n, k}, size);
    const int64_t sk = (k + 127) / 128;
    Tensor& s = put(name + "_scale_inv", DType::kF32, {(n + 127) / 128, sk});
    for (int64_t i = 0; i < s.elements(); ++i)
      s.As<float>()[i] = (o.ue8m0 ? 1.0f : 0.7f + random.Uniform()) * (random.Below(2) ? 0x1p-8f : 0x1p-7f);
    Tensor& t = put(name, DType::kF8E4M3, {n, k});
    for (int64_t r = 0; r < n; ++r)
      for (int64_t i = 0; i < k; ++i)
        t.As<E4M3>()[r * k + i] =
            RoundToE4M3(random.Normal() * size / c.tensors[name + "_scale_inv"].As<float>()[r / 128 * sk + i / 128]);
  };
  const auto mlp = [&](const std::string& prefix, int64_t width) {
    linear(prefix + "gate_proj.weight", width, 256);
    linear(prefix + "up_proj.weight", width, 256);
    linear(prefix + "down_proj.weight", 256, width);
  };
  bf16("model.embed_tokens.weight", {512, 256}, 1.0f);
  bf16("model.norm.weight", {256}, 0.1f, 1.0f);
  bf16("lm_head.weight", {512, 256}, 0.0625f);
  for (int i = 0; i < 3; ++i) {
    const std::string p = Format("model.layers.%d.", i), a = p + "self_attn.";
    bf16(p + "input_layernorm.weight", {256}, 0.1f, 1.0f);
    bf16(p + "post_attention_layernorm.weight", {256}, 0.1f, 1.0f);
    linear(a + "q_a_proj.weight", 128, 256);
    bf16(a + "q_a_layernorm.weight", {128}, 0.1f, 1.0f);
    linear(a + "q_b_proj.weight", 4 * 96, 128);
    linear(a + "kv_a_proj_with_mqa.weight", 160, 256);
    bf16(a + "kv_a_layernorm.weight", {128}, 0.1f, 1.0f);
    linear(a + "kv_b_proj.weight", 4 * 128, 128);
    linear(a + "o_proj.weight", 256, 4 * 64);
    if (o.v32) {
      linear(a + "indexer.wq_b.weight", 4 * 128, 128);
      linear(a + "indexer.wk.weight", 128, 256);
      f32(a + "indexer.k_norm.weight", {128}, 1.0f);
      f32(a + "indexer.k_norm.bias", {128}, 0.1f);
      bf16(a + "indexer.weights_proj.weight", {4, 256}, 0.0625f);
    }
    if (i == 0) {
      mlp(p + "mlp.", 512);
      continue;
    }
    bf16(p + "mlp.gate.weight", {16, 256}, 0.0625f);
    f32(p + "mlp.gate.e_score_correction_bias", {16}, 0.2f);
    for (int e = 0; e < 16; ++e) mlp(p + Format("mlp.experts.%d.", e), 128);
    mlp(p + "mlp.shared_experts.", 128);
  }
  c.config = std::string("{\"architectures\":[\"Deepseek") + (o.v32 ? "V32" : "V3") +
             "ForCausalLM\"],\"model_type\":\"" + (o.v32 ? "deepseek_v32" : "deepseek_v3") +
             "\",\"vocab_size\":512,\"hidden_size\":256,\"intermediate_size\":512,\"moe_intermediate_size\":128,"
             "\"num_hidden_layers\":3,\"first_k_dense_replace\":1,\"num_attention_heads\":4,\"q_lora_rank\":128,"
             "\"kv_lora_rank\":128,\"qk_nope_head_dim\":64,\"qk_rope_head_dim\":32,\"v_head_dim\":64,"
             "\"n_routed_experts\":16,\"n_shared_experts\":1,\"num_experts_per_tok\":4,\"n_group\":4,\"topk_group\":2,"
             "\"routed_scaling_factor\":2.5,\"max_position_embeddings\":512," +
             (o.v32 ? "\"index_n_heads\":4,\"index_head_dim\":128,\"index_topk\":16," : "") +
             (o.fp8 ? std::string("\"quantization_config\":{\"quant_method\":\"fp8\",\"fmt\":\"e4m3\","
                                  "\"activation_scheme\":\"dynamic\",\"weight_block_size\":[128,128]") +
                          (o.ue8m0 ? ",\"scale_fmt\":\"ue8m0\"}," : "},")
                    : std::string()) +
             "\"rope_theta\":10000.0,\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4.0,"
             "\"original_max_position_embeddings\":64,\"mscale\":1.0,\"mscale_all_dim\":1.0}}";
  return c;
}

inline std::vector<int32_t> RandomIds(int64_t n, uint64_t seed, int64_t vocab = 512) {
  RandomInputs random(seed);
  std::vector<int32_t> ids(n);
  for (int32_t& id : ids) id = static_cast<int32_t>(random.Below(vocab));
  return ids;
}

}  // namespace samebits
