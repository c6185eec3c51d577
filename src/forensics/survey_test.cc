// The cases of the survey of public reports, built from scratch with a fixed seed: each verdict is shown right on its
// case and not on its look-alike.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "base/files.h"
#include "base/strings.h"
#include "forensics/diff_text.h"
#include "forensics/explain/explain.h"
#include "forensics/topk_check.h"
#include "numerics/format.h"
#include "ops/gemm/gemm.h"
#include "ops/norm/norm.h"
#include "store/safetensors.h"

namespace samebits {
namespace {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 2654435761u + 1) {}
  uint64_t Next() { return state_ = state_ * 6364136223846793005u + 1442695040888963407u, state_ >> 33; }
  int64_t Below(int64_t n) { return static_cast<int64_t>(Next() % static_cast<uint64_t>(n)); }
  float Unit() { return static_cast<float>(Next() & 0xffffff) * 0x1p-23f - 1.0f; }  // [-1, 1)

 private:
  uint64_t state_;
};

Tensor F32(Shape shape, Random* r, float scale = 1) {
  Tensor t(DType::kF32, shape);
  for (int64_t i = 0; i < t.elements(); ++i) t.As<float>()[i] = r->Unit() * scale;
  return t;
}
Tensor Bf16(const Tensor& t) {
  Tensor out(DType::kBF16, t.shape());
  for (int64_t i = 0; i < t.elements(); ++i) out.As<BF16>()[i] = RoundToBF16(t.As<float>()[i]);
  return out;
}
Tensor I32(Shape shape, const std::vector<int32_t>& values) {
  Tensor t(DType::kI32, shape);
  std::copy(values.begin(), values.end(), t.As<int32_t>());
  return t;
}

// Two files (or two folders of layer files) and what explain says about them.
class Pair {
 public:
  void Both(const std::string& name, const Tensor& t) { Put(name, t, t); }
  void Put(const std::string& name, const Tensor& a, const Tensor& b) { tensors_.push_back({name, a, b}); }
  // Tensors whose name holds "file/" go into that file of a folder.
  Explanation Explained() {
    Open();
    const Result<Located> located = Locate(*left, *right, Quiet(), nullptr);
    EXPECT_TRUE(located.ok()) << located.status().text();
    const Result<Explanation> e = Explain(*left, *right, *located);
    EXPECT_TRUE(e.ok()) << e.status().text();
    text = "";
    for (const Finding& f : (*e).findings) text += FindingText(f);
    return *e;
  }
  std::string Verdict() {
    const Explanation e = Explained();
    code = e.exit_code;
    return e.findings.front().verdict;
  }
  DiffSums Diff(const DiffOptions& options, std::vector<TensorDiff>* diffs = nullptr) {
    Open();
    const Result<DiffSums> sums =
        DiffSources(*left, *right, options, [&](const TensorDiff& d, TensorSource&, TensorSource&) {
          if (diffs != nullptr) diffs->push_back(d);
          return Ok();
        });
    EXPECT_TRUE(sums.ok()) << sums.status().text();
    return *sums;
  }
  static DiffOptions Quiet() {
    DiffOptions o;
    o.quiet = true;
    return o;
  }
  void Open() {
    static int counter = 0;
    const std::string base =
        Format("%s/samebits_survey_%d_%d", ::testing::TempDir().c_str(), static_cast<int>(getpid()), counter++);
    for (const bool b : {false, true}) {
      std::map<std::string, std::vector<NamedTensor>> files;
      for (const Entry& e : tensors_) {
        const size_t slash = e.name.find('/');
        const std::string file = slash == std::string::npos ? "t" : e.name.substr(0, slash);
        files[file].push_back({slash == std::string::npos ? e.name : e.name.substr(slash + 1), (b ? e.b : e.a).ref()});
      }
      const std::string folder = base + (b ? "_b" : "_a");
      EXPECT_TRUE(MakeFolders(folder).ok());
      for (const auto& [file, named] : files)
        EXPECT_TRUE(WriteSafetensors(folder + "/" + file + ".safetensors", named).ok());
      const std::string path = files.size() == 1 ? folder + "/" + files.begin()->first + ".safetensors" : folder;
      Result<std::unique_ptr<TensorSource>> opened = TensorSource::Open(path);
      ASSERT_TRUE(opened.ok()) << opened.status().text();
      (b ? right : left) = std::move(*opened);
    }
  }

  std::unique_ptr<TensorSource> left, right;
  std::string text;
  int code = -1;

 private:
  struct Entry {
    std::string name;
    Tensor a, b;
  };
  std::vector<Entry> tensors_;
};

