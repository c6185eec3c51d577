// INDEX_ORDER, ORDER_ONLY_HARMLESS, TOPK_TIE, TOPK_WRONG, UPSTREAM_SCORES: one symptom, five causes. Decided row by row
// from the scores; Before() of ops/topk is the order.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/strings.h"
#include "forensics/explain/explain.h"
#include "forensics/explain/index_order.h"
#include "forensics/explain/topk_case.h"

namespace samebits {
namespace {

long long N(int64_t x) { return static_cast<long long>(x); }

TopkCase CaseOf(const ExplainInput& in, bool left) {
  TopkCase c;
  c.scope = in.origin.diff.item.name;
  c.topk = left ? in.a : in.b;
  const auto take = [&](std::initializer_list<const char*> names) {
    const Companion* found = in.Find(names);
    return found == nullptr ? LoadedTensor() : left ? found->a : found->b;
  };
  const Companion* scores = in.Find({"index_scores", "logits", "scores"});
  if (scores != nullptr) {
    c.logits = left ? scores->a : scores->b;
    if (scores->item.record) c.lens_of_record = scores->item.record->lens;
  }
  c.row_starts = take({"row_starts"}), c.row_lens = take({"row_lens"});
  return c;
}

float ScoreAt(const TopkInputs& in, int64_t row, int64_t id) {
  return in.scores[static_cast<size_t>(row * in.n + in.starts[static_cast<size_t>(row)] + id)];
}

struct RowVerdict {
  enum Kind { kTie, kWrongA, kWrongB, kWrongBoth } kind = kTie;
  float kth = 0;
  int64_t tied = 0, admitted = 0;
  std::string fault;  // of kWrong
};

// Is `ids` a selection of the k best, ties free? Fills fault if not.
bool IsSelection(const TopkInputs& in, int64_t row, const std::vector<int64_t>& ids, float kth, std::string* fault) {
  const int64_t len = in.lens[static_cast<size_t>(row)];
  std::vector<bool> chosen(static_cast<size_t>(std::max<int64_t>(len, 0)), false);
  for (const int64_t id : ids) {
    if (id >= len) return *fault = Format("id %lld lies outside the row of %lld", N(id), N(len)), false;
    if (chosen[static_cast<size_t>(id)]) return *fault = Format("id %lld is listed twice", N(id)), false;
    chosen[static_cast<size_t>(id)] = true;
  }
  int64_t lost = 0, first = -1;
  for (int64_t id = 0; id < len; ++id) {
    const float s = ScoreAt(in, row, id);
    if (chosen[static_cast<size_t>(id)] || IsNan(s) || OrderKey(s) <= OrderKey(kth)) continue;
    if (lost++ == 0) first = id;
  }
  if (lost > 0)
    return *fault =
               Format("%lld better candidates were left out, first id %lld with score %.9g, above the k-th score %.9g",
                      N(lost), N(first), static_cast<double>(ScoreAt(in, row, first)), static_cast<double>(kth)),
           false;
  for (const int64_t id : ids) {
    const float s = ScoreAt(in, row, id);
    if (IsNan(s) || OrderKey(s) < OrderKey(kth))
      return *fault = Format("id %lld with score %.9g was selected, below the k-th score %.9g", N(id),
                             static_cast<double>(s), static_cast<double>(kth)),
             false;
  }
  return true;
}

RowVerdict JudgeRow(const TopkInputs& in, int64_t row, const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  RowVerdict v;
  const int64_t len = std::max(0, in.lens[static_cast<size_t>(row)]);
  std::vector<uint32_t> keys;
  for (int64_t id = 0; id < len; ++id)
    if (const float s = ScoreAt(in, row, id); !IsNan(s)) keys.push_back(OrderKey(s));
  const size_t k = std::min(static_cast<size_t>(in.k), keys.size());
  if (k == 0) {
    v.kind = RowVerdict::kWrongBoth, v.fault = "the row has no score to choose";
    return v;
  }
  std::nth_element(keys.begin(), keys.begin() + static_cast<int64_t>(k - 1), keys.end(), std::greater<>());
  const uint32_t kth = keys[k - 1];
  v.kth = FromOrderKey(kth);
  v.tied = std::count(keys.begin(), keys.end(), kth);
  v.admitted =
      static_cast<int64_t>(k) - std::count_if(keys.begin(), keys.end(), [&](uint32_t key) { return key > kth; });
  std::string fault_a, fault_b;
  const bool good_a = IsSelection(in, row, a, v.kth, &fault_a), good_b = IsSelection(in, row, b, v.kth, &fault_b);
  if (!good_a || !good_b) {
    v.kind = good_b ? RowVerdict::kWrongA : good_a ? RowVerdict::kWrongB : RowVerdict::kWrongBoth;
    v.fault = (good_a ? "" : "A: " + fault_a) + (!good_a && !good_b ? "; " : "") + (good_b ? "" : "B: " + fault_b);
  }
  return v;
}

// Rows of a row's extent whose scores differ between the sides.
bool SameScores(const TopkInputs& a, const TopkInputs& b, int64_t row) {
  const size_t r = static_cast<size_t>(row);
  if (a.starts[r] != b.starts[r] || a.lens[r] != b.lens[r] || a.n != b.n) return false;
  const size_t at = static_cast<size_t>(row * a.n + a.starts[r]);
  return a.lens[r] <= 0 ||
         std::memcmp(a.scores.data() + at, b.scores.data() + at, static_cast<size_t>(a.lens[r]) * 4) == 0;
}

// Distance of the k-th from the (k+1)-th score, and the largest difference of scores: noise against margin.
void MarginAndNoise(const TopkInputs& a, const TopkInputs& b, int64_t row, double* margin, double* noise) {
  std::vector<uint32_t> keys;
  *noise = 0, *margin = -1;
  for (int64_t id = 0; id < a.lens[static_cast<size_t>(row)]; ++id) {
    const float x = ScoreAt(a, row, id);
    if (!IsNan(x)) keys.push_back(OrderKey(x));
    if (id < b.lens[static_cast<size_t>(row)]) {
      const double d = std::fabs(static_cast<double>(x) - static_cast<double>(ScoreAt(b, row, id)));
      if (d > *noise && std::isfinite(d)) *noise = d;
    }
  }
  const size_t k = static_cast<size_t>(a.k);
  if (keys.size() <= k) return;
  std::nth_element(keys.begin(), keys.begin() + static_cast<int64_t>(k), keys.end(), std::greater<>());
  const uint32_t next = keys[k], kth = *std::min_element(keys.begin(), keys.begin() + static_cast<int64_t>(k));
  *margin = static_cast<double>(FromOrderKey(kth)) - static_cast<double>(FromOrderKey(next));
}

std::string IdText(const std::vector<int64_t>& ids) {
  std::string text;
  for (const int64_t id : ids) text += (text.empty() ? "" : " ") + std::to_string(id);
  return text.empty() ? "none" : text;
}

Finding SetFinding(const ExplainInput& in, const IndexSetDiff& sets, const TopkInputs& a, const TopkInputs& b) {
  Finding f;
  f.at = in.origin.diff.item.name;
  int64_t ties = 0, wrong = 0, upstream = 0;
  std::vector<std::string> tie_lines, wrong_lines, upstream_lines;
  int64_t block = 0;  // ties come in aligned groups of this size
  for (const IndexRowDiff& row : sets.other_set) {
    if (!SameScores(a, b, row.row)) {
      double margin, noise;
      MarginAndNoise(a, b, row.row, &margin, &noise);
      if (upstream++ < 8)
        upstream_lines.push_back(
            Format("row %lld: scores differ by up to %.6g; k-th and next score are %.6g apart in A", N(row.row), noise,
                   margin));
      continue;
    }
    const std::vector<int64_t> x = SortedIds(in.a.tensor, row.row), y = SortedIds(in.b.tensor, row.row);
    const RowVerdict v = JudgeRow(a, row.row, x, y);
    if (v.kind == RowVerdict::kTie) {
      if (ties++ < 8)
        tie_lines.push_back(
            Format("row %lld: k-th score %.9g, %lld scores equal it, %lld of them fit; only in A: %s; only in B: %s",
                   N(row.row), static_cast<double>(v.kth), N(v.tied), N(v.admitted), IdText(row.only_a).c_str(),
                   IdText(row.only_b).c_str()));
      // A group that covers whole aligned blocks is structural: one score copied to every cell of a block.
      std::vector<int64_t> equal;
      for (int64_t id = 0; id < a.lens[static_cast<size_t>(row.row)]; ++id)
        if (OrderKey(ScoreAt(a, row.row, id)) == OrderKey(v.kth)) equal.push_back(id);
      const int64_t size = static_cast<int64_t>(equal.size());
      if (size >= 3 && equal.back() - equal.front() == size - 1 && equal.front() % size == 0) block = size;
    } else if (wrong++ < 8) {
      wrong_lines.push_back(Format("row %lld: ", N(row.row)) + v.fault);
    }
  }
  const auto append = [&](const std::vector<std::string>& lines) {
    f.evidence.insert(f.evidence.end(), lines.begin(), lines.end());
  };
  if (wrong > 0) {
    f.verdict = "TOPK_WRONG";
    f.sentence = Format(
        "the scores are bitwise equal, yet %lld of %lld rows do not hold the k best: the selection is wrong, not tied",
        N(wrong), N(sets.rows_other_set));
    append(wrong_lines);
    TopkInputs narrow = a;
    for (float& x : narrow.scores) x = ToF32(RoundToBF16(x));
    const bool bf16 = std::all_of(sets.other_set.begin(), sets.other_set.end(), [&](const IndexRowDiff& row) {
      return !SameScores(a, b, row.row) ||
             JudgeRow(narrow, row.row, SortedIds(in.a.tensor, row.row), SortedIds(in.b.tensor, row.row)).kind ==
                 RowVerdict::kTie;
    });
    if (bf16)
      f.evidence.push_back(
          "re-run: for these scores rounded to bf16 both sides hold the k best in every row and differ by ties alone: "
          "the selection reads scores in bf16");
    if (ties > 0) f.evidence.push_back(Format("%lld further rows differ by ties alone", N(ties)));
    f.refute = "scores at the moment of the selection that differ from the recorded ones";
  } else if (ties > 0) {
    f.verdict = "TOPK_TIE";
    f.sentence = Format(
        "equal scores stand on the boundary of the top %lld in %lld row%s; each side took another of them, and both "
        "are right",
        N(a.k), N(ties), ties == 1 ? "" : "s");
    f.evidence.push_back(
        "scores of these rows are bitwise equal on both sides, and every id that only one side has holds exactly the "
        "k-th score");
    append(tie_lines);
    if (block > 1)
      f.evidence.push_back(
          Format("the tied scores fill an aligned group of %lld neighbours: one score per block of %lld cells, so the "
                 "cut always falls inside a group",
                 N(block), N(block)));
    f.refute = "an id in the symmetric difference whose score is not the k-th score";
  } else {
    f.verdict = "UPSTREAM_SCORES";
    f.sentence =
        Format("the scores differ before the selection in all %lld rows whose sets differ: look upstream of the scores",
               N(upstream));
    f.refute = "a row with bitwise equal scores and different sets";
  }
  if (upstream > 0) {
    if (f.verdict != "UPSTREAM_SCORES")
      f.evidence.push_back(Format("in %lld further rows the scores differ already", N(upstream)));
    append(upstream_lines);
  }
  if (sets.rows_other_order > 0)
    f.evidence.push_back(Format("%lld further rows hold the same set in another order", N(sets.rows_other_order)));
  return f;
}

// Our own reference, run on these scores: which side it agrees with, under which rule.
void AddReference(const ExplainInput& in, const TopkCase& a, Finding* f) {
  const auto matches = [&](const TopkRule& rule, const LoadedTensor& side) {
    const Result<Tensor> ref = ReferenceTopk(a, rule);
    return ref.ok() && CompareIndexSets((*ref).ref(), side.tensor, 0).same_sets();
  };
  const TopkRule high{.high_index_wins_ties = true};
  for (const auto& [name, side] : {std::pair<const char*, const LoadedTensor*>{"A", &in.a}, {"B", &in.b}}) {
    if (matches({}, *side))
      f->evidence.push_back(
          Format("re-run: the reference with ties to the lower index gives the sets of %s in every row", name));
    else if (matches(high, *side))
      f->evidence.push_back(
          Format("re-run: the reference with ties to the higher index gives the sets of %s in every row", name));
  }
}

}  // namespace

Result<std::optional<Finding>> TryTopk(const ExplainInput& in) {
  const TensorDiff& d = in.origin.diff;
  if (d.item.site.find("sorted") != std::string::npos) return std::optional<Finding>();  // made from another list
  if (!IsIndexItem(d.item) || d.item.shape != d.right.shape || !IsInteger(d.right.dtype))
    return std::optional<Finding>();
  if (in.a.tensor.data == nullptr) {
    if (d.verdict != DiffVerdict::kSameSet) return std::optional<Finding>();
    return std::optional<Finding>(OrderFinding(in, d.rows_differ));
  }
  const IndexSetDiff sets = CompareIndexSets(in.a.tensor, in.b.tensor, size_t{1} << 20);
  if (sets.rows_other_set == 0) {
    if (sets.rows_other_order == 0) return std::optional<Finding>();
    return std::optional<Finding>(OrderFinding(in, sets.rows_other_order));
  }
  const TopkCase a = CaseOf(in, true), b = CaseOf(in, false);
  const Result<TopkInputs> x = InputsOf(a), y = InputsOf(b);
  if (!x.ok() || !y.ok()) return std::optional<Finding>();  // UNKNOWN: record the scores
  Finding f = SetFinding(in, sets, *x, *y);
  if (f.verdict == "TOPK_TIE" || f.verdict == "TOPK_WRONG") AddReference(in, a, &f);
  return std::optional<Finding>(std::move(f));
}

}  // namespace samebits
