#include "model/weights.h"

#include <cstring>
#include <set>

#include "base/progress.h"
#include "base/strings.h"

namespace samebits {
namespace {

int64_t Blocks(int64_t n) { return (n + kScaleBlock - 1) / kScaleBlock; }

// Reads tensors by name, checks them, and remembers which were used.
class WeightReader {
 public:
  WeightReader(const Checkpoint& checkpoint, const ModelConfig& config, const Profile& profile,
               const CpuContext& context)
      : checkpoint_(checkpoint), config_(config), profile_(profile), context_(context) {}

  bool Has(const std::string& name) const { return checkpoint_.Has(name); }
  std::string Label(const std::string& name) const {
    return (Has(name) ? checkpoint_.ShardOf(name).path() : checkpoint_.path()) + ": tensor \"" + name + "\"";
  }

  // A vector of BF16 or F32, widened.
  Result<std::vector<float>> Vector(const std::string& name, int64_t n) {
    SB_ASSIGN(const TensorRef t, Find(name, {n}));
    if (t.dtype != DType::kBF16 && t.dtype != DType::kF32) return WrongDtype(name, t, "BF16 or F32");
    std::vector<float> out(n);
    if (t.dtype == DType::kF32) {
      std::memcpy(out.data(), t.data, n * sizeof(float));
    } else {
      const std::vector<BF16> narrow = Copy<BF16>(t);
      for (int64_t i = 0; i < n; ++i) out[i] = ToF32(narrow[i]);
    }
    SB_RETURN_IF_ERROR(CheckFinite(name, out.data(), n));
    return out;
  }

  // BF16 [n, k]; `copy` holds it if the file leaves it at an odd address.
  Result<ConstMat> Bf16(const std::string& name, int64_t n, int64_t k, std::vector<BF16>* copy) {
    SB_ASSIGN(const TensorRef t, Find(name, {n, k}));
    if (t.dtype != DType::kBF16) return WrongDtype(name, t, "BF16");
    const BF16* data = static_cast<const BF16*>(t.data);
    if (reinterpret_cast<uintptr_t>(t.data) % alignof(BF16)) *copy = Copy<BF16>(t), data = copy->data();
    SB_RETURN_IF_ERROR(CheckFinite(name, data, n * k));
    return ConstMat(View<const BF16>(data, n, k));
  }

  // A linear's weight: BF16, or E4M3 with block scales. fp32_output: F32 is allowed too (its output is fp32 anyway).
  Result<PackedWeight> Linear(const std::string& name, int64_t n, int64_t k, bool fp32_output = false) {
    SB_ASSIGN(const TensorRef t, Find(name, {n, k}));
    if (t.dtype == DType::kF8E4M3) {
      SB_ASSIGN(const std::vector<float> scales, Scales(name, n, k));
      if (profile_.fp8_activations)
        return Count(PackedWeight::Pack(Label(name), t.dtype, t.data, n, k, k, scales.data(), &context_));
      SB_ASSIGN(const std::vector<BF16> wide, Dequantise(name, t, scales, n, k));
      return Count(PackedWeight::Pack(Label(name), DType::kBF16, wide.data(), n, k, k, nullptr, &context_));
    }
    if (t.dtype == DType::kF32 && (fp32_output || profile_.activation == DType::kF32)) {
      const std::vector<float> copy = Copy<float>(t);
      SB_RETURN_IF_ERROR(CheckFinite(name, copy.data(), n * k));
      return Count(PackedWeight::Pack(Label(name), DType::kF32, copy.data(), n, k, k, nullptr, &context_));
    }
    std::vector<BF16> copy;
    SB_ASSIGN(const ConstMat m, Bf16(name, n, k, &copy));
    return Count(PackedWeight::Pack(Label(name), DType::kBF16, m.data, n, k, k, nullptr, &context_));
  }