// The stable selection, ids ascending.
std::vector<int32_t> Select(const float* scores, int64_t n, int64_t k) {
  std::vector<int32_t> ids(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) ids[static_cast<size_t>(i)] = static_cast<int32_t>(i);
  std::stable_sort(ids.begin(), ids.end(), [&](int32_t x, int32_t y) { return scores[x] > scores[y]; });
  ids.resize(static_cast<size_t>(std::min(n, k)));
  std::sort(ids.begin(), ids.end());
  ids.resize(static_cast<size_t>(k), -1);
  return ids;
}
Tensor SelectRows(const Tensor& scores, const std::vector<int32_t>& lens, int64_t k) {
  const int64_t rows = scores.shape()[0], n = scores.shape()[1];
  Tensor out(DType::kI32, {rows, k});
  for (int64_t r = 0; r < rows; ++r) {
    const std::vector<int32_t> ids =
        Select(scores.As<float>() + r * n, lens.empty() ? n : lens[static_cast<size_t>(r)], k);
    std::copy(ids.begin(), ids.end(), out.As<int32_t>() + r * k);
  }
  return out;
}
Tensor Shuffled(const Tensor& list, Random* random) {
  Tensor out = list;
  const int64_t k = list.shape().back();
  for (int64_t r = 0; r < list.elements() / k; ++r)
    for (int64_t i = k - 1; i > 0; --i)
      std::swap(out.As<int32_t>()[r * k + i], out.As<int32_t>()[r * k + random->Below(i + 1)]);
  return out;
}
// One step of the format on `every`-th element, up and down in turn.
Tensor Nudged(const Tensor& t, int64_t every, int64_t offset = 0, bool both_signs = true) {
  Tensor out = t;
  int64_t count = 0;
  for (int64_t i = offset; i < t.elements(); i += every) {
    const int step = both_signs && count++ % 2 ? -1 : 1;
    if (t.dtype() == DType::kBF16) out.As<BF16>()[i].bits = static_cast<uint16_t>(out.As<BF16>()[i].bits + step);
    if (t.dtype() == DType::kF32) reinterpret_cast<uint32_t*>(out.raw())[i] += static_cast<uint32_t>(step);
  }
  return out;
}

// --- 1, 7, 8: order ----------------------------------------------------------------------------------------------

TEST(Survey, Case01_IndexOrderChangesAttention) {
  for (const int64_t k : {64, 97}) {
    Random r(static_cast<uint64_t>(k));
    Pair p;
    Tensor list(DType::kI32, {3, k});
    for (int64_t i = 0; i < 3 * k; ++i) list.As<int32_t>()[i] = static_cast<int32_t>(i % k * 2);
    p.Both("q", Bf16(F32({3, 64}, &r)));
    p.Both("kv", Bf16(F32({2 * k, 64}, &r)));
    p.Put("pagetable_1", list, Shuffled(list, &r));
    const Tensor out = Bf16(F32({3, 64}, &r));
    p.Put("x_out", out, Nudged(out, 5));
    EXPECT_EQ(p.Verdict(), "INDEX_ORDER") << p.text;
    EXPECT_NE(p.text.find("the same bits for both lists once sorted"), std::string::npos) << p.text;
    EXPECT_NE(p.text.find("different bits when it adds in list order"), std::string::npos) << p.text;
  }
}

TEST(Survey, Case07_OrderWithPaddingAtTheTail) {
  Pair p;
  p.Put("topk", I32({1, 6}, {9, 4, 7, 1, -1, -1}), I32({1, 6}, {1, 4, 7, 9, -1, -1}));
  Random r(7);
  const Tensor logprobs = F32({1, 40}, &r);
  p.Put("logprobs", logprobs, Nudged(logprobs, 3));
  EXPECT_EQ(p.Verdict(), "INDEX_ORDER") << p.text;
}

TEST(Survey, Case08_OrderOnlyIsHarmlessWhenNothingFollows) {
  Random r(8);
  Pair p;
  Tensor list(DType::kI32, {2000, 16});
  for (int64_t i = 0; i < list.elements(); ++i) list.As<int32_t>()[i] = static_cast<int32_t>(i % 16 * 3 + i / 16);
  p.Put("topk", list, Shuffled(list, &r));
  p.Both("out", F32({2000, 8}, &r));
  EXPECT_EQ(p.Verdict(), "ORDER_ONLY_HARMLESS") << p.text;
}

