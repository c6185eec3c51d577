#include <cmath>
#include <map>

#include "base/strings.h"
#include "case.h"
#include "ops/attention/attention.h"
#include "ops/gemm/gemm.h"
#include "ops/hadamard/hadamard.h"
#include "ops/indexer/indexer.h"
#include "ops/topk/topk.h"

namespace samebits {
namespace {

// One query row and its keys and values.
struct Query {
  std::vector<BF16> q, k, v;
  int64_t keys = 0, d = 0, dv = 0;
};
// Two kernels answer. On bf16 rows the contract rounds the softmax weights to bf16 before the value product, so their
// output is held to bf16's tolerance; on the same values widened to fp32 nothing is rounded, and fp32's holds. The lse
// is fp32 in both.
struct Answer {
  std::vector<float> wide;
  std::vector<BF16> narrow;
  float wide_lse = 0, narrow_lse = 0;
};
bool SameAnswer(const Answer& a, const Answer& b) {
  return SameBytesOf(a.wide, b.wide) && SameBytesOf(a.narrow, b.narrow) && Bits(a.wide_lse) == Bits(b.wide_lse) &&
         Bits(a.narrow_lse) == Bits(b.narrow_lse);
}

struct Where {
  const std::vector<int32_t>* list = nullptr;  // the same index list for every token, or none: dense
  std::vector<int32_t> kv_lens = {};
  const std::vector<int32_t>* page_table = nullptr;
  int32_t page_size = 1;
};

template <class T>
std::vector<T> As(const std::vector<BF16>& x) {
  std::vector<T> v;
  for (const BF16 b : x) v.push_back(RoundTo<T>(ToF32(b)));
  return v;
}
template <>
std::vector<BF16> As(const std::vector<BF16>& x) {
  return x;
}

// Runs the tokens of a batch together; each has its own keys. context null: the reference.
template <class T>
void AttendAs(const CpuContext* context, const std::vector<const Query*>& batch, float scale, const Where& where,
              std::vector<T>* out, std::vector<float>* lse) {
  const int64_t tokens = static_cast<int64_t>(batch.size()), d = batch[0]->d, dv = batch[0]->dv;
  std::vector<T> q;
  std::vector<std::vector<T>> held;
  std::vector<PagedRows> keys, values;
  std::vector<int32_t> lists;
  auto rows = [&](const std::vector<BF16>& from, int64_t cols) {
    held.push_back(As<T>(from));
    PagedRows p;
    p.pool = held.back().data(), p.dtype = DTypeOf<T>::value, p.row_stride = cols;
    if (where.page_table) p.page_table = where.page_table->data(), p.page_size = where.page_size;
    return p;
  };
  for (const Query* b : batch) {
    const std::vector<T> mine = As<T>(b->q);
    q.insert(q.end(), mine.begin(), mine.end());
    keys.push_back(rows(b->k, d));
    values.push_back(rows(b->v, dv));
    if (where.list) lists.insert(lists.end(), where.list->begin(), where.list->end());
  }
  out->resize(static_cast<size_t>(tokens * dv));
  lse->resize(batch.size());
  AttentionArgs args;
  args.q = View<const T>(q.data(), tokens, d);
  args.heads = 1, args.dim = d, args.value_dim = dv, args.scale = scale;
  args.keys_per_token = keys.data(), args.values_per_token = values.data(), args.kv_lens = where.kv_lens.data();
  if (where.list) args.indices = View<const int32_t>(lists.data(), tokens, static_cast<int64_t>(where.list->size()));
  args.out = View<T>(out->data(), tokens, dv), args.lse = lse->data();
  ExpectOk(CheckAttention(args));
  if (context == nullptr) return AttentionRef(args);
  ExpectOk(Attention(*context, args));
}

std::vector<Answer> Attend(const CpuContext* context, const std::vector<const Query*>& batch, float scale,
                           const Where& where) {
  std::vector<float> wide, wide_lse, narrow_lse;
  std::vector<BF16> narrow;
  AttendAs(context, batch, scale, where, &wide, &wide_lse);
  AttendAs(context, batch, scale, where, &narrow, &narrow_lse);
  std::vector<Answer> answers(batch.size());
  const int64_t dv = batch[0]->dv;
  for (size_t t = 0; t < batch.size(); ++t) {
    const int64_t at = static_cast<int64_t>(t) * dv;
    answers[t] = {{wide.begin() + at, wide.begin() + at + dv},
                  {narrow.begin() + at, narrow.begin() + at + dv},
                  wide_lse[t],
                  narrow_lse[t]};
  }
  return answers;
}

void ExpectAnswer(const Answer& got, Members& want) {
  Members tol(want["tol"], "tol");
  const double f32 = Value<double>(tol["f32_out_abs"]), bf16 = Value<double>(tol["bf16_out_abs"]);
  const Json& out = List(want["out"]);
  Expect(out.size() == got.wide.size(), "out has another length");
  for (size_t i = 0; i < out.size(); ++i) {
    ExpectNear(Format("out[%zu] in fp32", i), double{got.wide[i]}, out[i], f32);
    ExpectNear(Format("out[%zu] in bf16", i), double{ToF32(got.narrow[i])}, out[i], bf16);
  }
  ExpectNear("lse", double{got.wide_lse}, want["lse"], f32);
  ExpectNear("lse of bf16 rows", double{got.narrow_lse}, want["lse"], f32);
}

Query QueryOf(const Json& q, const Json& k, const Json& v) {
  const Rows<BF16> keys = Matrix<BF16>(k), values = Matrix<BF16>(v);
  Query query{Row<BF16>(q), keys.data, values.data, keys.rows, keys.cols, values.cols};
  if (keys.rows != values.rows || static_cast<int64_t>(query.q.size()) != keys.cols)
    Malformed("q, k and v do not fit each other");
  return query;
}

void SparseAttentionRow(Members& in, Members& want) {
  const Query query = QueryOf(in["q_bf16"], in["k_bf16"], in["v_bf16"]);
  const float scale = Value<float>(in["scale"]);
  want.Flag("bit_identical_across_index_lists");  // always demanded
  std::vector<Answer> all;
  for (const Json& j : List(in["index_lists"])) {
    std::vector<int32_t> list = Row<int32_t>(j);
    if (list.empty()) list.push_back(-1);  // an empty view means dense
    const Where where{.list = &list, .kv_lens = {static_cast<int32_t>(query.keys)}};
    all.push_back(Attend(nullptr, {&query}, scale, where)[0]);
    for (const CpuContext& context : Contexts())
      Expect(SameAnswer(Attend(&context, {&query}, scale, where)[0], all.back()), "a backend gives other bits");
    Expect(SameAnswer(all.back(), all.front()), "another order of the list gives other bits");
    ExpectAnswer(all.back(), want);
  }
}

void PagedAttentionRow(Members& in, Members& want) {
  const Query query = QueryOf(in["q_bf16"], in["k_slots_bf16"], in["v_slots_bf16"]);
  const std::vector<int32_t> table = Row<int32_t>(in["page_table"]);
  const int32_t page_size = Value<int32_t>(in["page_size"]), kv_len = Value<int32_t>(in["kv_len"]);
  if (page_size < 1 || kv_len < 0 || (kv_len + page_size - 1) / page_size > static_cast<int32_t>(table.size()))
    Malformed("the page table does not cover kv_len");
  for (int32_t p = 0; p < kv_len; ++p)
    if (const int64_t slot = int64_t{table[static_cast<size_t>(p / page_size)]} * page_size + p % page_size;
        slot < 0 || slot >= query.keys)
      Malformed("the page table leads outside the slots");
  want.Flag("no_nan");
  const Where where{.kv_lens = {kv_len}, .page_table = &table, .page_size = page_size};
  const float scale = Value<float>(in["scale"]);
  const Answer reference = Attend(nullptr, {&query}, scale, where)[0];
  for (const float x : reference.wide) Expect(!IsNan(x), "NaN in out");
  for (const BF16 x : reference.narrow) Expect(!IsNan(ToF32(x)), "NaN in out");
  for (const CpuContext& context : Contexts())
    Expect(SameAnswer(Attend(&context, {&query}, scale, where)[0], reference), "a backend gives other bits");
  ExpectAnswer(reference, want);
}

void AttentionBatch(Members& in, Members& want) {
  const int64_t d = Count(in["d"], 4096), dv = Count(in["dv"], 4096);
  std::map<std::string, Query> rows;
  for (const Json& j : List(in["rows"])) {
    Members row(j, "row");
    CaseGenerator lcg(static_cast<uint32_t>(Value<int64_t>(row["seed"])));
    Query query;
    query.keys = Count(row["kv_len"], 1 << 20), query.d = d, query.dv = dv;
    auto fill = [&](std::vector<BF16>* to, int64_t n) {
      for (int64_t i = 0; i < n; ++i)
        to->push_back(RoundToBF16(static_cast<float>(static_cast<int>(lcg.Next() >> 24) - 128) / 64.0f));
    };
    fill(&query.q, d);
    fill(&query.k, query.keys * d);
    fill(&query.v, query.keys * dv);
    rows[Value<std::string>(row["id"])] = std::move(query);
  }
  const std::string named = Value<std::string>(want["row"]);
  want.Flag("bit_identical_across_compositions");
  std::vector<Answer> seen;
  for (const Json& composition : List(in["compositions"])) {
    std::vector<const Query*> batch;
    Where where;
    const std::vector<std::string> ids = Row<std::string>(composition);
    for (const std::string& id : ids) {
      if (rows.count(id) == 0) Malformed("a composition names an unknown row");
      batch.push_back(&rows[id]);
      where.kv_lens.push_back(static_cast<int32_t>(rows[id].keys));
    }
    if (batch.empty()) Malformed("an empty composition");
    for (const CpuContext& context : Contexts()) {
      const std::vector<Answer> answers = Attend(&context, batch, Value<float>(in["scale"]), where);
      for (size_t i = 0; i < ids.size(); ++i) {
        if (ids[i] != named) continue;
        seen.push_back(answers[i]);
        Expect(SameAnswer(seen.back(), seen.front()), "the row's bits depend on the batch");
      }
    }
  }
  Expect(!seen.empty(), "no composition holds the row");
  ExpectAnswer(seen.front(), want);
}

void MergeStatesCase(Members& in, Members& want) {
  std::vector<float> out, lse;
  int64_t dim = -1;
  for (const Json& j : List(in["states"])) {
    Members state(j, "state");
    const std::vector<float> row = Row<float>(state["out_f32"]);
    if (dim >= 0 && dim != static_cast<int64_t>(row.size())) Malformed("states of different lengths");
    dim = static_cast<int64_t>(row.size());
    out.insert(out.end(), row.begin(), row.end());
    lse.push_back(Value<float>(state["lse_f32"]));
  }
  if (dim < 0) Malformed("no states");
  std::vector<float> merged(static_cast<size_t>(dim));
  float merged_lse = 0;
  MergeStates({static_cast<int64_t>(lse.size()), dim, out.data(), lse.data(), merged.data(), &merged_lse});
  const double tol = Value<double>(want["abs_tol"]);
  Expect(List(want["out"]).size() == merged.size(), "out has another length");
  for (size_t i = 0; i < merged.size(); ++i) ExpectNear(Format("out[%zu]", i), double{merged[i]}, want["out"][i], tol);
  ExpectNear("lse", double{merged_lse}, want["lse"], tol);
  if (const Json* bits = want.Find("out_bits_f32"))
    for (size_t i = 0; i < merged.size(); ++i) ExpectBits(Format("out[%zu]", i), merged[i], List(*bits).at(i));
  if (const Json* bits = want.Find("lse_bits_f32")) ExpectBits("lse", merged_lse, *bits);
}

// Exact for even powers of two; else the scale n^-1/2 and the sums round.
double HadamardTolerance(int64_t n) {
  const bool even = static_cast<int>(std::log2(static_cast<double>(n)) + 0.5) % 2 == 0;
  return even ? 0.0 : 1e-5;
}

void HadamardPair(Members& in, Members& want) {
  const std::vector<float> q = Row<float>(in["q"]), k = Row<float>(in["k"]);
  const int64_t n = Count(in["n"], 1 << 20);
  if (static_cast<int64_t>(q.size()) != n || static_cast<int64_t>(k.size()) != n) Malformed("q and k need n values");
  auto transform = [&](const std::vector<float>& x, const char* name) {
    std::vector<float> first;
    for (const CpuContext& context : Contexts()) {
      std::vector<float> y(x.size());
      ExpectOk(Hadamard(context, {View<const float>(x.data(), 1, n), n, View<float>(y.data(), 1, n)}));
      if (first.empty()) first = y;
      Expect(SameBytesOf(first, y), "a backend gives other bits");
    }
    const Json& expected = List(want[name]);
    Expect(expected.size() == first.size(), std::string(name) + " has another length");
    for (size_t i = 0; i < first.size(); ++i) {
      const double tol = HadamardTolerance(n) * (1 + std::fabs(Value<double>(expected[i])));
      ExpectNear(Format("%s[%zu]", name, i), double{first[i]}, expected[i], tol);
    }
    return first;
  };
  const std::vector<float> hq = transform(q, "hq"), hk = transform(k, "hk");
  if (const Json* score = want.Find("score")) {
    const auto weight = PackedWeight::Pack("hk", DType::kF32, hk.data(), 1, n, n);
    ExpectOk(weight.status());
    float got = 0;
    GemmArgs args;
    args.a = View<const float>(hq.data(), 1, n), args.b = &*weight, args.out = View<float>(&got, 1, 1);
    ExpectOk(Gemm(Contexts()[0], args));
    ExpectNear("score", double{got}, *score, HadamardTolerance(n) * (1 + std::fabs(Value<double>(*score))));
  }
}

void IndexerScore(Members& in, Members& want) {
  const Rows<float> q = Matrix<float>(in["q"]), k = Matrix<float>(in["k"]);
  const std::vector<float> w = Row<float>(in["w"]);
  if (q.cols != k.cols || static_cast<int64_t>(w.size()) != q.rows) Malformed("q, k and w do not fit each other");
  const int32_t keys = static_cast<int32_t>(k.rows);
  std::vector<float> first;
  for (const CpuContext& context : Contexts()) {
    std::vector<float> scores(static_cast<size_t>(keys));
    IndexerArgs args;
    args.q = View<const float>(q.data.data(), 1, q.rows * q.cols), args.heads = q.rows, args.dim = q.cols;
    args.weights = View<const float>(w.data(), 1, q.rows);
    args.keys.pool = k.data.data(), args.keys.dtype = DType::kF32, args.keys.row_stride = k.cols;
    args.row_lens = &keys, args.scores = View<float>(scores.data(), 1, keys);
    ExpectOk(Indexer(context, args));
    if (first.empty()) first = scores;
    Expect(SameBytesOf(first, scores), "a backend gives other bits");
  }
  const Json& expected = List(want["scores"]);
  Expect(expected.size() == first.size(), "scores has another length");
  const Json* tol = want.Find("abs_tol");
  for (size_t i = 0; i < first.size(); ++i)
    ExpectNear(Format("scores[%zu]", i), double{first[i]}, expected[i], tol ? Value<double>(*tol) : 0.0);
  if (const Json* order = want.Find("order")) {
    std::vector<int32_t> ids(first.size());
    TopkArgs args;
    args.scores = View<const float>(first.data(), 1, keys), args.output = TopkOutput::kByRank;
    args.indices = View<int32_t>(ids.data(), 1, keys);
    ExpectOk(Topk(Contexts()[0], args));
    ExpectInts("order", ids, *order);
  }
}

constexpr CaseOp kOps[] = {{"sparse_attention_row", SparseAttentionRow},
                           {"paged_attention_row", PagedAttentionRow},
                           {"attention_batch", AttentionBatch},
                           {"merge_states", MergeStatesCase},
                           {"hadamard_pair", HadamardPair},
                           {"indexer_score", IndexerScore}};

}  // namespace

std::span<const CaseOp> AttentionCaseOps() { return kOps; }

}  // namespace samebits
