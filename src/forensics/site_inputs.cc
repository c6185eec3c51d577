#include <map>

#include "base/strings.h"
#include "forensics/locate.h"

namespace samebits {

std::vector<std::string> SiteInputs(const std::string& site) {
  // site: inputs. A dense MLP reads mlp_norm directly.
  static const std::map<std::string, const char*> kInputs = {
      {"embed", ""},
      {"hidden_in", "<hidden <embed"},
      {"attn_norm", "hidden_in"},
      {"q_a", "attn_norm"},
      {"q_a_norm", "q_a"},
      {"q_b", "q_a_norm attn_norm"},
      {"bmm_wkc", "q_b"},
      {"q_rope", "q_b"},
      {"kv_a", "attn_norm"},
      {"kv_norm", "kv_a"},
      {"k_rope", "kv_a"},
      {"kv_row", "kv_norm k_rope"},
      {"index_q", "q_a_norm"},
      {"index_k", "attn_norm"},
      {"index_k_row", "index_k"},
      {"index_weights", "attn_norm"},
      {"index_scores", "index_q index_weights ^index_k_row"},
      {"topk", "index_scores"},
      {"mqa", "bmm_wkc q_rope ^kv_row topk"},
      {"lse", "bmm_wkc q_rope ^kv_row topk"},
      {"bmm_wkv", "mqa"},
      {"o_proj", "bmm_wkv"},
      {"mlp_norm", "hidden_in o_proj"},
      {"router_logits", "mlp_norm"},
      {"experts", "router_logits"},
      {"expert_weights", "router_logits experts"},
      {"expert_out", "mlp_norm experts"},
      {"shared_out", "mlp_norm"},
      {"mlp_out", "mlp_norm expert_out expert_weights shared_out"},
      {"hidden", "hidden_in o_proj mlp_out"},
      {"final", "<hidden"},
      {"logits", "final"},
      {"token", "logits"},
  };
  const auto it = kInputs.find(site);
  std::vector<std::string> out;
  if (it == kInputs.end()) return out;
  for (const std::string& name : Split(it->second, ' '))
    if (!name.empty()) out.push_back(name);
  return out;
}

}  // namespace samebits
