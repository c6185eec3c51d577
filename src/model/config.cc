#include "model/config.h"

#include <nlohmann/json.hpp>

#include "base/strings.h"
#include "numerics/hd.h"

namespace samebits {
namespace {

using Json = nlohmann::json;

// Fields that change nothing in inference, or repeat what other fields say.
constexpr const char* kIgnored[] = {
    "_name_or_path",
    "attention_dropout",
    "auto_map",
    "aux_loss_alpha",
    "dtype",
    "ep_size",
    "head_dim",
    "initializer_range",
    "num_key_value_heads",
    "pad_token_id",
    "qk_head_dim",
    "pretraining_tp",
    "router_aux_loss_coef",
    "seq_aux",
    "torch_dtype",
    "transformers_version",
    "use_cache",
};

// Reads fields of one JSON object; the first error sticks, every field asked for counts as known.
class Fields {
 public:
  Fields(const Json& object, std::string place) : object_(object), place_(std::move(place)) {}
  const Status& status() const { return status_; }
  bool Has(const char* name) {
    known_.push_back(name);
    return object_.contains(name) && !object_[name].is_null();
  }
  int64_t Int(const char* name, int64_t low, int64_t high, const int64_t* absent = nullptr) {
    if (!Has(name)) return Absent(name, absent);
    const Json& v = object_[name];
    if (!v.is_number_integer()) return Fail(name, "must be an integer, not " + v.dump(-1, ' ', true)), low;
    const bool in_range =
        v.is_number_unsigned() ? v.get<uint64_t>() <= static_cast<uint64_t>(high) : v.get<int64_t>() <= high;
    if (!in_range || v.get<int64_t>() < low)
      return Fail(name, "must be from " + std::to_string(low) + " to " + std::to_string(high) + ", not " + v.dump()),
             low;
    return v.get<int64_t>();
  }
  int64_t Int(const char* name, int64_t low, int64_t high, int64_t absent) { return Int(name, low, high, &absent); }
  double Number(const char* name, double low, double high, const double* absent = nullptr) {
    if (!Has(name)) return Absent(name, absent);
    const Json& v = object_[name];
    if (!v.is_number()) return Fail(name, "must be a number, not " + v.dump(-1, ' ', true)), low;
    const double x = v.get<double>();
    if (!(x >= low && x <= high)) return Fail(name, Format("must be from %g to %g, not %g", low, high, x)), low;
    return x;
  }
  double Number(const char* name, double low, double high, double absent) { return Number(name, low, high, &absent); }
  bool Bool(const char* name, bool absent) {
    if (!Has(name)) return absent;
    if (!object_[name].is_boolean()) return Fail(name, "must be true or false"), absent;
    return object_[name].get<bool>();
  }
  std::string Text(const char* name, const std::string& absent) {
    if (!Has(name)) return absent;
    if (!object_[name].is_string()) return Fail(name, "must be a string"), absent;
    return object_[name].get<std::string>();
  }
  // A feature with one supported value.
  void Only(const char* name, bool want) {
    if (Bool(name, want) != want) Fail(name, want ? "false is not supported" : "true is not supported");
  }
  void Only(const char* name, const char* want) {
    const std::string got = Text(name, want);
    if (got != want) Fail(name, "\"" + got + "\" is not supported, only \"" + std::string(want) + "\"");
  }
  void Fail(const std::string& name, const std::string& what) {
    if (status_.ok()) status_ = Error(place_ + ": field \"" + name + "\" " + what);
  }
  void Ignore(const char* name) { known_.push_back(name); }
  // Refuses what nobody asked for: a field we do not know may change the arithmetic.
  void RefuseOthers() {
    for (const auto& item : object_.items()) {
      bool known = false;
      for (const char* name : known_) known = known || item.key() == name;
      if (!known)
        Fail(Json(item.key()).dump(-1, ' ', true, Json::error_handler_t::replace),
             "is not known to this version; remove it if it does not change what the model computes");
    }
  }
  const Json& at(const char* name) const { return object_[name]; }
  const std::string& place() const { return place_; }
  void Adopt(const Status& s) {
    if (status_.ok() && !s.ok()) status_ = s;
  }

