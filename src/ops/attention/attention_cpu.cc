#include <algorithm>
#include <memory>

#include "base/strings.h"
#include "ops/attention/attention.h"
#include "ops/attention/attention_simd.h"
#include "ops/op_dispatch.h"

namespace samebits {
namespace {

void AttentionCpu(const CpuContext& context, const AttentionArgs& args) {
  const auto kernel = SB_ISA_TABLE(AttentionToken).For(context);
  const int64_t tokens = args.q.rows;
  // Few tokens: threads share a token's heads. Heads never meet, so no bit can tell.
  const int64_t pieces = tokens >= context.pool->threads() ? 1 : std::min<int64_t>(args.heads, context.pool->threads());
  const int64_t work =
      args.heads * (args.dim + args.value_dim) * std::max<int64_t>(1, args.indices.empty() ? 256 : args.indices.cols);
  context.pool->Run(tokens * pieces, (1 << 16) / work + 1, [&](int64_t begin, int64_t end) {
    const std::unique_ptr<float[]> scratch(
        new float[static_cast<size_t>(AttentionScratch(args.heads, args.dim, args.value_dim))]);
    std::vector<int64_t> key_at, value_at;
    int64_t listed = -1;
    bool shared = false;
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t t = unit / pieces, piece = unit % pieces;
      const PagedRows& keys = args.keys_per_token ? args.keys_per_token[t] : args.keys;
      const PagedRows& values = args.values_per_token ? args.values_per_token[t] : args.values;
      const int64_t size = DTypeBits(keys.dtype) / 8;
      if (listed != t) {
        listed = t;
        shared = keys.pool == values.pool && keys.page_table == values.page_table &&
                 keys.row_stride == values.row_stride && args.value_dim <= args.dim;
        const std::vector<int32_t> list = AttentionList(args, t);
        key_at.clear(), value_at.clear();
        for (const int32_t s : list) {
          key_at.push_back(keys.Slot(s) * keys.row_stride * size);
          value_at.push_back(values.Slot(s) * values.row_stride * size);
        }
      }
      const int64_t q_size = DTypeBits(args.q.dtype) / 8, out_size = DTypeBits(args.out.dtype) / 8;
      kernel(AttentionTask{static_cast<const uint8_t*>(args.q.data) + t * args.q.stride * q_size,
                           args.q.dtype == DType::kBF16, keys.dtype == DType::kBF16, args.out.dtype == DType::kBF16,
                           args.dim, args.value_dim, args.heads * piece / pieces, args.heads * (piece + 1) / pieces,
                           static_cast<const uint8_t*>(keys.pool), static_cast<const uint8_t*>(values.pool),
                           key_at.data(), value_at.data(), static_cast<int64_t>(key_at.size()), shared, args.scale,
                           static_cast<uint8_t*>(args.out.data) + t * args.out.stride * out_size,
                           args.lse ? args.lse + t * args.heads : nullptr, scratch.get()});
    }
  });
}
void AttentionReference(const CpuContext&, const AttentionArgs& args) { AttentionRef(args); }

constexpr OpBackend<AttentionArgs> kBackends[] = {{"ref", AttentionReference}, {"cpu", AttentionCpu}};

}  // namespace

std::span<const OpBackend<AttentionArgs>> AttentionBackends() { return kBackends; }

Status Attention(const CpuContext& context, const AttentionArgs& args) {
  SB_RETURN_IF_ERROR(CheckAttention(args));
  if (args.heads > kAttentionMostHeads)
    return Error(Format("attention: %lld heads; up to %lld are supported", static_cast<long long>(args.heads),
                        static_cast<long long>(kAttentionMostHeads)));
  AttentionCpu(context, args);
  return Ok();
}

}  // namespace samebits
