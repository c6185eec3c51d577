#include "prove/repro.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/strings.h"
#include "numerics/random_inputs.h"
#include "ops/attention/attention.h"
#include "ops/gemm/gemm.h"
#include "ops/route/route.h"
#include "ops/topk/topk.h"

namespace samebits {
namespace {

using Emit = std::function<void(const ReproLine&)>;

// V3.2 head sizes (spec 1.1) and the report's ragged prefill shape.
constexpr int64_t kHeads = 128, kLatent = 512, kRope = 64, kValueDim = 128, kTopk = 2048;
constexpr int64_t kRows = 323, kColumns = 2590;
constexpr float kScale = 0.13523378f;

template <class T>
double MaxDiff(const std::vector<T>& a, const std::vector<T>& b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i)
    most = std::max(most, std::abs(static_cast<double>(ToF32(a[i])) - static_cast<double>(ToF32(b[i]))));
  return most;
}
template <class T>
bool Same(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

// One query of 128 heads over 2048 of 4096 cached rows, then the value up-projection.
struct MlaProblem {
  std::vector<BF16> q, kv;
  std::vector<PackedWeight> w_vc;
  std::vector<int32_t> indices;

  static Result<MlaProblem> Make(uint64_t seed, int64_t heads) {
    RandomInputs random(seed);
    MlaProblem p;
    p.q = random.NormalBF16(heads * (kLatent + kRope), 0.25f);
    p.kv = random.NormalBF16(4096 * (kLatent + kRope));
    for (int64_t h = 0; h < heads; ++h) {
      const std::vector<BF16> w = random.NormalBF16(kValueDim * kLatent, 1.0f);
      SB_ASSIGN(PackedWeight packed, PackedWeight::Pack("w_vc", DType::kBF16, w.data(), kValueDim, kLatent, kLatent));
      p.w_vc.push_back(std::move(packed));
    }
    std::vector<int32_t> all(4096);
    std::iota(all.begin(), all.end(), 0);
    random.Shuffle(&all);
    p.indices.assign(all.begin(), all.begin() + kTopk);
    std::sort(p.indices.begin(), p.indices.end());
    return p;
  }
  int64_t heads() const { return static_cast<int64_t>(w_vc.size()); }

  AttentionArgs Args(const std::vector<int32_t>& list, const int32_t* kv_len, std::vector<BF16>* out) const {
    out->assign(static_cast<size_t>(heads() * kLatent), BF16{0x7fc0});
    AttentionArgs args;
    args.q = View<const BF16>(q.data(), 1, heads() * (kLatent + kRope));
    args.heads = heads(), args.dim = kLatent + kRope, args.value_dim = kLatent;
    args.keys = PagedRows{kv.data(), DType::kBF16, kLatent + kRope, nullptr, 1};
    args.values = args.keys;
    args.kv_lens = kv_len;
    args.indices = View<const int32_t>(list.data(), 1, static_cast<int64_t>(list.size()));
    args.scale = kScale;
    args.out = View<BF16>(out->data(), 1, heads() * kLatent);
    return args;
  }
  Status UpProject(const CpuContext& context, const std::vector<BF16>& latent, std::vector<BF16>* out) const {
    out->assign(static_cast<size_t>(heads() * kValueDim), BF16{0x7fc0});
    std::vector<GemmArgs> batch(w_vc.size());
    for (int64_t h = 0; h < heads(); ++h) {
      GemmArgs& g = batch[static_cast<size_t>(h)];
      g.a = View<const BF16>(latent.data() + h * kLatent, 1, kLatent);
      g.b = &w_vc[static_cast<size_t>(h)];
      g.out = View<BF16>(out->data() + h * kValueDim, 1, kValueDim);
    }
    return GemmBatch(context, batch);
  }
};

// Runs `attend` for naive and ours over runs; each run gets its own list (or rule) from `list_of` and `rule_of`.
Status AttentionRuns(const CpuContext& context, const ReproOptions& options, const Emit& emit, int64_t heads,
                     const std::function<std::vector<int32_t>(const MlaProblem&, int run)>& list_of,
                     const std::function<AttentionRule(int run)>& rule_of) {
  SB_ASSIGN(const MlaProblem p, MlaProblem::Make(options.seed, heads));
  const int32_t kv_len = 4096;
  for (const bool ours : {false, true}) {
    std::vector<BF16> first, first2;
    for (int run = 0; run <= options.runs; ++run) {
      const std::vector<int32_t> list = list_of(p, run);
      std::vector<BF16> out, up;
      const AttentionArgs args = p.Args(list, &kv_len, &out);
      if (ours) {
        SB_RETURN_IF_ERROR(Attention(context, args));
      } else {
        AttentionRef(args, rule_of(run));
      }
      SB_RETURN_IF_ERROR(p.UpProject(context, out, &up));
      if (run == 0) first = out, first2 = up;
      ReproLine line;
      line.algorithm = ours ? "samebits" : "naive";
      line.run = run;
      line.same = Same(out, first), line.max_diff = MaxDiff(out, first);
      line.stage2 = "bmm", line.same2 = Same(up, first2), line.max_diff2 = MaxDiff(up, first2);
      emit(line);
    }
  }
  return Ok();
}

Status IndexOrder(const CpuContext& context, const ReproOptions& options, const Emit& emit) {
  return AttentionRuns(
      context, options, emit, kHeads,
      [&](const MlaProblem& p, int run) {
        std::vector<int32_t> list = p.indices;
        if (run > 0) RandomInputs(options.seed * 1000 + static_cast<uint64_t>(run)).Shuffle(&list);
        return list;
      },
      [](int) { return AttentionRule{.canonical_list = false, .online = true}; });
}

Status SplitKv(const CpuContext& context, const ReproOptions& options, const Emit& emit) {
  return AttentionRuns(
      context, options, emit, kHeads, [](const MlaProblem& p, int) { return p.indices; },
      // A scheduler that fills the chip splits a lone request often and a request in a full batch not at all.
      [](int run) { return AttentionRule{.online = true, .splits = int64_t{1} << (run % 6)}; });
}

Status TopkTie(const CpuContext& context, const ReproOptions& options, const Emit& emit) {
  RandomInputs random(options.seed);
  // Scores on a coarse grid, as fp8 dot products give: many equal values, some on the boundary of the 2048.
  std::vector<float> scores(kRows * kColumns);
  for (float& s : scores) s = static_cast<float>(static_cast<int>(random.Normal() * 64)) * 0.125f;
  std::vector<int32_t> lens(kRows);
  for (int64_t r = 0; r < kRows; ++r) lens[static_cast<size_t>(r)] = static_cast<int32_t>(kColumns - kRows + 1 + r);
  for (const bool ours : {false, true}) {
    std::vector<int32_t> first;
    for (int run = 0; run <= options.runs; ++run) {
      std::vector<int32_t> out(kRows * kTopk, -2);
      TopkArgs args;
      args.scores = View<const float>(scores.data(), kRows, kColumns);
      args.row_lens = lens.data();
      args.indices = View<int32_t>(out.data(), kRows, kTopk);
      if (ours) {
        SB_RETURN_IF_ERROR(Topk(context, args));
      } else {
        TopkRef(args, TopkRule{.shuffle_ties_seed = options.seed * 1000 + static_cast<uint64_t>(run) + 1});
      }
      if (run == 0) first = out;
      int64_t rows = 0, ids = 0;
      for (int64_t r = 0; r < kRows; ++r) {
        std::vector<int32_t> gone;
        const auto a = out.begin() + r * kTopk, b = first.begin() + r * kTopk;
        std::set_difference(a, a + kTopk, b, b + kTopk, std::back_inserter(gone));
        rows += !gone.empty();
        ids += static_cast<int64_t>(gone.size());
      }
      ReproLine line;
      line.algorithm = ours ? "samebits" : "naive";
      line.run = run;
      line.same = out == first;
      line.max_diff = -1;
      line.note = Format("rows_with_other_set=%lld ids_swapped=%lld", static_cast<long long>(rows),
                         static_cast<long long>(ids));
      emit(line);
    }
  }
  return Ok();
}

// 2,048 tokens, 256 experts in 8 groups, top-8, the router's real width.
struct RouterProblem {
  static constexpr int64_t kTokens = 2048, kHidden = 7168, kExperts = 256, kChosen = 8;
  std::vector<BF16> x;
  std::vector<float> bias;
  PackedWeight gate;

  static Result<RouterProblem> Make(uint64_t seed) {
    RandomInputs random(seed);
    RouterProblem p;
    p.x = random.NormalBF16(kTokens * kHidden);
    p.bias = random.NormalF32(kExperts, 0.05f);
    const std::vector<BF16> w = random.NormalBF16(kExperts * kHidden, 0.012f);
    SB_ASSIGN(p.gate, PackedWeight::Pack("gate", DType::kBF16, w.data(), kExperts, kHidden, kHidden));
    return p;
  }
  // Logits of the first `rows` tokens, in batches of `batch`.
  Status Logits(const CpuContext& context, int64_t rows, int64_t batch, std::vector<float>* out) const {
    out->assign(static_cast<size_t>(rows * kExperts), 0.0f);
    for (int64_t at = 0; at < rows; at += batch) {
      GemmArgs g;
      g.a = View<const BF16>(x.data() + at * kHidden, std::min(batch, rows - at), kHidden);
      g.b = &gate;
      g.out = View<float>(out->data() + at * kExperts, g.a.rows, kExperts);
      SB_RETURN_IF_ERROR(Gemm(context, g));
    }
    return Ok();
  }
  void Choose(const std::vector<float>& logits, const RouteRule& rule, std::vector<int32_t>* experts) const {
    const int64_t rows = static_cast<int64_t>(logits.size()) / kExperts;
    experts->assign(static_cast<size_t>(rows * kChosen), -1);
    std::vector<float> weights(experts->size());
    RouteArgs r;
    r.logits = View<const float>(logits.data(), rows, kExperts);
    r.bias = bias.data();
    r.n_group = 8, r.topk_group = 4, r.k = kChosen;
    r.experts = View<int32_t>(experts->data(), rows, kChosen);
    r.weights = View<float>(weights.data(), rows, kChosen);
    RouteRef(r, rule);
  }
};

int64_t FlippedTokens(const std::vector<int32_t>& a, const std::vector<int32_t>& b) {
  int64_t flipped = 0;
  for (size_t t = 0; t < a.size(); t += RouterProblem::kChosen)
    flipped += std::memcmp(&a[t], &b[t], RouterProblem::kChosen * sizeof(int32_t)) != 0;
  return flipped;
}

// Each run routes the same tokens in smaller batches; the naive engine picks the logits' dtype by kernel availability, so
// only the largest batch gets fp32.
Status RouterDtype(const CpuContext& context, const ReproOptions& options, const Emit& emit) {
  SB_ASSIGN(const RouterProblem p, RouterProblem::Make(options.seed));
  for (const bool ours : {false, true}) {
    std::vector<int32_t> first;
    for (int run = 0; run <= options.runs; ++run) {
      const int64_t batch = std::max<int64_t>(1, p.kTokens >> (2 * run));
      const bool bf16 = !ours && batch < p.kTokens;
      std::vector<float> logits;
      std::vector<int32_t> experts;
      SB_RETURN_IF_ERROR(p.Logits(context, p.kTokens, batch, &logits));
      p.Choose(logits, RouteRule{.bf16_logits = bf16}, &experts);
      if (run == 0) first = experts;
      ReproLine line;
      line.algorithm = ours ? "samebits" : "naive";
      line.run = run;
      line.same = experts == first;
      line.max_diff = -1;
      line.note = Format("batch=%lld logits=%s tokens_with_other_experts=%lld of %lld", static_cast<long long>(batch),
                         bf16 ? "bf16" : "fp32", static_cast<long long>(FlippedTokens(experts, first)),
                         static_cast<long long>(p.kTokens));
      emit(line);
    }
  }
  return Ok();
}

// fp32 output asked for: the accumulator itself, or fp32 -> bf16 -> fp32 because the buffer took the input's dtype.
Status DoubleRounding(const CpuContext& context, const ReproOptions& options, const Emit& emit) {
  SB_ASSIGN(const RouterProblem p, RouterProblem::Make(options.seed));
  const int64_t rows = 64;
  for (const bool ours : {false, true}) {
    std::vector<float> first;
    for (int run = 0; run <= options.runs; ++run) {
      const int64_t batch = std::max<int64_t>(1, rows >> run);
      std::vector<float> logits;
      SB_RETURN_IF_ERROR(p.Logits(context, rows, batch, &logits));
      if (!ours && run % 2 == 1) {
        GemmArgs g;
        g.a = View<const BF16>(p.x.data(), rows, RouterProblem::kHidden);
        g.b = &p.gate;
        g.out = View<float>(logits.data(), rows, RouterProblem::kExperts);
        GemmRef(g, GemmRule{.bf16_accumulator_store = true});
      }
      if (run == 0) first = logits;
      std::vector<int32_t> experts, experts0;
      p.Choose(logits, {}, &experts);
      p.Choose(first, {}, &experts0);
      ReproLine line;
      line.algorithm = ours ? "samebits" : "naive";
      line.run = run;
      line.same = Same(logits, first), line.max_diff = MaxDiff(logits, first);
      line.note = Format("batch=%lld tokens_with_other_experts=%lld of %lld", static_cast<long long>(batch),
                         static_cast<long long>(FlippedTokens(experts, experts0)), static_cast<long long>(rows));
      emit(line);
    }
  }
  return Ok();
}

// Row 0 of kv_a (7168 -> 576) computed in batches of different size; the naive kernel splits K when few rows leave the
// chip idle.
Status BatchSize(const CpuContext& context, const ReproOptions& options, const Emit& emit) {
  constexpr int64_t kK = 7168, kN = 576, kMost = 32;
  RandomInputs random(options.seed);
  const std::vector<BF16> x = random.NormalBF16(kMost * kK), w = random.NormalBF16(kN * kK, 0.05f);
  SB_ASSIGN(const PackedWeight packed, PackedWeight::Pack("kv_a", DType::kBF16, w.data(), kN, kK, kK));
  for (const bool ours : {false, true}) {
    std::vector<float> first;
    for (int run = 0; run <= options.runs; ++run) {
      const int64_t rows = std::min<int64_t>(kMost, int64_t{1} << run);
      std::vector<float> out(static_cast<size_t>(rows * kN));
      GemmArgs g;
      g.a = View<const BF16>(x.data(), rows, kK);
      g.b = &packed;
      g.out = View<float>(out.data(), rows, kN);
      if (ours) {
        SB_RETURN_IF_ERROR(Gemm(context, g));
      } else {
        g.a = g.a.Rows(0, 1);  // the reference is slow: only the row that is compared
        g.out = g.out.Rows(0, 1);
        GemmRef(g, GemmRule{.splits = std::max<int64_t>(1, 8 / rows)});
      }
      out.resize(kN);
      if (run == 0) first = out;
      ReproLine line;
      line.algorithm = ours ? "samebits" : "naive";
      line.run = run;
      line.same = Same(out, first), line.max_diff = MaxDiff(out, first);
      line.note = Format("batch=%lld", static_cast<long long>(rows));
      emit(line);
    }
  }
  return Ok();
}

}  // namespace

const std::vector<Repro>& Repros() {
  static const std::vector<Repro> kRepros = {
      {"index-order", "sparse MLA over one set of 2048 keys, its list permuted; naive: online softmax in list order",
       IndexOrder},
      {"topk-tie", "top-2048 of 323 ragged rows with equal scores at the boundary; naive: unstable selection", TopkTie},
      {"router-dtype", "experts of 2048 tokens; naive: all but the largest batch store router logits in bf16",
       RouterDtype},
      {"double-rounding", "fp32 router logits; naive: every other run goes fp32 -> bf16 -> fp32", DoubleRounding},
      {"split-kv", "sparse MLA; naive: the number of KV splits follows the load", SplitKv},
      {"batch-size", "row 0 of a 7168 -> 576 projection in growing batches; naive: split K follows the batch",
       BatchSize},
  };
  return kRepros;
}

}  // namespace samebits
