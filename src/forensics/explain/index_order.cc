// INDEX_ORDER: the same ids in another order reach an operation whose additions follow that order. Shown by what comes
// after: if everything downstream is equal, the order was harmless.
#include "forensics/explain/index_order.h"

#include <algorithm>

#include "base/strings.h"
#include "ops/attention/attention.h"

namespace samebits {
namespace {

// Attention re-run on the recorded q and kv with the two lists: canonical lists must agree, list order must not.
void AddAttention(const ExplainInput& in, Finding* f) {
  const Companion *q = in.Find({"q"}), *kv = in.Find({"kv"});
  if (q == nullptr || kv == nullptr || !q->same || !kv->same || in.a.tensor.dtype != DType::kI32) return;
  const TensorRef &qt = q->a.tensor, &kt = kv->a.tensor;
  if (qt.shape.size() != 2 || kt.shape.size() != 2 || qt.dtype != kt.dtype || qt.shape[1] != kt.shape[1] ||
      in.a.tensor.shape.size() != 2 || in.a.tensor.shape[0] != qt.shape[0])
    return;
  if (qt.dtype != DType::kBF16 && qt.dtype != DType::kF32) return;
  const int64_t tokens = qt.shape[0], dim = qt.shape[1], positions = kt.shape[0], k = in.a.tensor.shape[1];
  const std::vector<int32_t> lens(static_cast<size_t>(tokens), static_cast<int32_t>(positions));
  // Copies: file data need not be aligned.
  const auto aligned = [](const TensorRef& t) {
    Tensor copy(t.dtype, t.shape);
    std::copy_n(static_cast<const uint8_t*>(t.data), t.bytes(), static_cast<uint8_t*>(copy.raw()));
    return copy;
  };
  const Tensor qc = aligned(qt), kc = aligned(kt);
  const auto run = [&](const TensorRef& list, const AttentionRule& rule, Tensor* result) {
    const Tensor lc = aligned(list);
    AttentionArgs args;
    args.q.data = qc.raw(), args.q.dtype = qt.dtype, args.q.rows = tokens, args.q.cols = args.q.stride = dim;
    args.heads = 1, args.dim = args.value_dim = dim;
    args.keys.pool = kc.raw(), args.keys.dtype = kt.dtype, args.keys.row_stride = dim;
    args.values = args.keys;
    args.kv_lens = lens.data();
    args.indices = View<const int32_t>(lc.As<int32_t>(), tokens, k);
    args.out.data = result->raw(), args.out.dtype = result->dtype(), args.out.rows = tokens,
    args.out.cols = args.out.stride = dim;
    if (!CheckAttention(args).ok()) return false;
    AttentionRef(args, rule);
    return true;
  };
  Tensor a(DType::kF32, {tokens, dim}), b(DType::kF32, {tokens, dim});  // unrounded: a narrow store may hide it
  if (!run(in.a.tensor, {}, &a) || !run(in.b.tensor, {}, &b)) return;
  const bool canonical = SameBits(a.ref(), b.ref());
  AttentionRule in_order;
  in_order.canonical_list = false;
  run(in.a.tensor, in_order, &a), run(in.b.tensor, in_order, &b);
  const Comparison c = CompareTensors(a.ref(), b.ref());
  f->evidence.push_back(Format(
      "re-run: our attention reference on the recorded q and kv gives %s bits for both lists once sorted, and %s bits "
      "when it adds in list order (%lld of %lld differ, max %.6g)",
      canonical ? "the same" : "DIFFERENT", c.stats.bit_mismatches == 0 ? "the same" : "different",
      static_cast<long long>(c.stats.bit_mismatches), static_cast<long long>(c.stats.elements), c.stats.max_abs));
}

}  // namespace

Finding OrderFinding(const ExplainInput& in, int64_t rows) {
  Finding f;
  const SourceItem& item = in.origin.diff.item;
  f.at = item.name;
  int64_t after = 0;
  const TensorDiff* first_after = nullptr;
  bool behind = false;
  for (const TensorDiff& d : in.located.differing) {
    behind = behind || d.item.name == item.name;
    if (!behind || d.item.name == item.name || (IsIndexItem(d.item) && (d.verdict == DiffVerdict::kSameSet))) continue;
    if (++after == 1) first_after = &d;
  }
  const int64_t others = in.located.sums.compared - static_cast<int64_t>(in.located.differing.size());
  f.evidence.push_back(
      Format("%lld rows hold other sequences of the same ids; padding is not counted", static_cast<long long>(rows)));
  if (after == 0 && others > 0) {
    f.verdict = "ORDER_ONLY_HARMLESS";
    f.sentence = "only the order of the index list differs, and everything else that was compared is equal";
    f.evidence.push_back(Format("%lld other tensors are identical", static_cast<long long>(others)));
    f.refute = "a tensor downstream of the list, not compared here, that differs";
    return f;
  }
  f.verdict = "INDEX_ORDER";
  f.sentence =
      "the two sides chose the same ids and listed them in another order; an operation that adds in list order then "
      "rounds differently";
  if (first_after != nullptr && IsFloat(first_after->item.dtype) && !first_after->by_digest)
    f.evidence.push_back(Format("the first tensor after it that differs is %s: max |a-b| %.9g, cosine %.12g",
                                first_after->item.name.c_str(), first_after->comparison.stats.max_abs,
                                first_after->comparison.stats.Cosine()));
  else if (first_after != nullptr)
    f.evidence.push_back("the first tensor after it that differs is " + first_after->item.name);
  for (const Companion& c : in.companions)
    if (c.same && IsFloat(c.item.dtype)) f.evidence.push_back(c.item.site + " is bitwise equal on both sides");
  if (f.evidence.size() > 12) f.evidence.resize(12);
  AddAttention(in, &f);
  f.refute = "sorted lists on both sides (samebits repro index-order) with a consumer that still differs";
  return f;
}

}  // namespace samebits