TEST(Survey, Case08_TieRowsAreListedApartFromOrderRows) {
  Random r(88);
  Tensor scores = F32({40, 64}, &r);
  float* row = scores.As<float>() + 21 * 64;
  const std::vector<int32_t> chosen = Select(row, 64, 16);
  float kth = 2;
  for (const int32_t id : chosen) kth = std::min(kth, row[id]);
  int32_t in = 0, out = 0;
  for (int32_t i = 0; i < 64; ++i) {
    const bool is = std::count(chosen.begin(), chosen.end(), i) > 0;
    if (is && row[i] == kth) in = i;
    if (!is) out = i;
  }
  row[out] = kth;
  Tensor a = SelectRows(scores, {}, 16), b = Shuffled(a, &r);
  for (int64_t i = 0; i < 16; ++i) {
    int32_t* id = b.As<int32_t>() + 21 * 16 + i;
    if (*id == std::min(in, out)) *id = std::max(in, out);
  }
  Pair p;
  p.Both("logits", scores);
  p.Put("topk", a, b);
  EXPECT_EQ(p.Verdict(), "TOPK_TIE") << p.text;
  EXPECT_NE(p.text.find("row 21"), std::string::npos) << p.text;
  EXPECT_NE(p.text.find("39 further rows hold the same set in another order"), std::string::npos) << p.text;
}

// --- 2 and 3: the same symptom, opposite verdicts --------------------------------------------------------------------

struct TieCase {
  Tensor logits, starts, lens, a, b;
};
TieCase BoundaryTie(int64_t rows, int64_t n, int64_t k, int64_t row, uint64_t seed) {
  Random r(seed);
  TieCase c{F32({rows, n}, &r), Tensor(DType::kI32, {rows}), Tensor(DType::kI32, {rows}), {}, {}};
  std::vector<int32_t> lens;
  for (int64_t i = 0; i < rows; ++i) lens.push_back(static_cast<int32_t>(n - rows + i + 1));
  std::copy(lens.begin(), lens.end(), c.lens.As<int32_t>());
  float* s = c.logits.As<float>() + row * n;
  const int64_t len = lens[static_cast<size_t>(row)];
  std::vector<float> sorted(s, s + len);
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  const float kth = sorted[static_cast<size_t>(k - 1)], next = sorted[static_cast<size_t>(k)];
  const int64_t first = std::find(s, s + len, kth) - s, second = std::find(s, s + len, next) - s;
  s[second] = kth;
  c.a = SelectRows(c.logits, lens, k);
  c.b = c.a;
  for (int64_t i = 0; i < k; ++i)
    if (int32_t* id = c.b.As<int32_t>() + row * k + i; *id == std::min(first, second))
      *id = static_cast<int32_t>(std::max(first, second));
  std::sort(c.b.As<int32_t>() + row * k, c.b.As<int32_t>() + (row + 1) * k);
  return c;
}

TEST(Survey, Case02_TieOnTheBoundary) {
  for (const auto& [rows, n, k, row] :
       {std::tuple<int64_t, int64_t, int64_t, int64_t>{323, 2590, 2048, 319}, {5, 65, 33, 2}}) {
    TieCase c = BoundaryTie(rows, n, k, row, 2);
    Pair p;
    p.Both("logits", c.logits), p.Both("row_starts", c.starts), p.Both("row_lens", c.lens);
    p.Put("topk_result", c.a, c.b);
    EXPECT_EQ(p.Verdict(), "TOPK_TIE") << p.text;
    EXPECT_EQ(p.code, 1);
    EXPECT_NE(p.text.find(Format("row %d: k-th score", static_cast<int>(row))), std::string::npos) << p.text;
    EXPECT_NE(p.text.find("ties to the lower index gives the sets of A"), std::string::npos) << p.text;
    EXPECT_NE(p.text.find("ties to the higher index gives the sets of B"), std::string::npos) << p.text;
    const Result<TopkCheck> check = CheckTopkFiles(*p.left, *p.right, 1);
    ASSERT_TRUE(check.ok()) << check.status().text();
    EXPECT_FALSE((*check).same);
    EXPECT_NE((*check).text.find("A vs ref   equal"), std::string::npos) << (*check).text;
    EXPECT_NE((*check).text.find("B vs ref   NOT equal"), std::string::npos) << (*check).text;
  }
}

