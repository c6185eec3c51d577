// The float32 profile against what Hugging Face computes (README.md beside this file), within its stated tolerances.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "model/score.h"
#include "store/safetensors.h"

namespace samebits {
namespace {

const std::string kRoot = SB_SOURCE_DIR;

ThreadPool* Pool() {
  static ThreadPool pool(ThreadPool::HardwareThreads());
  return &pool;
}

std::unique_ptr<Model> Open(const std::string& folder, const Profile* profile) {
  LoadOptions options;
  options.profile = profile;
  Result<std::unique_ptr<Model>> model = Model::Load(folder, {Pool(), BestIsa()}, options);
  SB_CHECK(model.ok(), model.status().text());
  return std::move(*model);
}

std::vector<ScorePrompt> Prompts(const std::string& set) {
  const std::string path = kRoot + "/tests/golden/" + set + "/prompt.json";
  const Result<std::string> text = ReadFile(path);
  SB_CHECK(text.ok(), text.status().text());
  Result<std::vector<ScorePrompt>> prompts = ParseScorePrompts(*text, path);
  SB_CHECK(prompts.ok(), prompts.status().text());
  return std::move(*prompts);
}

std::string CheckpointOf(const std::string& set) {
  return kRoot + (set == "tiny-v32" ? "/models/tiny-v32" : "/tests/golden/" + set);
}

struct Tolerance {
  float logits, hidden, weights, margin;
};
constexpr Tolerance kShort = {3e-4f, 2e-4f, 2e-5f, 1e-4f}, kLong = {2e-3f, 1e-3f, 2e-4f, 1e-3f};

// One prompt's reference beside what we computed.
class Comparison {
 public:
  Comparison(const Safetensors& reference, const std::string& prompt, const ScoredTensors& mine, const Tolerance& tol)
      : reference_(reference), prompt_(prompt), mine_(mine), tol_(tol), positions_(Ints("positions")) {}

  void Run(int layers) {
    const int64_t rows = static_cast<int64_t>(positions_.size());
    judged_ = rows;
    for (int layer = 0; layer < layers; ++layer) {
      const std::string n = "." + std::to_string(layer);
      CompareSets("topk" + n, "topk_margin" + n);
      CompareSets("experts" + n, "router_margin" + n);
      CompareFloats("expert_weights" + n, tol_.weights, false);
      CompareFloats("hidden" + n, tol_.hidden, true);
    }
    CompareFloats("final", tol_.hidden, true);
    CompareLogits();
    // v32-sparse p200 has one margin of 6e-8 (an ulp of the score) at position 55 of layer 1, so a quarter must do.
    EXPECT_GE(judged_, (rows + 3) / 4) << prompt_ << ": close calls left too little to compare";
  }
  float worst_logit() const { return worst_logit_; }

 private:
  std::optional<TensorRef> Reference(const std::string& what) const {
    const std::string name = prompt_ + "." + what;
    if (!reference_.Has(name)) return std::nullopt;
    return *reference_.Find(name);
  }
  std::vector<int32_t> Ints(const std::string& what) const {
    const std::optional<TensorRef> t = Reference(what);
    SB_CHECK(t.has_value(), what);
    const int32_t* p = t->As<int32_t>();
    return {p, p + t->elements()};
  }
  const Tensor& Mine(const std::string& what) const {
    for (const auto& [name, tensor] : mine_)
      if (name == what) return tensor;
    SB_CHECK(false, what + " was not scored");
    return mine_[0].second;
  }