  // A linear's weight in BF16, dequantised where it is fp8.
  Result<std::vector<BF16>> Plain(const std::string& name, int64_t n, int64_t k) {
    SB_ASSIGN(const TensorRef t, Find(name, {n, k}));
    if (t.dtype == DType::kF8E4M3) {
      SB_ASSIGN(const std::vector<float> scales, Scales(name, n, k));
      return Dequantise(name, t, scales, n, k);
    }
    std::vector<BF16> copy;
    SB_ASSIGN(const ConstMat m, Bf16(name, n, k, &copy));
    const BF16* data = static_cast<const BF16*>(m.data);
    return std::vector<BF16>(data, data + n * k);
  }

  Result<PackedWeight> Pack(const std::string& name, const std::vector<BF16>& data, int64_t n, int64_t k) {
    return Count(PackedWeight::Pack(Label(name), DType::kBF16, data.data(), n, k, k, nullptr, &context_));
  }

  // A tensor nobody used would mean arithmetic this version leaves out.
  Status RefuseOthers(bool dense) const {
    for (const std::string& name : checkpoint_.Names()) {
      if (used_.count(name) || name.ends_with("rotary_emb.inv_freq")) continue;
      if (dense && name.find(".self_attn.indexer.") != std::string::npos) continue;
      constexpr std::string_view kPrefix = "model.layers.";
      if (name.starts_with(kPrefix)) {  // layers past the last are multi-token prediction, which this version skips
        const size_t dot = name.find('.', kPrefix.size());
        const Result<int64_t> layer =
            ParseInt(std::string_view(name).substr(kPrefix.size(), dot - kPrefix.size()), "layer");
        if (layer.ok() && *layer >= config_.num_layers && *layer < config_.num_layers + config_.mtp_layers) continue;
      }
      return Error(Label(name) + " has no place in this model; its config.json may belong to another checkpoint");
    }
    return Ok();
  }
  uint64_t bytes() const { return bytes_; }
  void AddBytes(uint64_t n) { bytes_ += n; }

 private:
  template <class T>
  static std::vector<T> Copy(const TensorRef& t) {
    std::vector<T> out(t.elements());
    if (!out.empty()) std::memcpy(out.data(), t.data, out.size() * sizeof(T));
    return out;
  }
  Result<TensorRef> Find(const std::string& name, const Shape& shape) {
    SB_ASSIGN(TensorRef t, checkpoint_.Find(name));
    used_.insert(name);
    if (t.shape != shape)
      return Error(Label(name) + " has shape " + ShapeText(t.shape) + ", but config.json asks for " + ShapeText(shape));
    return t;
  }
  Status WrongDtype(const std::string& name, const TensorRef& t, const char* want) const {
    return Error(Label(name) + " is " + DTypeName(t.dtype) + ", but must be " + want);
  }
  template <class T>
  Status CheckFinite(const std::string& name, const T* data, int64_t n) const {
    for (int64_t i = 0; i < n; ++i) {
      const float x = ToF32(data[i]);
      if (Sub(x, x) == 0.0f) continue;  // NaN for infinity and NaN
      return Error(Label(name) + Format(" holds a NaN or infinity at element %lld", static_cast<long long>(i)));
    }
    return Ok();
  }
  Result<std::vector<float>> Scales(const std::string& name, int64_t n, int64_t k) {
    if (!config_.fp8_weights) return Error(Label(name) + " is F8_E4M3, but config.json has no \"quantization_config\"");
    const std::string scale = name + "_scale_inv";
    SB_ASSIGN(const TensorRef t, Find(scale, {Blocks(n), Blocks(k)}));
    if (t.dtype != DType::kF32) return WrongDtype(scale, t, "F32");
    std::vector<float> out = Copy<float>(t);
    SB_RETURN_IF_ERROR(CheckFinite(scale, out.data(), static_cast<int64_t>(out.size())));
    for (const float s : out)
      if (s < 0.0f) return Error(Label(scale) + " holds a negative scale");
    return out;
  }
  // bf16(value * scale), spec 3.4; exact for power-of-two scales.
  Result<std::vector<BF16>> Dequantise(const std::string& name, const TensorRef& t, const std::vector<float>& scales,
                                       int64_t n, int64_t k) const {
    std::vector<BF16> out(n * k);
    const E4M3* in = static_cast<const E4M3*>(t.data);
    for (int64_t r = 0; r < n; ++r)
      for (int64_t c = 0; c < k; ++c)
        out[r * k + c] = RoundToBF16(Mul(ToF32(in[r * k + c]), scales[r / kScaleBlock * Blocks(k) + c / kScaleBlock]));
    SB_RETURN_IF_ERROR(CheckFinite(name, out.data(), n * k));
    return out;
  }
  Result<PackedWeight> Count(Result<PackedWeight> packed) {
    if (packed.ok()) bytes_ += packed->bytes();
    return packed;
  }