TEST(Survey, Case03_ScoresDifferUpstream) {
  for (const auto& [rows, n, k] : {std::tuple<int64_t, int64_t, int64_t>{64, 512, 128}, {7, 130, 65}}) {
    Random r(3);
    const Tensor a = F32({rows, n}, &r);
    Tensor b = a;  // rounding noise everywhere, no tie anywhere
    for (int64_t i = 0; i < b.elements(); ++i) b.As<float>()[i] += r.Unit() * 0.02f;
    Pair p;
    p.Put("logits", a, b);
    p.Put("topk_result", SelectRows(a, {}, k), SelectRows(b, {}, k));
    const Explanation e = p.Explained();
    EXPECT_TRUE(std::any_of(e.findings.begin(), e.findings.end(), [](const Finding& f) {
      return f.verdict == "UPSTREAM_SCORES";
    })) << p.text;
    EXPECT_EQ(p.text.find("TOPK_TIE"), std::string::npos) << p.text;
    EXPECT_EQ(p.text.find("TOPK_WRONG"), std::string::npos) << p.text;
  }
}

TEST(Survey, Case04_KernelDropsBetterCandidates) {
  for (const int64_t n : {16385, 1030}) {
    Random r(4);
    Tensor scores(DType::kF32, {3, n});
    for (int64_t i = 0; i < scores.elements(); ++i) scores.As<float>()[i] = 1.1225f + 0.1225f * r.Unit();
    const int64_t k = n / 8;
    const Tensor a = SelectRows(scores, {}, k);
    Tensor b = a;  // the best of row 1 is lost, the next below the boundary took its place
    const float* s = scores.As<float>() + n;
    int32_t* ids = b.As<int32_t>() + k;
    *std::max_element(ids, ids + k, [&](int32_t x, int32_t y) { return s[x] < s[y]; }) = [&] {
      int32_t best = -1;
      for (int32_t i = 0; i < n; ++i)
        if (!std::count(a.As<int32_t>() + k, a.As<int32_t>() + 2 * k, i) && (best < 0 || s[i] > s[best])) best = i;
      return best;
    }();
    Pair p;
    p.Both("scores", scores);
    p.Put("topk", a, b);
    EXPECT_EQ(p.Verdict(), "TOPK_WRONG") << p.text;
    EXPECT_NE(p.text.find("above the k-th score"), std::string::npos) << p.text;
  }
}

TEST(Survey, Case05_ManyExactTies) {
  Random r(5);
  const int64_t n = 4096, k = 512;
  Tensor scores = F32({10, n}, &r);
  for (int64_t i = 0; i < scores.elements(); ++i) scores.As<float>()[i] = ToF32(RoundToBF16(scores.As<float>()[i]));
  Tensor reversed(DType::kF32, {10, n});
  for (int64_t row = 0; row < 10; ++row)
    for (int64_t i = 0; i < n; ++i) reversed.As<float>()[row * n + i] = scores.As<float>()[row * n + n - 1 - i];
  Tensor b = SelectRows(reversed, {}, k);  // ties to the higher index
  for (int64_t i = 0; i < b.elements(); ++i) b.As<int32_t>()[i] = static_cast<int32_t>(n - 1 - b.As<int32_t>()[i]);
  Pair p;
  p.Both("scores", Bf16(scores));
  p.Put("topk", SelectRows(scores, {}, k), b);
  EXPECT_EQ(p.Verdict(), "TOPK_TIE") << p.text;
  EXPECT_NE(p.text.find("scores equal it"), std::string::npos);
}

TEST(Survey, Case06_OneScorePerBlockOfFour) {
  Random r(6);
  Tensor scores(DType::kF32, {1, 256});
  for (int64_t i = 0; i < 64; ++i) {
    const float s = r.Unit();
    for (int64_t j = 0; j < 4; ++j) scores.As<float>()[4 * i + j] = s;
  }
  const Tensor a = SelectRows(scores, {}, 67);  // 64 + 4 - 1
  Tensor b = a;
  // The cut falls in a group: three of four are in. Swap which one is out.
  for (int32_t group = 0; group < 64; ++group) {
    std::vector<int64_t> places;
    for (int64_t i = 0; i < 67; ++i)
      if (a.As<int32_t>()[i] / 4 == group) places.push_back(i);
    if (places.size() == 3) b.As<int32_t>()[places[0]] = 4 * group + 3;
  }
  Pair p;
  p.Both("scores", scores);
  p.Put("topk", a, b);
  EXPECT_EQ(p.Verdict(), "TOPK_TIE") << p.text;
  EXPECT_NE(p.text.find("aligned group of 4"), std::string::npos) << p.text;
}

// --- 9 to 14, 21: arithmetic -----------------------------------------------------------------------------------------

TEST(Survey, Case09_NormDependsOnTheNumberOfRows) {
  Random r(9);
  const Tensor out = Bf16(F32({400, 256}, &r));
  Pair p;
  p.Both("residual", Bf16(F32({400, 256}, &r)));
  p.Put("norm_out", out, Nudged(out, 977));
  EXPECT_EQ(p.Verdict(), "REDUCTION_ORDER") << p.text;
}