  // Rows equal as lists; ours may be cut or padded with -1. A row that differs must be a close call (a margin of exactly
  // 0 is a tie, which the index rule decides); it and everything causally after it is judged no further.
  void CompareSets(const std::string& what, const std::string& margin_name) {
    const std::optional<TensorRef> want = Reference(what), margin = Reference(margin_name);
    if (!want) return;
    const Tensor& got = Mine(what);
    const int64_t k = want->shape[1], mine_k = got.shape()[1];
    for (int64_t r = 0; r < judged_; ++r) {
      const int32_t* a = want->As<int32_t>() + r * k;
      const int32_t* b = got.As<int32_t>() + positions_[r] * mine_k;
      bool same = true;
      for (int64_t i = 0; i < std::max(k, mine_k); ++i) same = same && (i < k ? a[i] : -1) == (i < mine_k ? b[i] : -1);
      if (same) continue;
      const float m = margin->As<float>()[r];
      EXPECT_TRUE(m > 0.0f && m < tol_.margin)
          << prompt_ << " " << what << " position " << positions_[r] << " differs with margin " << m;
      judged_ = r;
    }
  }
  void CompareFloats(const std::string& what, float tolerance, bool over_rms) {
    const std::optional<TensorRef> want = Reference(what);
    if (!want) return;
    const Tensor& got = Mine(what);
    const int64_t cols = want->shape[1];
    const float* a = want->As<float>();
    double squares = 0;
    for (int64_t i = 0; i < want->elements(); ++i) squares += static_cast<double>(a[i]) * a[i];
    const double rms = over_rms ? std::sqrt(squares / static_cast<double>(want->elements())) : 1.0;
    double worst = 0;
    for (int64_t r = 0; r < judged_; ++r)
      for (int64_t c = 0; c < cols; ++c) {
        const double d = std::fabs(a[r * cols + c] - got.As<float>()[positions_[r] * cols + c]) / rms;
        worst = d <= worst ? worst : d;  // a NaN becomes the worst
      }
    EXPECT_LE(worst, tolerance) << prompt_ << " " << what;
  }
  void CompareLogits() {
    const std::optional<TensorRef> want = Reference("logits");
    const std::vector<int32_t> at = Ints("logit_positions");
    const Tensor& got = Mine("logits");
    const int64_t vocab = want->shape[1];
    for (size_t r = 0; r < at.size(); ++r) {
      if (judged_ < static_cast<int64_t>(positions_.size()) && at[r] >= positions_[judged_]) continue;
      for (int64_t c = 0; c < vocab; ++c) {
        const float d =
            std::fabs(want->As<float>()[static_cast<int64_t>(r) * vocab + c] - got.As<float>()[at[r] * vocab + c]);
        worst_logit_ = d <= worst_logit_ ? worst_logit_ : d;
      }
    }
    EXPECT_LE(worst_logit_, tol_.logits) << prompt_;
  }