  const Checkpoint& checkpoint_;
  const ModelConfig& config_;
  const Profile& profile_;
  const CpuContext& context_;
  std::set<std::string> used_;
  uint64_t bytes_ = 0;
};

// kv_b [heads * (nope + v), latent] cut into the two halves of every head; the key half is transposed.
Status CutKvB(const ModelConfig& c, const std::string& name, WeightReader* in, LayerWeights* w) {
  const int64_t nope = c.nope_dim, v = c.v_dim, latent = c.kv_lora_rank;
  SB_ASSIGN(const std::vector<BF16> all, in->Plain(name, c.num_heads * (nope + v), latent));
  std::vector<BF16> key(latent * nope), value(v * latent);
  for (int64_t h = 0; h < c.num_heads; ++h) {
    const BF16* head = all.data() + h * (nope + v) * latent;
    for (int64_t d = 0; d < nope; ++d)
      for (int64_t l = 0; l < latent; ++l) key[l * nope + d] = head[d * latent + l];
    std::memcpy(value.data(), head + nope * latent, value.size() * sizeof(BF16));
    SB_ASSIGN(PackedWeight kc, in->Pack(name, key, latent, nope));
    SB_ASSIGN(PackedWeight vc, in->Pack(name, value, v, latent));
    w->w_kc.push_back(std::move(kc));
    w->w_vc.push_back(std::move(vc));
  }
  return Ok();
}

Result<MlpWeights> LoadMlp(const std::string& prefix, int64_t hidden, int64_t width, WeightReader* in) {
  MlpWeights m;
  SB_ASSIGN(m.gate, in->Linear(prefix + "gate_proj.weight", width, hidden));
  SB_ASSIGN(m.up, in->Linear(prefix + "up_proj.weight", width, hidden));
  SB_ASSIGN(m.down, in->Linear(prefix + "down_proj.weight", hidden, width));
  return m;
}

Status LoadAttention(const ModelConfig& c, const std::string& prefix, bool indexer, WeightReader* in, LayerWeights* w) {
  const int64_t hidden = c.hidden_size, head_in = c.nope_dim + c.rope_dim;
  SB_ASSIGN(w->q_a, in->Linear(prefix + "q_a_proj.weight", c.q_lora_rank, hidden));
  SB_ASSIGN(w->q_a_norm, in->Vector(prefix + "q_a_layernorm.weight", c.q_lora_rank));
  SB_ASSIGN(w->q_b, in->Linear(prefix + "q_b_proj.weight", c.num_heads * head_in, c.q_lora_rank));
  SB_ASSIGN(w->kv_a, in->Linear(prefix + "kv_a_proj_with_mqa.weight", c.kv_lora_rank + c.rope_dim, hidden));
  SB_ASSIGN(w->kv_a_norm, in->Vector(prefix + "kv_a_layernorm.weight", c.kv_lora_rank));
  SB_RETURN_IF_ERROR(CutKvB(c, prefix + "kv_b_proj.weight", in, w));
  SB_ASSIGN(w->o, in->Linear(prefix + "o_proj.weight", hidden, c.num_heads * c.v_dim));
  if (!indexer) return Ok();
  const std::string index = prefix + "indexer.";
  SB_ASSIGN(w->index_q, in->Linear(index + "wq_b.weight", c.index_heads * c.index_dim, c.q_lora_rank));
  SB_ASSIGN(w->index_k, in->Linear(index + "wk.weight", c.index_dim, hidden));
  SB_ASSIGN(w->index_norm_weight, in->Vector(index + "k_norm.weight", c.index_dim));
  SB_ASSIGN(w->index_norm_bias, in->Vector(index + "k_norm.bias", c.index_dim));
  SB_ASSIGN(w->index_weights, in->Linear(index + "weights_proj.weight", c.index_heads, hidden, /*fp32_output=*/true));
  if (w->index_weights.dtype() == DType::kF8E4M3)
    return Error(in->Label(index + "weights_proj.weight") + " is F8_E4M3, but must be BF16 or F32");
  return Ok();
}

Status LoadMoe(const ModelConfig& c, const std::string& prefix, WeightReader* in, LayerWeights* w) {
  const int64_t hidden = c.hidden_size;
  SB_ASSIGN(w->router, in->Linear(prefix + "gate.weight", c.n_experts, hidden, /*fp32_output=*/true));
  if (w->router.dtype() == DType::kF8E4M3)
    return Error(in->Label(prefix + "gate.weight") + " is F8_E4M3, but must be BF16 or F32");
  const std::string bias = prefix + "gate.e_score_correction_bias";
  if (in->Has(bias)) {
    SB_ASSIGN(w->correction_bias, in->Vector(bias, c.n_experts));
  }
  for (int e = 0; e < c.n_experts; ++e) {
    SB_ASSIGN(MlpWeights m, LoadMlp(prefix + Format("experts.%d.", e), hidden, c.moe_intermediate_size, in));
    const MlpWeights& first = e > 0 ? w->experts[0] : m;
    if (m.gate.dtype() != first.gate.dtype() || m.up.dtype() != first.gate.dtype() ||
        m.down.dtype() != first.down.dtype())
      return Error(in->Label(prefix + Format("experts.%d.gate_proj.weight", e)) +
                   " and its neighbours differ in dtype; all experts of a layer must agree");
    w->experts.push_back(std::move(m));
  }
  if (c.n_shared_experts == 0) return Ok();
  SB_ASSIGN(w->mlp, LoadMlp(prefix + "shared_experts.", hidden, c.n_shared_experts * c.moe_intermediate_size, in));
  return Ok();
}

}  // namespace

Result<ModelWeights> LoadWeights(const std::string& folder, const ModelConfig& config, const Profile& profile,
                                 bool dense, bool show_progress, const CpuContext& context) {
  ModelWeights w;
  SB_ASSIGN(w.checkpoint, Checkpoint::Open(folder));
  WeightReader in(w.checkpoint, config, profile, context);
  SB_ASSIGN(w.embed, in.Bf16("model.embed_tokens.weight", config.vocab_size, config.hidden_size, &w.embed_copy));
  in.AddBytes(static_cast<uint64_t>(w.embed.rows * w.embed.cols) * sizeof(BF16));
  Progress progress("loading", "layers", config.num_layers, show_progress);
  for (int i = 0; i < config.num_layers; ++i) {
    LayerWeights layer;
    const std::string prefix = Format("model.layers.%d.", i);
    SB_ASSIGN(layer.attn_norm, in.Vector(prefix + "input_layernorm.weight", config.hidden_size));
    SB_RETURN_IF_ERROR(LoadAttention(config, prefix + "self_attn.", config.sparse() && !dense, &in, &layer));
    SB_ASSIGN(layer.mlp_norm, in.Vector(prefix + "post_attention_layernorm.weight", config.hidden_size));
    if (i < config.first_k_dense) {
      SB_ASSIGN(layer.mlp, LoadMlp(prefix + "mlp.", config.hidden_size, config.intermediate_size, &in));
    } else {
      SB_RETURN_IF_ERROR(LoadMoe(config, prefix + "mlp.", &in, &layer));
    }
    w.layers.push_back(std::move(layer));
    progress.Add(1);
  }
  SB_ASSIGN(w.final_norm, in.Vector("model.norm.weight", config.hidden_size));
  SB_ASSIGN(w.head, in.Linear("lm_head.weight", config.vocab_size, config.hidden_size, /*fp32_output=*/true));
  if (w.head.dtype() == DType::kF8E4M3)
    return Error(in.Label("lm_head.weight") + " is F8_E4M3, but must be BF16 or F32");
  SB_RETURN_IF_ERROR(in.RefuseOthers(dense));
  w.bytes = in.bytes();
  return w;
}

}  // namespace samebits