TEST(Survey, Case10_OneOwnerPerPartition) {
  for (const int64_t parts : {4, 8}) {
    Random r(10);
    const int64_t n = 512, rows = 64;
    Tensor rank_order(DType::kF32, {rows, n}), owner_first(DType::kF32, {rows, n});
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t c = 0; c < n; ++c) {
        std::vector<float> x;
        for (int64_t k = 0; k < parts; ++k) x.push_back(r.Unit());
        float s = 0, t = 0;
        const int64_t owner = c / (n / parts);
        for (int64_t k = 0; k < parts; ++k)
          s += x[static_cast<size_t>(k)], t += x[static_cast<size_t>((owner + k) % parts)];
        rank_order.As<float>()[row * n + c] = s, owner_first.As<float>()[row * n + c] = t;
      }
    Pair p;
    p.Put("all_reduce_out", rank_order, owner_first);
    EXPECT_EQ(p.Verdict(), "REDUCTION_ORDER") << p.text;
    EXPECT_NE(p.text.find(Format("part 0 of %d has no mismatch", static_cast<int>(parts))), std::string::npos)
        << p.text;
  }
}

Tensor Product(const Tensor& x, const Tensor& w, DType out, const GemmRule& rule) {
  const Result<PackedWeight> packed =
      PackedWeight::Pack("w", w.dtype(), w.raw(), w.shape()[0], w.shape()[1], w.shape()[1]);
  EXPECT_TRUE(packed.ok());
  Tensor result(out, {x.shape()[0], w.shape()[0]});
  GemmArgs args;
  args.a = View<const BF16>(x.As<BF16>(), x.shape()[0], x.shape()[1]);
  args.b = &*packed;
  args.out.data = result.raw(), args.out.dtype = out, args.out.rows = x.shape()[0],
  args.out.cols = args.out.stride = w.shape()[0];
  EXPECT_TRUE(CheckGemm(args).ok());
  GemmRef(args, rule);
  return result;
}

TEST(Survey, Case11_SplitOfKIsFoundByReRunning) {
  for (const int64_t k : {2048, 768}) {
    Random r(11);
    const Tensor x = Bf16(F32({4, k}, &r)), w = Bf16(F32({96, k}, &r));
    GemmRule split;
    split.splits = 4;
    Pair p;
    p.Both("x", x), p.Both("w", w);
    p.Put("z_out", Product(x, w, DType::kF32, {}), Product(x, w, DType::kF32, split));
    EXPECT_EQ(p.Verdict(), "REDUCTION_ORDER") << p.text;
    EXPECT_NE(p.text.find("our GEMM plan on the recorded x and w gives the bits of A"), std::string::npos) << p.text;
    EXPECT_NE(p.text.find("K split in 4 gives the bits of B"), std::string::npos) << p.text;
  }
}

TEST(Survey, Case12_PartialsRoundedToBf16) {
  Random r(12);
  const int64_t k = 1536;
  const Tensor x = Bf16(F32({8, k}, &r)), w = Bf16(F32({64, k}, &r));
  Tensor rounded(DType::kBF16, {8, 64});
  std::vector<float> sum(8 * 64, 0.0f);
  for (int64_t s = 0; s < 3; ++s) {
    Tensor xs(DType::kBF16, {8, k / 3}), ws(DType::kBF16, {64, k / 3});
    for (int64_t i = 0; i < 8; ++i) std::copy_n(x.As<BF16>() + i * k + s * (k / 3), k / 3, xs.As<BF16>() + i * (k / 3));
    for (int64_t i = 0; i < 64; ++i)
      std::copy_n(w.As<BF16>() + i * k + s * (k / 3), k / 3, ws.As<BF16>() + i * (k / 3));
    const Tensor part = Product(xs, ws, DType::kBF16, {});
    for (int64_t i = 0; i < 8 * 64; ++i) sum[static_cast<size_t>(i)] += ToF32(part.As<BF16>()[i]);
  }
  for (int64_t i = 0; i < 8 * 64; ++i) rounded.As<BF16>()[i] = RoundToBF16(sum[static_cast<size_t>(i)]);
  Pair p;
  p.Both("x", x), p.Both("w", w);
  p.Put("z_out", Product(x, w, DType::kBF16, {}), rounded);
  EXPECT_EQ(p.Verdict(), "PARTIAL_PRECISION") << p.text;
  EXPECT_NE(p.text.find("3 partial sums"), std::string::npos) << p.text;
}