  const Safetensors& reference_;
  const std::string prompt_;
  const ScoredTensors& mine_;
  const Tolerance tol_;
  const std::vector<int32_t> positions_;
  int64_t judged_ = 0;
  float worst_logit_ = 0;
};

class Golden : public testing::TestWithParam<const char*> {};

TEST_P(Golden, Float32ProfileWithinTolerances) {
  const std::string set = GetParam();
  const std::unique_ptr<Model> model = Open(CheckpointOf(set), &kFloat32Profile);
  const Result<Safetensors> reference = Safetensors::Open(kRoot + "/tests/golden/" + set + "/reference.safetensors");
  ASSERT_TRUE(reference.ok()) << reference.status().text();
  for (const ScorePrompt& prompt : Prompts(set)) {
    const Result<ScoredTensors> mine = Score(model.get(), prompt, {});
    ASSERT_TRUE(mine.ok()) << mine.status().text();
    Comparison c(*reference, prompt.name, *mine, prompt.name == "long" ? kLong : kShort);
    c.Run(model->config().num_layers);
    std::printf("%s %s: logits within %.1e\n", set.c_str(), prompt.name.c_str(), c.worst_logit());
  }
}

// Negative control: the comparison must notice a rule that changes little.
TEST(Golden, NoticesABf16Router) {
  const std::unique_ptr<Model> model = Open(CheckpointOf("tiny-v32"), &kFloat32Profile);
  BreakRules broken;
  broken.router_bf16 = true;
  ScoreOptions options;
  options.broken = &broken;
  const ScorePrompt prompt = Prompts("tiny-v32")[1];
  const Result<ScoredTensors> right = Score(model.get(), prompt, {}), wrong = Score(model.get(), prompt, options);
  ASSERT_TRUE(right.ok() && wrong.ok());
  float worst = 0;
  for (size_t i = 0; i < right->size(); ++i)
    if ((*right)[i].first == "logits")
      for (int64_t e = 0; e < (*right)[i].second.elements(); ++e)
        worst = std::max(worst, std::fabs((*right)[i].second.As<float>()[e] - (*wrong)[i].second.As<float>()[e]));
  EXPECT_GT(worst, kShort.logits);
}

INSTANTIATE_TEST_SUITE_P(Sets, Golden, testing::Values("tiny-v32", "v3-yarn", "v32-sparse"), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

// Greedy continuation, all tokens of the prompt in one step, then one at a time.
std::vector<int32_t> Greedy(Model* model, const std::vector<int32_t>& prompt, int steps) {
  std::vector<int32_t> ids = prompt;
  const int64_t pages = (static_cast<int64_t>(ids.size()) + steps) / 64 + 1;
  KvCache cache(model->config(), model->profile(), pages, 64);
  std::vector<int32_t> table(pages);
  for (int64_t i = 0; i < pages; ++i) table[i] = static_cast<int32_t>(pages - 1 - i);
  size_t done = 0;
  std::vector<float> logits;
  for (int s = 0; s < steps; ++s) {
    std::vector<RowOwner> owners;
    for (size_t p = done; p < ids.size(); ++p) owners.push_back({0, static_cast<int32_t>(p)});
    const std::vector<const int32_t*> tables(owners.size(), table.data());
    const int32_t last = static_cast<int32_t>(owners.size()) - 1;
    ForwardBatch batch;
    batch.tokens = {ids.data() + done, owners.size()};
    batch.owners = owners;
    batch.page_tables = tables;
    batch.logit_rows = {&last, 1};
    const Status status = model->Forward(batch, cache, &logits);
    SB_CHECK(status.ok(), status.text());
    done = ids.size();
    ids.push_back(static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
  }
  return {ids.begin() + static_cast<int64_t>(prompt.size()), ids.end()};
}

// Token for token up to the first step whose margin is under the logit tolerance.
TEST(Golden, GreedyContinuations) {
  const std::unique_ptr<Model> model = Open(CheckpointOf("tiny-v32"), &kFloat32Profile);
  const Result<std::string> text = ReadFile(kRoot + "/tests/golden/tiny-v32/greedy.json");
  ASSERT_TRUE(text.ok());
  const nlohmann::json golden = nlohmann::json::parse(*text);
  int compared = 0;
  for (const auto& c : golden["continuations"]) {
    const std::vector<int32_t> prompt = c["prompt_ids"], want = c["output_ids"];
    const std::vector<float> margins = c["margins"];
    const std::vector<int32_t> got = Greedy(model.get(), prompt, static_cast<int>(want.size()));
    for (size_t i = 0; i < want.size() && margins[i] > kShort.logits; ++i, ++compared)
      ASSERT_EQ(got[i], want[i]) << c["prompt"] << " step " << i << ", margin " << margins[i];
  }
  EXPECT_GT(compared, 800);  // of 960: few steps are close
}

// The deepseek profile rounds activations to bf16 and index keys to fp8, so it is near the float32 reference, not on
// it. Measured: rms of the logit difference over the rms of the logits 0.002 to 0.017, 98 to 100 % of the argmaxes
// equal; three times that is the bound.
TEST(Golden, DeepseekProfileStaysClose) {
  const std::unique_ptr<Model> model = Open(CheckpointOf("tiny-v32"), &kDeepseekProfile);
  const Result<Safetensors> reference = Safetensors::Open(kRoot + "/tests/golden/tiny-v32/reference.safetensors");
  ASSERT_TRUE(reference.ok());
  for (const ScorePrompt& prompt : Prompts("tiny-v32")) {
    const Result<ScoredTensors> mine = Score(model.get(), prompt, {});
    ASSERT_TRUE(mine.ok()) << mine.status().text();
    const Tensor* got = nullptr;
    for (const auto& [name, tensor] : *mine)
      if (name == "logits") got = &tensor;
    const TensorRef want = *reference->Find(prompt.name + ".logits");
    const TensorRef at = *reference->Find(prompt.name + ".logit_positions");
    const int64_t vocab = want.shape[1];
    double difference = 0, size = 0;
    int64_t agree = 0;
    for (int64_t r = 0; r < at.elements(); ++r) {
      const float* a = want.As<float>() + r * vocab;
      const float* b = got->As<float>() + at.As<int32_t>()[r] * vocab;
      for (int64_t c = 0; c < vocab; ++c) {
        difference += (static_cast<double>(a[c]) - b[c]) * (static_cast<double>(a[c]) - b[c]);
        size += static_cast<double>(a[c]) * a[c];
      }
      agree += std::max_element(a, a + vocab) - a == std::max_element(b, b + vocab) - b;
    }
    const double relative = std::sqrt(difference / size);
    const double agreement = static_cast<double>(agree) / static_cast<double>(at.elements());
    std::printf("deepseek %s: logits %.4f of their rms, argmax agrees in %.3f\n", prompt.name.c_str(), relative,
                agreement);
    EXPECT_LT(relative, 0.05) << prompt.name;
    EXPECT_GT(relative, 1e-5) << prompt.name << ": nothing was rounded?";
    EXPECT_GE(agreement, 0.95) << prompt.name;
  }
}

}  // namespace
}  // namespace samebits
