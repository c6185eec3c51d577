#include <algorithm>

#include "base/strings.h"
#include "case.h"
#include "ops/topk/topk.h"
#include "store/digest.h"

namespace samebits {
namespace {

struct Windows {
  std::vector<int32_t> starts, lens;
};
Windows WindowsOf(const std::vector<int32_t>& starts, const std::vector<int32_t>& ends) {
  if (starts.size() != ends.size()) Malformed("starts and ends differ in number");
  Windows w;
  for (size_t r = 0; r < starts.size(); ++r) {
    const bool empty = ends[r] <= starts[r];
    w.starts.push_back(empty ? 0 : starts[r]);
    w.lens.push_back(empty ? 0 : ends[r] - starts[r]);
  }
  return w;
}

// Indices from each window's start, the same on every context and in the reference; -1 at the tail.
Result<std::vector<int32_t>> Select(View<const float> scores, const Windows& w, int64_t k, TopkOutput output) {
  std::vector<int32_t> expected(static_cast<size_t>(scores.rows * k));
  TopkArgs args;
  args.scores = scores, args.row_starts = w.starts.data(), args.row_lens = w.lens.data(), args.output = output;
  args.indices = View<int32_t>(expected.data(), scores.rows, k);
  SB_RETURN_IF_ERROR(CheckTopk(args));
  TopkRef(args);
  for (const CpuContext& context : Contexts())
    for (int again = 0; again < 2; ++again) {
      std::vector<int32_t> got(expected.size(), -7);
      args.indices = View<int32_t>(got.data(), scores.rows, k);
      ExpectOk(Topk(context, args));
      Expect(got == expected, std::string("the result depends on the backend (") + IsaName(context.isa) + ")");
    }
  return expected;
}

std::vector<int32_t> Shifted(std::vector<int32_t> indices, int32_t start) {
  for (int32_t& i : indices)
    if (i >= 0) i += start;
  return indices;
}

std::vector<float> Scores(Members& in) {
  const Json* given = in.Find("generator");
  if (given == nullptr) return Row<float>(in["scores_f32"]);
  Members g(*given, "generator");
  if (Value<std::string>(g["kind"]) != "lcg_bits") Unsupported("this generator");
  CaseGenerator lcg(static_cast<uint32_t>(Value<int64_t>(g["seed"])));
  const uint32_t base = static_cast<uint32_t>(HexBits(g["base_bits"], 8));
  const int64_t take = Count(g["take_bits"], 32);
  std::vector<float> scores(static_cast<size_t>(Count(g["n"], 1 << 28)));
  for (float& s : scores) {
    const uint32_t state = lcg.Next();
    s = FromBits(base + (take == 0 ? 0 : state >> (32 - take)));
  }
  if (const Json* set = g.Find("set"))
    for (const Json& pair : List(*set)) {
      if (List(pair).size() != 2) Malformed("\"set\" holds pairs of place and bits");
      scores[static_cast<size_t>(Count(pair[0], static_cast<int64_t>(scores.size()) - 1))] = Value<float>(pair[1]);
    }
  if (const std::string unread = g.Unread(); !unread.empty()) Unsupported(unread);
  return scores;
}

void TopkRow(Members& in, Members& want) {
  const std::vector<float> scores = Scores(in);
  const int64_t n = static_cast<int64_t>(scores.size()), k = Count(in["k"], INT32_MAX);
  const int32_t start = Value<int32_t>(in["start"]), end = Value<int32_t>(in["end"]);
  const Windows w = WindowsOf({start}, {end});
  const View<const float> view(scores.data(), 1, n);
  const bool may_refuse = want.Flag("refusing_is_right");
  const auto rank = Select(view, w, k, TopkOutput::kByRank), rising = Select(view, w, k, TopkOutput::kAscending);
  want.Find("must_hold_under_any_nan_rule");  // checked for every case:
  if (!rank.ok()) return may_refuse ? void() : Fail("refused: " + rank.status().text());
  std::set<int32_t> seen;
  for (const int32_t i : *rank)
    Expect(i == -1 || (i >= 0 && i < w.lens[0] && seen.insert(i).second), "an index twice or outside the window");

  const std::vector<int32_t> by_rank = Shifted(*rank, w.starts[0]), ascending = Shifted(*rising, w.starts[0]);
  if (const Json* x = want.Find("by_rank")) ExpectInts("by_rank", by_rank, *x);
  if (const Json* x = want.Find("ascending")) ExpectInts("ascending", ascending, *x);
  if (const Json* x = want.Find("by_rank_window")) ExpectInts("by_rank_window", *rank, *x);
  if (const Json* x = want.Find("ascending_window")) ExpectInts("ascending_window", *rising, *x);
  const int64_t valid = std::count_if(by_rank.begin(), by_rank.end(), [](int32_t i) { return i != -1; });
  if (const Json* x = want.Find("valid"))
    Expect(valid == Value<int64_t>(*x), Format("valid is %lld", (long long)valid));
  auto part = [&](const char* name, const std::vector<int32_t>& list, bool first) {
    const Json* x = want.Find(name);
    if (x == nullptr) return;
    const size_t count = std::min(List(*x).size(), static_cast<size_t>(valid));
    const auto begin = first ? list.begin() : list.begin() + valid - static_cast<int64_t>(count);
    ExpectInts(name, std::vector<int32_t>(begin, begin + static_cast<int64_t>(count)), *x);
  };
  part("first8_ascending", ascending, true);
  part("last8_ascending", ascending, false);
  part("first8_by_rank", by_rank, true);
  part("last8_by_rank", by_rank, false);
  if (const Json* x = want.Find("kth_value_f32")) {
    Expect(valid > 0, "nothing was selected");
    ExpectBits("the k-th value", scores[static_cast<size_t>(by_rank[static_cast<size_t>(valid - 1)])], *x);
  }
  if (const Json* x = want.Find("sha256_ascending_i32le"))
    ExpectText("sha256 ascending", Sha256Hex(BytesOf(ascending)), *x);
  if (const Json* x = want.Find("sha256_by_rank_i32le")) ExpectText("sha256 by rank", Sha256Hex(BytesOf(by_rank)), *x);
}

void ExpectRows(const char* name, const std::vector<int32_t>& got, int64_t k, const Json& want) {
  if (List(want).size() * static_cast<size_t>(k) != got.size()) Malformed(std::string("rows of \"") + name + "\"");
  for (size_t r = 0; r < want.size(); ++r) {
    const auto begin = got.begin() + static_cast<int64_t>(r) * k;
    ExpectInts(Format("%s of row %zu", name, r), std::vector<int32_t>(begin, begin + k), want[r]);
  }
}

void TopkRows(Members& in, Members& want) {
  const Rows<float> scores = Matrix<float>(in["scores_f32"]);
  const int64_t k = Count(in["k"], INT32_MAX);
  const Windows w = WindowsOf(Row<int32_t>(in["starts"]), Row<int32_t>(in["ends"]));
  if (static_cast<int64_t>(w.starts.size()) != scores.rows) Malformed("one start for each row is needed");
  const View<const float> view(scores.data.data(), scores.rows, scores.cols);
  for (const auto& [name, output] :
       {std::pair{"by_rank", TopkOutput::kByRank}, {"ascending", TopkOutput::kAscending}}) {
    const Json* x = want.Find(name);
    if (x == nullptr) continue;
    auto got = Select(view, w, k, output);
    if (!got.ok() && want.Flag("refusing_is_right")) continue;
    ExpectOk(got.status());
    for (int64_t i = 0; i < scores.rows * k; ++i)
      if ((*got)[static_cast<size_t>(i)] >= 0) (*got)[static_cast<size_t>(i)] += w.starts[static_cast<size_t>(i / k)];
    ExpectRows(name, *got, k, *x);
  }
  want.Flag("refusing_is_right");
}

void TopkCausal(Members& in, Members& want) {
  const Rows<float> scores = Matrix<float>(in["scores_f32"]);
  const int64_t k = Count(in["k"], INT32_MAX), ratio = Count(in["ratio"], INT32_MAX);
  if (ratio < 1) Malformed("ratio is 0");
  want.Flag("same_for_every_split");
  for (const Json& split : List(in["splits"])) {
    std::vector<int32_t> all;
    int64_t p = 0;
    for (const int64_t chunk : Row<int64_t>(split)) {
      if (chunk < 0 || p + chunk > scores.rows) Malformed("a split is longer than the rows");
      Windows w;
      for (int64_t i = p; i < p + chunk; ++i) {
        w.starts.push_back(0);
        w.lens.push_back(static_cast<int32_t>(std::min((i + 1) / ratio, scores.cols)));
      }
      const View<const float> view(scores.data.data() + p * scores.cols, chunk, scores.cols);
      const auto got = Select(view, w, k, TopkOutput::kAscending);
      ExpectOk(got.status());
      all.insert(all.end(), (*got).begin(), (*got).end());
      p += chunk;
    }
    ExpectRows("ascending_per_position", all, k, want["ascending_per_position"]);
  }
}

constexpr CaseOp kOps[] = {{"topk_row", TopkRow}, {"topk_rows", TopkRows}, {"topk_causal", TopkCausal}};

}  // namespace

std::span<const CaseOp> TopkCaseOps() { return kOps; }

}  // namespace samebits