TEST(Survey, Case13_CancellationMakesRelativeErrorMeaningless) {
  Random r(13);
  Tensor a = F32({64, 128}, &r, 100), b = a;
  for (int64_t i = 0; i < a.elements(); i += 7) {
    const float step = (i / 7 % 2 ? 1.0f : -1.0f) * 3e-6f * 100;
    b.As<float>()[i] += step;
  }
  a.As<float>()[490] = 1e-6f, b.As<float>()[490] = 1.5e-4f;
  Pair p;
  p.Put("gemm_out", a, b);
  EXPECT_EQ(p.Verdict(), "REDUCTION_ORDER") << p.text;
  EXPECT_NE(p.text.find("says nothing there"), std::string::npos) << p.text;
}

TEST(Survey, Case14_CastBeforeOrAfterTheWeight) {
  Random r(14);
  const int64_t rows = 32, n = 256;
  const Tensor x = Bf16(F32({rows, n}, &r)), w = Bf16(F32({n}, &r));
  std::vector<float> ones(static_cast<size_t>(n), 1.0f);
  Tensor plain(DType::kF32, {rows, n}), late(DType::kBF16, {rows, n}), early(DType::kBF16, {rows, n});
  RmsNormArgs args;
  args.x = View<const BF16>(x.As<BF16>(), rows, n);
  args.weight = ones.data();
  args.out = View<float>(plain.As<float>(), rows, n);
  RmsNormRef(args);
  for (int64_t i = 0; i < rows * n; ++i) {
    const float g = ToF32(w.As<BF16>()[i % n]), u = plain.As<float>()[i];
    late.As<BF16>()[i] = RoundToBF16(g * u);
    early.As<BF16>()[i] = RoundToBF16(g * ToF32(RoundToBF16(u)));
  }
  Pair p;
  p.Both("input", x), p.Both("weight", w);
  p.Put("norm_out", late, early);
  EXPECT_EQ(p.Verdict(), "CAST_ORDER") << p.text;
  Pair look_alike;  // one ulp here and there, not at the places of the cast
  look_alike.Both("input", x), look_alike.Both("weight", w);
  look_alike.Put("norm_out", late, Nudged(late, 4));
  EXPECT_EQ(look_alike.Verdict(), "REDUCTION_ORDER") << look_alike.text;
}

TEST(Survey, Case15_TableInBf16) {
  for (const int64_t n : {32, 77}) {
    Random r(15);
    const Tensor a = F32({n}, &r);
    Tensor b = a;
    for (int64_t i = 0; i < n; ++i) b.As<float>()[i] = ToF32(RoundToBF16(b.As<float>()[i]));
    Pair p;
    p.Put("inv_freq", a, b);
    EXPECT_EQ(p.Verdict(), "DTYPE_DOWNGRADE") << p.text;
    EXPECT_NE(p.text.find("B = round(A)"), std::string::npos) << p.text;
    Pair look_alike;
    look_alike.Put("inv_freq", a, Nudged(a, 3));
    EXPECT_EQ(look_alike.Verdict(), "REDUCTION_ORDER") << look_alike.text;
  }
}

TEST(Survey, RouterLogitsThroughBf16AreProvedByTheGemm) {
  Random r(150);
  const Tensor x = Bf16(F32({4, 512}, &r)), w = Bf16(F32({64, 512}, &r));
  GemmRule rule;
  rule.bf16_accumulator_store = true;
  Pair p;
  p.Both("x", x), p.Both("w", w);
  p.Put("z_logits", Product(x, w, DType::kF32, {}), Product(x, w, DType::kF32, rule));
  EXPECT_EQ(p.Verdict(), "DTYPE_DOWNGRADE") << p.text;
  EXPECT_NE(p.text.find("accumulator stored through bf16 gives the bits of B"), std::string::npos) << p.text;
}

TEST(Survey, DoubleRounding) {
  Random r(151);
  const Tensor x = F32({8, 4096}, &r);
  Tensor once(DType::kF8E4M3, {8, 4096}), twice(DType::kF8E4M3, {8, 4096});
  for (int64_t i = 0; i < x.elements(); ++i) {
    once.As<E4M3>()[i] = RoundToE4M3(x.As<float>()[i]);
    twice.As<E4M3>()[i] = RoundToE4M3(ToF32(RoundToBF16(x.As<float>()[i])));
  }
  Pair p;
  p.Both("a_values", x);
  p.Put("quantised", once, twice);
  EXPECT_EQ(p.Verdict(), "DOUBLE_ROUNDING") << p.text;
}

// --- 16 to 20: captures and memory -----------------------------------------------------------------------------------

