// Every field of config.json that the parser must take or refuse, by editing one good config.
#include "model/config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "numerics/hd.h"
#include "numerics/random_inputs.h"

namespace samebits {
namespace {

using Json = nlohmann::json;

Json Good(const std::string& file) {
  const Result<std::string> text = ReadFile(std::string(SB_SOURCE_DIR) + "/" + file);
  EXPECT_TRUE(text.ok()) << text.status().text();
  return Json::parse(*text);
}
Json GoodV32() { return Good("models/tiny-v32/config.json"); }
Json GoodV3() { return Good("tests/golden/v3-yarn/config.json"); }

Result<ModelConfig> Parse(const Json& j) { return ParseModelConfig(j.dump(), "here/config.json"); }

// The parse fails with a sentence that names the file and `word`.
void Refuses(const Json& j, const std::string& word) {
  const Result<ModelConfig> c = Parse(j);
  ASSERT_FALSE(c.ok()) << "accepted, but should name " << word;
  EXPECT_NE(c.status().text().find("here/config.json"), std::string::npos) << c.status().text();
  EXPECT_NE(c.status().text().find(word), std::string::npos) << c.status().text() << " lacks " << word;
}

TEST(Config, ReadsV32) {
  const Result<ModelConfig> r = Parse(GoodV32());
  ASSERT_TRUE(r.ok()) << r.status().text();
  const ModelConfig& c = *r;
  EXPECT_EQ(c.family, ModelFamily::kV32);
  EXPECT_TRUE(c.sparse());
  EXPECT_EQ(c.hidden_size, 192);
  EXPECT_EQ(c.index_topk, 64);
  EXPECT_EQ(c.n_group, 4);
  EXPECT_EQ(c.rope.dim, 16);
  EXPECT_EQ(c.rope.original_length, 1024);
  EXPECT_FALSE(c.fp8_weights);
  EXPECT_TRUE(c.ue8m0_scales);
  // (32 + 16)^-1/2 * (0.1 ln 4 + 1)^2
  EXPECT_NEAR(c.attention_scale, 0.14433757 * 1.13862944 * 1.13862944, 1e-6);
}

TEST(Config, ReadsV3AndNoRopeScaling) {
  const Result<ModelConfig> v3 = Parse(GoodV3());
  ASSERT_TRUE(v3.ok()) << v3.status().text();
  EXPECT_EQ(v3->family, ModelFamily::kV3);
  EXPECT_FALSE(v3->sparse());
  EXPECT_FALSE(v3->ue8m0_scales);
  const Result<ModelConfig> plain = Parse(Good("tests/golden/v32-sparse/config.json"));
  ASSERT_TRUE(plain.ok()) << plain.status().text();
  EXPECT_EQ(plain->rope.factor, 1.0f);
}

// transformers 5 writes the same model with "rope_parameters" and per-layer lists.
TEST(Config, ReadsTransformersForm) {
  for (const std::string name : {"v3-yarn", "v32-sparse"}) {
    const Result<ModelConfig> a = Parse(Good("tests/golden/" + name + "/config.json"));
    const Result<ModelConfig> b = Parse(Good("tests/golden/" + name + "/config.transformers.json"));
    ASSERT_TRUE(a.ok() && b.ok()) << a.status().text() << b.status().text();
    EXPECT_EQ(Bits(a->attention_scale), Bits(b->attention_scale)) << name;
    EXPECT_EQ(a->rope.original_length, b->rope.original_length) << name;
    EXPECT_EQ(Bits(a->rope.theta), Bits(b->rope.theta)) << name;
  }
}

TEST(Config, ReadsReleasedFp8) {
  Json j = GoodV3();
  j["quantization_config"] = {
      {"quant_method", "fp8"}, {"fmt", "e4m3"}, {"activation_scheme", "dynamic"}, {"weight_block_size", {128, 128}}};
  Result<ModelConfig> c = Parse(j);
  ASSERT_TRUE(c.ok()) << c.status().text();
  EXPECT_TRUE(c->fp8_weights);
  EXPECT_FALSE(c->ue8m0_scales);
  j["quantization_config"]["scale_fmt"] = "ue8m0";
  c = Parse(j);
  ASSERT_TRUE(c.ok()) << c.status().text();
  EXPECT_TRUE(c->ue8m0_scales);
  j["quantization_config"]["scale_fmt"] = "fp32";
  Refuses(j, "scale_fmt");
  j["quantization_config"]["scale_fmt"] = "ue8m0";
  for (const Json& size : {Json({64, 128}), Json(128), Json::array({128})}) {
    Json k = j;
    k["quantization_config"]["weight_block_size"] = size;
    Refuses(k, "weight_block_size");
  }
  j["quantization_config"]["quant_method"] = "awq";
  Refuses(j, "awq");
}

TEST(Config, RefusesWhatIsNotAConfig) {
  for (const char* text : {"", "{", "[]", "3", "null", "{\"model_type\":\"deepseek_v3\"} x", "\xff\xfe"}) {
    const Result<ModelConfig> c = ParseModelConfig(text, "here/config.json");
    ASSERT_FALSE(c.ok()) << text;
    EXPECT_NE(c.status().text().find("here/config.json"), std::string::npos);
  }
}

TEST(Config, RefusesOtherModels) {
  Json j = GoodV32();
  j["model_type"] = "llama";
  Refuses(j, "llama");
  j["model_type"] = 3;
  Refuses(j, "model_type");
  j = GoodV32();
  j["architectures"] = {"DeepseekV3ForCausalLM"};
  Refuses(j, "architectures");
  Refuses(Good("tests/golden/v4-all/config.json"), "deepseek_v4");
}

TEST(Config, EveryNumberIsNeededAndHasTypeAndRange) {
  for (const char* field :
       {"vocab_size", "hidden_size", "intermediate_size", "moe_intermediate_size", "num_hidden_layers",
        "num_attention_heads", "q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim",
        "n_routed_experts", "num_experts_per_tok", "max_position_embeddings", "index_n_heads", "index_head_dim",
        "index_topk"}) {
    Json j = GoodV32();
    j.erase(field);
    Refuses(j, field);
    for (const Json& bad : {Json("7"), Json(1.5), Json(0), Json(-1), Json(int64_t{1} << 60), Json(true), Json::array(),
                            Json(18446744073709551615u)}) {
      j[field] = bad;
      Refuses(j, field);
    }
  }
}

TEST(Config, RefusesCombinationsThatCannotBe) {
  const auto with = [](const char* field, const Json& value) {
    Json j = GoodV32();
    j[field] = value;
    return j;
  };
  Refuses(with("n_group", 3), "n_group");
  Refuses(with("topk_group", 5), "topk_group");
  Refuses(with("num_experts_per_tok", 9), "num_experts_per_tok");
  Refuses(with("qk_rope_head_dim", 15), "qk_rope_head_dim");
  Refuses(with("index_head_dim", 48), "index_head_dim");
  Refuses(with("index_head_dim", 8), "index_head_dim");
  Refuses(with("first_k_dense_replace", 7), "first_k_dense_replace");
  Refuses(with("bos_token_id", 2048), "bos_token_id");
  Refuses(with("rms_norm_eps", -1.0), "rms_norm_eps");
  Refuses(with("routed_scaling_factor", "2.5"), "routed_scaling_factor");
}

TEST(Config, RefusesFeaturesThisVersionLacks) {
  const std::pair<const char*, Json> kFeatures[] = {{"tie_word_embeddings", true}, {"attention_bias", true},
                                                    {"hidden_act", "gelu"},        {"topk_method", "greedy"},
                                                    {"scoring_func", "softmax"},   {"moe_layer_freq", 2},
                                                    {"rope_interleave", false},    {"indexer_rope_interleave", true},
                                                    {"sliding_window", 128},       {"hidden_act", 3},
                                                    {"tie_word_embeddings", "no"}, {"norm_topk_prob", 1}};
  for (const auto& [field, value] : kFeatures) {
    Json j = GoodV32();
    j[field] = value;
    Refuses(j, field);
  }
  Json v3 = GoodV3();
  v3["index_topk"] = 64;  // a V3 model has no indexer
  Refuses(v3, "index_topk");
}

TEST(Config, RopeScaling) {
  const auto with = [](const char* field, const Json& value) {
    Json j = GoodV32();
    if (value.is_null())
      j["rope_scaling"].erase(field);
    else
      j["rope_scaling"][field] = value;
    return j;
  };
  Refuses(with("type", "linear"), "linear");
  Refuses(with("factor", nullptr), "factor");
  Refuses(with("factor", 0.5), "factor");
  Refuses(with("factor", "4"), "factor");
  Refuses(with("mscale", 0.7), "mscale");
  Refuses(with("mscale_all_dim", nullptr), "mscale_all_dim");
  Refuses(with("original_max_position_embeddings", 0), "original_max_position_embeddings");
  Refuses(with("attention_factor", 1.0), "attention_factor");
  Json j = GoodV32();
  j["rope_parameters"] = j["rope_scaling"];
  Refuses(j, "rope_parameters");
  j = GoodV32();
  j["rope_scaling"] = 4;
  Refuses(j, "rope_scaling");
  j["rope_scaling"] = nullptr;
  ASSERT_TRUE(Parse(j).ok());
  EXPECT_EQ(Parse(j)->rope.factor, 1.0f);
}

// Spoiled text never crashes the parser (run under ASan and UBSan in the asan preset); what it takes is in range.
TEST(Config, SurvivesMutations) {
  std::vector<std::string> seeds = {GoodV32().dump(), GoodV3().dump(),
                                    Good("tests/golden/v32-sparse/config.transformers.json").dump()};
  RandomInputs random(20240607);
  const std::string bytes = "0123456789-+.eE\"{}[],:ntfu\\ \xff";
  int taken = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = seeds[random.Below(seeds.size())];
    for (uint64_t edits = 1 + random.Below(3); edits > 0; --edits) {
      const size_t at = random.Below(text.size());
      const char c = bytes[random.Below(bytes.size())];
      switch (random.Below(4)) {
        case 0:
          text[at] = c;
          break;
        case 1:
          text.insert(at, 1, c);
          break;
        case 2:
          text.erase(at, 1 + random.Below(8));
          break;
        default:
          text.insert(at, text.substr(random.Below(text.size()), random.Below(24)));
      }
      if (text.empty()) text = "{";
    }
    const Result<ModelConfig> c = ParseModelConfig(text, "here/config.json");
    if (!c.ok()) {
      ASSERT_NE(c.status().text().find("here/config.json"), std::string::npos) << text;
      continue;
    }
    ++taken;
    ASSERT_TRUE(c->rope_dim % 2 == 0 && c->topk_group <= c->n_group && c->attention_scale > 0) << text;
  }
  EXPECT_GT(taken, 100);  // an edit of a number may leave a config
}

TEST(Config, Profiles) {
  ASSERT_TRUE(ProfileFromName("float32").ok());
  EXPECT_EQ(*ProfileFromName("deepseek"), &kDeepseekProfile);
  EXPECT_FALSE(ProfileFromName("bf16").ok());
}

}  // namespace
}  // namespace samebits
