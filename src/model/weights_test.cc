// Checkpoints that must be refused, each by a sentence that names the tensor.
#include "model/weights.h"

#include <gtest/gtest.h>

#include "model/model_testing.h"

namespace samebits {
namespace {

template <class Spoil>
void Refused(const RandomModelOptions& options, const std::vector<std::string>& words, const Spoil& spoil) {
  RandomCheckpoint c = MakeRandomCheckpoint(options);
  spoil(&c);
  TemporaryFolder folder("weights");
  const Status written = c.Write(folder.path());
  ASSERT_TRUE(written.ok()) << written.text();
  ThreadPool pool(1);
  const Result<std::unique_ptr<Model>> m = Model::Load(folder.path(), {&pool, BestIsa()});
  ASSERT_FALSE(m.ok()) << "accepted, but should name " << words[0];
  for (const std::string& word : words)
    EXPECT_NE(m.status().text().find(word), std::string::npos) << m.status().text() << " lacks " << word;
}

const RandomModelOptions kPlain = {true, false, true, 1}, kFp8 = {true, true, true, 1};
const std::string kQa = "model.layers.1.self_attn.q_a_proj.weight";

TEST(Weights, MissingTensor) {
  for (const std::string& name :
       {kQa, std::string("lm_head.weight"), std::string("model.layers.0.input_layernorm.weight"),
        std::string("model.layers.2.mlp.experts.15.down_proj.weight"),
        std::string("model.layers.2.self_attn.indexer.k_norm.bias")})
    Refused(kPlain, {name}, [&](RandomCheckpoint* c) { c->tensors.erase(name); });
  Refused(kFp8, {kQa + "_scale_inv"}, [&](RandomCheckpoint* c) { c->tensors.erase(kQa + "_scale_inv"); });
}

TEST(Weights, WrongShape) {
  Refused(kPlain, {kQa, "[128, 255]", "[128, 256]"},
          [&](RandomCheckpoint* c) { c->tensors[kQa] = Tensor(DType::kBF16, {128, 255}); });
  Refused(kPlain, {kQa}, [&](RandomCheckpoint* c) { c->tensors[kQa] = Tensor(DType::kBF16, {128 * 256}); });
  Refused(kFp8, {kQa + "_scale_inv", "[1, 3]"},
          [&](RandomCheckpoint* c) { c->tensors[kQa + "_scale_inv"] = Tensor(DType::kF32, {1, 3}); });
}

TEST(Weights, WrongDtype) {
  for (const DType dtype : {DType::kF16, DType::kF32, DType::kI32})
    Refused(kPlain, {kQa, DTypeName(dtype)}, [&](RandomCheckpoint* c) { c->tensors[kQa] = Tensor(dtype, {128, 256}); });
  const std::string norm = "model.norm.weight";
  Refused(kPlain, {norm, "F16"}, [&](RandomCheckpoint* c) { c->tensors[norm] = Tensor(DType::kF16, {256}); });
  Refused(kPlain, {kQa, "quantization_config"},
          [&](RandomCheckpoint* c) { c->tensors[kQa] = Tensor(DType::kF8E4M3, {128, 256}); });
  Refused(kFp8, {kQa + "_scale_inv", "BF16"},
          [&](RandomCheckpoint* c) { c->tensors[kQa + "_scale_inv"] = Tensor(DType::kBF16, {1, 2}); });
}

TEST(Weights, NotFinite) {
  for (const uint16_t bits : {0x7fc0, 0x7f80, 0xff80, 0xffff})
    Refused(kPlain, {kQa, "element 77"}, [&](RandomCheckpoint* c) { c->tensors[kQa].As<BF16>()[77] = BF16{bits}; });
  const std::string bias = "model.layers.1.mlp.gate.e_score_correction_bias";
  Refused(kPlain, {bias}, [&](RandomCheckpoint* c) { c->tensors[bias].As<float>()[3] = FromBits(0x7fc00000u); });
  Refused(kFp8, {kQa}, [&](RandomCheckpoint* c) { c->tensors[kQa].As<E4M3>()[5] = E4M3{0x7f}; });
  Refused(kFp8, {kQa + "_scale_inv"},
          [&](RandomCheckpoint* c) { c->tensors[kQa + "_scale_inv"].As<float>()[0] = FromBits(0x7f800000u); });
  const std::string kv_b = "model.layers.0.self_attn.kv_b_proj.weight";
  Refused(kFp8, {kv_b}, [&](RandomCheckpoint* c) { c->tensors[kv_b].As<E4M3>()[5] = E4M3{0xff}; });
}

TEST(Weights, TensorsWithoutAPlace) {
  Refused(kPlain, {"model.layers.1.self_attn.q_a_proj.bias"}, [](RandomCheckpoint* c) {
    c->tensors["model.layers.1.self_attn.q_a_proj.bias"] = Tensor(DType::kBF16, {128});
  });
  Refused(kPlain, {"model.layers.3.eh_proj.weight"}, [](RandomCheckpoint* c) {  // config says: no MTP layer
    c->tensors["model.layers.3.eh_proj.weight"] = Tensor(DType::kBF16, {256, 512});
  });
}

TEST(Weights, MtpLayerIsSkipped) {
  RandomCheckpoint c = MakeRandomCheckpoint(kPlain);
  c.config.insert(1, "\"num_nextn_predict_layers\":1,");
  c.tensors["model.layers.3.eh_proj.weight"] = Tensor(DType::kBF16, {256, 512});
  TemporaryFolder folder("mtp");
  ASSERT_TRUE(c.Write(folder.path()).ok());
  ThreadPool pool(1);
  const Result<std::unique_ptr<Model>> m = Model::Load(folder.path(), {&pool, BestIsa()});
  EXPECT_TRUE(m.ok()) << m.status().text();
}

TEST(Weights, NoFolder) {
  ThreadPool pool(1);
  const Result<std::unique_ptr<Model>> m = Model::Load("/nonexistent-folder", {&pool, BestIsa()});
  ASSERT_FALSE(m.ok());
  EXPECT_NE(m.status().text().find("/nonexistent-folder"), std::string::npos);
}

}  // namespace
}  // namespace samebits