TEST(Survey, Case16_NotComparable) {
  Random r(16);
  const Tensor x = Bf16(F32({32, 64}, &r));
  {
    Pair p;
    p.Put("hidden", x, Tensor(DType::kBF16, {32, 64}));
    EXPECT_EQ(p.Verdict(), "NOT_COMPARABLE") << p.text;
    EXPECT_EQ(p.code, 2);
    EXPECT_NE(p.text.find("warm-up"), std::string::npos);
  }
  {
    Tensor padded(DType::kBF16, {256, 64});
    std::memcpy(padded.raw(), x.raw(), x.bytes());
    Pair p;
    p.Put("hidden", x, padded);
    EXPECT_EQ(p.Verdict(), "NOT_COMPARABLE") << p.text;
    EXPECT_NE(p.text.find("power of two"), std::string::npos);
    EXPECT_NE(p.text.find("first 32 rows are equal"), std::string::npos);
  }
  {
    const Tensor residual = Bf16(F32({32, 64}, &r));
    Tensor with(DType::kBF16, {32, 64});
    for (int64_t i = 0; i < x.elements(); ++i)
      with.As<BF16>()[i] = RoundToBF16(ToF32(x.As<BF16>()[i]) + ToF32(residual.As<BF16>()[i]));
    Pair p;
    p.Put("hidden", with, x);
    p.Both("residual", residual);
    EXPECT_EQ(p.Verdict(), "NOT_COMPARABLE") << p.text;
    EXPECT_NE(p.text.find("residual"), std::string::npos);
  }
  {
    Pair p;
    p.Put("input_ids", I32({3}, {1, 2, 3}), I32({3}, {1, 2, 4}));
    p.Put("z_hidden", x, Nudged(x, 3));
    EXPECT_EQ(p.Verdict(), "NOT_COMPARABLE") << p.text;
  }
}

TEST(Survey, Case16_BeforeAndAfterTheAllReduce) {
  Random r(161);
  const Tensor p0 = F32({4, 32}, &r), p1 = F32({4, 32}, &r);
  Tensor sum = p0;
  for (int64_t i = 0; i < sum.elements(); ++i) sum.As<float>()[i] += p1.As<float>()[i];
  Pair p;
  p.Put("layer_3_rank0/o_proj", sum, p0);
  p.Put("layer_3_rank1/o_proj", sum, p1);
  EXPECT_EQ(p.Verdict(), "NOT_COMPARABLE") << p.text;
  EXPECT_NE(p.text.find("all-reduce"), std::string::npos) << p.text;
}

TEST(Survey, Case17_AliasOverwrittenAfterTheCapture) {
  Random r(17);
  const Tensor real = F32({4, 32}, &r), later = F32({4, 32}, &r, 70);
  Pair p;
  p.Put("layer_5/output", real, later);
  p.Both("layer_6/input", real);
  EXPECT_EQ(p.Verdict(), "NOT_COMPARABLE") << p.text;
  EXPECT_NE(p.text.find("saved by reference"), std::string::npos) << p.text;
}

TEST(Survey, Case18_PaddedRowsOverwriteTheLastSlot) {
  for (const int64_t slots : {80, 17}) {
    Random r(18);
    const Tensor a = Bf16(F32({slots, 48}, &r));
    Tensor b = a;
    for (int64_t i = 0; i < 48; ++i) b.As<BF16>()[(slots - 1) * 48 + i] = RoundToBF16(r.Unit());
    Pair p;
    p.Put("kv_pool", a, b);
    EXPECT_EQ(p.Verdict(), "OVERWRITE") << p.text;
    EXPECT_NE(p.text.find("last row"), std::string::npos) << p.text;
  }
}

TEST(Survey, Case19_NeverWritten) {
  for (const bool garbage : {false, true}) {
    Random r(19);
    const Tensor a = F32({96}, &r);
    Tensor x = a, y = a;
    for (int64_t i = 64; i < 96; ++i) {
      reinterpret_cast<uint32_t*>(x.raw())[i] = 0x7fc00000u;
      y.As<float>()[i] = garbage ? 1e30f * r.Unit() : r.Unit();
    }
    Pair p;
    p.Put("gather_out", x, y);
    EXPECT_EQ(p.Verdict(), "UNINITIALISED") << p.text;
    EXPECT_NE(p.text.find("columns 64 to 95"), std::string::npos) << p.text;
  }
}

