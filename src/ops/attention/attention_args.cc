#include <algorithm>

#include "base/strings.h"
#include "ops/attention/attention.h"

namespace samebits {

Status CheckAttention(const AttentionArgs& args) {
  const DType d = args.q.dtype;
  if (d != DType::kBF16 && d != DType::kF32)
    return Error(Format("attention: q is %s; BF16 and F32 are allowed", DTypeName(d)));
  if (args.out.dtype != DType::kBF16 && args.out.dtype != DType::kF32)
    return Error(Format("attention: out is %s; BF16 and F32 are allowed", DTypeName(args.out.dtype)));
  if (args.heads < 1 || args.dim < 1 || args.value_dim < 1 || args.q.cols != args.heads * args.dim)
    return Error(Format("attention: q has %lld columns, expected %lld heads of %lld",
                        static_cast<long long>(args.q.cols), static_cast<long long>(args.heads),
                        static_cast<long long>(args.dim)));
  if (args.out.rows != args.q.rows || args.out.cols != args.heads * args.value_dim)
    return Error(Format("attention: out is [%lld, %lld], expected [%lld, %lld]", static_cast<long long>(args.out.rows),
                        static_cast<long long>(args.out.cols), static_cast<long long>(args.q.rows),
                        static_cast<long long>(args.heads * args.value_dim)));
  if ((args.keys_per_token == nullptr) != (args.values_per_token == nullptr))
    return Error("attention: keys_per_token and values_per_token go together");
  for (int64_t t = 0; t < (args.keys_per_token ? args.q.rows : 1); ++t) {
    const DType k = args.keys_per_token ? args.keys_per_token[t].dtype : args.keys.dtype;
    const DType v = args.keys_per_token ? args.values_per_token[t].dtype : args.values.dtype;
    if (k != d || v != d)
      return Error(Format("attention: q is %s but keys are %s and values %s (token %lld); one type is needed",
                          DTypeName(d), DTypeName(k), DTypeName(v), static_cast<long long>(t)));
  }
  if (!args.indices.empty() && args.indices.rows != args.q.rows)
    return Error("attention: one index list per token is needed");
  if (args.kv_lens == nullptr && args.q.rows > 0) return Error("attention: kv_lens are needed");
  return Ok();
}

std::vector<int32_t> AttentionList(const AttentionArgs& args, int64_t token, bool canonical) {
  std::vector<int32_t> list;
  const int32_t len = args.kv_lens[token];
  if (args.indices.empty()) {
    for (int32_t i = 0; i < len; ++i) list.push_back(i);
    return list;
  }
  const int32_t* row = args.indices.Row(token);
  bool ascending = true;
  for (int64_t j = 0; j < args.indices.cols; ++j) {
    if (row[j] < 0 || row[j] >= len) continue;
    ascending &= list.empty() || list.back() < row[j];
    list.push_back(row[j]);
  }
  if (canonical && !ascending) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  return list;
}

void MergeStates(const MergeStatesArgs& args) {
  float most = FromBits(0xff800000u);
  for (int64_t s = 0; s < args.states; ++s) most = args.lse[s] > most ? args.lse[s] : most;
  float total = 0.0f;
  for (int64_t v = 0; v < args.value_dim; ++v) args.merged_out[v] = 0.0f;
  for (int64_t s = 0; s < args.states; ++s) {
    if (args.lse[s] == FromBits(0xff800000u)) continue;  // neutral
    const float weight = Exp(Sub(args.lse[s], most));
    total = Add(total, weight);
    for (int64_t v = 0; v < args.value_dim; ++v)
      args.merged_out[v] = Fma(weight, args.out[s * args.value_dim + v], args.merged_out[v]);
  }
  for (int64_t v = 0; total > 0.0f && v < args.value_dim; ++v) args.merged_out[v] = Div(args.merged_out[v], total);
  *args.merged_lse = total > 0.0f ? Add(most, Log(total)) : FromBits(0xff800000u);
}

}  // namespace samebits