 private:
  template <class T>
  T Absent(const char* name, const T* absent) {
    if (absent) return *absent;
    return Fail(name, "is missing"), T{1};
  }
  const Json& object_;
  std::string place_;
  Status status_;
  std::vector<const char*> known_;
};

void ParseRope(Fields* f, ModelConfig* c) {
  c->rope.dim = c->rope_dim;
  const bool scaling = f->Has("rope_scaling"), parameters = f->Has("rope_parameters");
  if (scaling && parameters) return f->Fail("rope_parameters", "and \"rope_scaling\" are both given; keep one");
  double theta = f->Number("rope_theta", 1.0001, 1e12, 10000.0);
  if (!scaling && !parameters) {
    c->rope.theta = static_cast<float>(theta);
    return;
  }
  const char* field = scaling ? "rope_scaling" : "rope_parameters";
  if (!f->at(field).is_object()) return f->Fail(field, "must be an object or null");
  Fields r(f->at(field), f->place() + ": in \"" + field + "\"");
  theta = r.Number("rope_theta", 1.0001, 1e12, theta);
  c->rope.theta = static_cast<float>(theta);
  const std::string type = r.Has("rope_type") ? r.Text("rope_type", "") : r.Text("type", "");
  r.Ignore("type");
  r.Ignore("rope_type");
  if (type == "yarn") {
    c->rope.factor = static_cast<float>(r.Number("factor", 1.0, 1e6));
    c->rope.beta_fast = static_cast<float>(r.Number("beta_fast", 1e-3, 1e6, 32.0));
    c->rope.beta_slow = static_cast<float>(r.Number("beta_slow", 1e-3, 1e6, 1.0));
    c->rope.original_length = static_cast<int>(r.Int("original_max_position_embeddings", 1, 1 << 24));
    c->rope.mscale = static_cast<float>(r.Number("mscale", 0.0, 100.0));
    c->rope.mscale_all_dim = static_cast<float>(r.Number("mscale_all_dim", 0.0, 100.0));
    // With both equal the factor on cos and sin is exactly 1; other values would scale the tables.
    if (r.status().ok() && Bits(c->rope.mscale) != Bits(c->rope.mscale_all_dim))
      r.Fail("mscale", "must equal \"mscale_all_dim\"; other values are not supported");
  } else if (type != "default") {
    r.Fail("type", "is \"" + type + "\"; \"yarn\" and \"default\" are supported");
  }
  r.RefuseOthers();
  f->Adopt(r.status());
}

void ParseQuantization(Fields* f, ModelConfig* c) {
  if (!f->Has("quantization_config")) {
    // DeepSeek's V3.2 code quantises the latent and the index keys with power-of-two scales whatever the weights are.
    c->ue8m0_scales = c->family == ModelFamily::kV32;
    return;
  }
  const Json& object = f->at("quantization_config");
  if (!object.is_object()) return f->Fail("quantization_config", "must be an object");
  Fields q(object, f->place() + ": in \"quantization_config\"");
  q.Only("quant_method", "fp8");
  q.Only("fmt", "e4m3");
  q.Only("activation_scheme", "dynamic");
  if (!q.Has("weight_block_size") || q.at("weight_block_size") != Json::array({128, 128}))
    q.Fail("weight_block_size", "must be [128, 128]");
  c->fp8_weights = true;
  c->ue8m0_scales = c->family == ModelFamily::kV32;
  if (q.Has("scale_fmt")) {
    q.Only("scale_fmt", "ue8m0");
    c->ue8m0_scales = true;
  }
  q.Ignore("modules_to_not_convert");  // which tensors are fp8 is read from the tensors
  q.RefuseOthers();
  f->Adopt(q.status());
}

// Per-layer lists that newer Hugging Face configs add; they may only repeat what the other fields say.
void CheckLayerLists(Fields* f, const ModelConfig& c) {
  const auto check = [&](const char* name, auto want) {
    if (!f->Has(name)) return;
    const Json& list = f->at(name);
    if (!list.is_array() || static_cast<int>(list.size()) != c.num_layers)
      return f->Fail(name, "must be a list with one entry per layer");
    for (int i = 0; i < c.num_layers; ++i)
      if (list[i] != want(i)) return f->Fail(name, Format("has an unsupported entry for layer %d", i));
  };
  check("layer_types", [&](int) { return c.sparse() ? "deepseek_sparse_attention" : "full_attention"; });
  check("mlp_layer_types", [&](int i) { return i < c.first_k_dense ? "dense" : "sparse"; });
}

void ParseSizes(Fields* f, ModelConfig* c) {
  constexpr int64_t kWide = 1 << 20;
  const auto small = [&](const char* name, int64_t low, int64_t high) {
    return static_cast<int>(f->Int(name, low, high));
  };
  c->vocab_size = f->Int("vocab_size", 1, 1 << 24);
  c->hidden_size = f->Int("hidden_size", 1, kWide);
  c->intermediate_size = f->Int("intermediate_size", 1, kWide);
  c->num_layers = small("num_hidden_layers", 1, 1000);
  c->num_heads = small("num_attention_heads", 1, 1024);
  c->q_lora_rank = small("q_lora_rank", 1, kWide);
  c->kv_lora_rank = small("kv_lora_rank", 1, 4096);
  c->nope_dim = small("qk_nope_head_dim", 1, 4096);
  c->rope_dim = small("qk_rope_head_dim", 2, 1024);
  c->v_dim = small("v_head_dim", 1, 4096);
  c->max_positions = small("max_position_embeddings", 1, 1 << 22);
  c->first_k_dense = static_cast<int>(f->Int("first_k_dense_replace", 0, c->num_layers, int64_t{0}));
  c->mtp_layers = static_cast<int>(f->Int("num_nextn_predict_layers", 0, 16, int64_t{0}));
  c->norm_eps = static_cast<float>(f->Number("rms_norm_eps", 1e-20, 1.0, 1e-6));
  c->bos_id = static_cast<int>(f->Int("bos_token_id", 0, c->vocab_size - 1, int64_t{0}));
  c->eos_id = static_cast<int>(f->Int("eos_token_id", 0, c->vocab_size - 1, int64_t{1}));
  if (c->rope_dim % 2) f->Fail("qk_rope_head_dim", "must be even");
  if (static_cast<int64_t>(c->max_positions) * c->rope_dim > int64_t{1} << 28)
    f->Fail("max_position_embeddings", "is too large for this rope dimension");
}

void ParseMoe(Fields* f, ModelConfig* c) {
  const auto small = [&](const char* name, int64_t low, int64_t high, int64_t absent) {
    return static_cast<int>(f->Int(name, low, high, absent));
  };
  const bool moe = c->first_k_dense < c->num_layers;
  c->moe_intermediate_size =
      moe ? f->Int("moe_intermediate_size", 1, 1 << 20) : small("moe_intermediate_size", 1, 1 << 20, 1);
  c->n_experts = moe ? static_cast<int>(f->Int("n_routed_experts", 1, 1024)) : small("n_routed_experts", 1, 1024, 1);
  c->experts_per_token =
      moe ? static_cast<int>(f->Int("num_experts_per_tok", 1, 1024)) : small("num_experts_per_tok", 1, 1024, 1);
  c->n_shared_experts = small("n_shared_experts", 0, 64, 0);
  c->n_group = small("n_group", 1, 1024, 1);
  c->topk_group = small("topk_group", 1, 1024, 1);
  c->norm_topk_prob = f->Bool("norm_topk_prob", true);
  c->routed_scaling = static_cast<float>(f->Number("routed_scaling_factor", 1e-6, 1e6, 1.0));
  if (!f->status().ok() || !moe) return;
  if (c->n_experts % c->n_group)
    f->Fail("n_group", "must divide \"n_routed_experts\"");
  else if (c->topk_group > c->n_group)
    f->Fail("topk_group", "must not exceed \"n_group\"");
  else if (c->experts_per_token > c->topk_group * (c->n_experts / c->n_group))
    f->Fail("num_experts_per_tok", "must not exceed the experts in the kept groups");
}

void ParseIndexer(Fields* f, ModelConfig* c) {
  if (!c->sparse()) return;
  c->index_heads = static_cast<int>(f->Int("index_n_heads", 1, 1024));
  c->index_dim = static_cast<int>(f->Int("index_head_dim", 1, 128));
  c->index_topk = static_cast<int>(f->Int("index_topk", 1, 1 << 20));
  f->Only("indexer_rope_interleave", false);
  if (!f->status().ok()) return;
  if (c->index_dim & (c->index_dim - 1))
    f->Fail("index_head_dim", "must be a power of two (the Hadamard transform's length)");
  else if (c->index_dim < c->rope_dim)
    f->Fail("index_head_dim", "must not be smaller than \"qk_rope_head_dim\"");
}

Status ParseFamily(const Json& root, const std::string& path, ModelFamily* family) {
  struct Known {
    const char *type, *architecture;
    ModelFamily family;
  };
  constexpr Known kKnown[] = {{"deepseek_v3", "DeepseekV3ForCausalLM", ModelFamily::kV3},
                              {"deepseek_v32", "DeepseekV32ForCausalLM", ModelFamily::kV32}};
  const Json type = root.value("model_type", Json());
  const Json architectures = root.value("architectures", Json());
  if (!type.is_string()) return Error(path + ": field \"model_type\" is missing or not a string");
  for (const Known& k : kKnown) {
    if (type != k.type) continue;
    if (!architectures.is_null() && architectures != Json::array({k.architecture}))
      return Error(path + ": model_type is " + k.type + ", so \"architectures\" must be [\"" + k.architecture +
                   "\"], not " + architectures.dump(-1, ' ', true, Json::error_handler_t::replace));
    *family = k.family;
    return Ok();
  }
  return Error(path + ": model_type " + type.dump(-1, ' ', true, Json::error_handler_t::replace) +
               " is not supported; this version runs deepseek_v3 and deepseek_v32");
}

}  // namespace

Result<const Profile*> ProfileFromName(const std::string& name) {
  static constexpr const Profile* kProfiles[] = {&kDeepseekProfile, &kFloat32Profile};
  for (const Profile* p : kProfiles)
    if (name == p->name) return p;
  return Error("there is no profile \"" + name + "\"; choose deepseek or float32");
}

Result<ModelConfig> ParseModelConfig(const std::string& json, const std::string& path) {
  const Json root = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded()) return Error(path + ": not valid JSON");
  if (!root.is_object()) return Error(path + ": the top level must be a JSON object");
  ModelConfig c;
  SB_RETURN_IF_ERROR(ParseFamily(root, path, &c.family));
  Fields f(root, path);
  f.Ignore("model_type");
  f.Ignore("architectures");
  for (const char* name : kIgnored) f.Ignore(name);
  ParseSizes(&f, &c);
  if (f.status().ok()) ParseMoe(&f, &c);
  if (f.status().ok()) ParseIndexer(&f, &c);
  if (f.status().ok()) ParseRope(&f, &c);
  if (f.status().ok()) ParseQuantization(&f, &c);
  if (f.status().ok()) CheckLayerLists(&f, c);
  f.Only("attention_bias", false);
  f.Only("mlp_bias", false);
  f.Only("tie_word_embeddings", false);
  f.Only("rope_interleave", true);
  f.Only("hidden_act", "silu");
  f.Only("topk_method", "noaux_tc");
  f.Only("scoring_func", "sigmoid");
  if (f.Int("moe_layer_freq", 1, 1000, int64_t{1}) != 1) f.Fail("moe_layer_freq", "other than 1 is not supported");
  f.RefuseOthers();
  SB_RETURN_IF_ERROR(f.status());
  c.attention_scale = Mul(Div(1.0f, Sqrt(static_cast<float>(c.nope_dim + c.rope_dim))), YarnSoftmaxMultiplier(c.rope));
  return c;
}

}  // namespace samebits