TEST(Survey, Case20_OneContribution) {
  {
    Tensor three(DType::kF32, {8}), one(DType::kF32, {8});
    std::fill_n(three.As<float>(), 8, 3.0f), std::fill_n(one.As<float>(), 8, 1.0f);
    Pair p;
    p.Put("all_reduce", three, one);
    EXPECT_EQ(p.Verdict(), "MISSING_CONTRIBUTION") << p.text;
    EXPECT_NE(p.text.find("1/3"), std::string::npos);
  }
  {
    Tensor a(DType::kF32, {1}), b(DType::kF32, {1});
    a.As<float>()[0] = 3.75f;
    Pair p;
    p.Put("all_reduce", a, b);
    EXPECT_EQ(p.Verdict(), "MISSING_CONTRIBUTION") << p.text;
  }
  {
    Random r(20);
    const Tensor p0 = F32({4, 16}, &r), p1 = F32({4, 16}, &r);
    Tensor sum = p0;
    for (int64_t i = 0; i < sum.elements(); ++i) sum.As<float>()[i] += p1.As<float>()[i];
    Pair p;
    p.Both("a_partial_0", p0), p.Both("a_partial_1", p1);
    p.Put("out", sum, p0);
    EXPECT_EQ(p.Verdict(), "MISSING_CONTRIBUTION") << p.text;
    EXPECT_NE(p.text.find("a_partial_0 alone"), std::string::npos) << p.text;
  }
}

// --- 22 to 24: what a diff says --------------------------------------------------------------------------------------

TEST(Survey, Case22_QuantumTellsNoiseFromChange) {
  EXPECT_EQ(QuantumText(DType::kF32, std::fabs(-0.0002686616498976946 + 0.00026913834153674543)), "4.00 x 2^-23");
  EXPECT_EQ(QuantumText(DType::kF32, std::fabs(-4.172316494077677e-06 + 4.291525328881107e-06)), "1.00 x 2^-23");
  const std::string real = QuantumText(DType::kF32, std::fabs(-2.4419703483581543 + 2.3750085830688477));
  EXPECT_GT(std::stod(real), 1e5) << real;
  const float a = -0.0002686616498976946f, b = -0.00026913834153674543f;
  EXPECT_EQ(UlpDistance(TensorRef{DType::kF32, {1}, &a}, TensorRef{DType::kF32, {1}, &b}, 0), 16379u);
}

TEST(Survey, Case24_OneInAThousandByOneUlpIsDivergentUnlessToleranceIsAsked) {
  Random r(24);
  const Tensor a = Bf16(F32({100, 7168}, &r));
  const Tensor b = Nudged(a, 1000);
  Pair p;
  p.Put("w", a, b);
  std::vector<TensorDiff> diffs;
  DiffSums s = p.Diff(Pair::Quiet(), &diffs);
  EXPECT_EQ(s.divergent, 1);
  EXPECT_EQ(s.failed, 1);
  DiffOptions tolerant = Pair::Quiet();
  Policy policy;
  policy.kind = PolicyKind::kTolerance, policy.rtol = 1e-2, policy.has_tolerance = true;
  tolerant.policies = PolicyTable(policy);
  s = p.Diff(tolerant);
  EXPECT_EQ(s.within_tolerance, 1);
  EXPECT_EQ(s.failed, 0);
}

TEST(Survey, ToleranceNeverCoversIndices) {
  Pair p;
  p.Put("topk", I32({1, 2}, {1665, 1666}), I32({1, 2}, {1665, 1667}));
  DiffOptions tolerant = Pair::Quiet();
  Policy policy;
  policy.kind = PolicyKind::kTolerance, policy.rtol = 0.5, policy.atol = 100, policy.has_tolerance = true;
  tolerant.policies = PolicyTable(policy);
  EXPECT_EQ(p.Diff(tolerant).failed, 1);
}

TEST(Survey, UnknownSaysWhatToRecord) {
  Random r(99);
  Pair p;
  p.Put("w", F32({8, 8}, &r), F32({8, 8}, &r));
  EXPECT_EQ(p.Verdict(), "UNKNOWN") << p.text;
  EXPECT_NE(p.text.find("record"), std::string::npos);
}

TEST(Survey, Identical) {
  Random r(98);
  Pair p;
  p.Both("w", F32({8, 8}, &r));
  EXPECT_EQ(p.Verdict(), "IDENTICAL");
  EXPECT_EQ(p.code, 0);
}

TEST(Survey, SumsAddUpWithMissingTensors) {
  Random r(97);
  Pair p;
  p.Both("e", F32({1}, &r));
  p.Put("d", F32({1}, &r), F32({1}, &r));
  p.Put("t", F32({1}, &r), I32({1}, {5}));
  const DiffSums s = p.Diff(Pair::Quiet());
  EXPECT_TRUE(s.AddUp());
  EXPECT_EQ(s.identical, 1);
  EXPECT_EQ(s.divergent, 1);
  EXPECT_EQ(s.dtype_mismatch, 1);
}

}  // namespace
}  // namespace samebits
