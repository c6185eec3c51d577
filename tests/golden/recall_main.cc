// recall [PROFILE]: the recall table of models/tiny-v32/README.md, computed by this engine. A test is passed if greedy
// decoding gives exactly the code; since every step before a failure follows the code, one pass over the whole chat with
// the argmax at each place of the code decides the same. In the float32 profile the output is the README's table, digit
// for digit.
#include <algorithm>
#include <cstdio>

#include "model/score.h"
#include "store/safetensors.h"

namespace samebits {
namespace {

constexpr int kDistances[] = {50, 200, 500, 1000, 2000, 3500};

Result<double> Recall(Model* model, const Safetensors& tests, int distance) {
  const std::string d = std::to_string(distance);
  SB_ASSIGN(const TensorRef tokens, tests.Find(d + ".tokens"));
  SB_ASSIGN(const TensorRef lengths, tests.Find(d + ".lengths"));
  SB_ASSIGN(const TensorRef answers, tests.Find(d + ".answer"));
  const int64_t count = tokens.shape[0], width = tokens.shape[1], vocab = model->config().vocab_size;
  int64_t passed = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int32_t* row = tokens.As<int32_t>() + i * width;
    const int32_t length = lengths.As<int32_t>()[i], answer = answers.As<int32_t>()[i];
    ScoreOptions options;
    options.sites = {Site::kLogits};
    options.last_logits = answer + 1;
    SB_ASSIGN(const ScoredTensors scored, Score(model, {d, {row, row + length}}, options));
    const float* logits = nullptr;
    for (const auto& [name, tensor] : scored)
      if (name == "logits") logits = tensor.As<float>();
    bool all = true;
    for (int32_t j = 0; j < answer; ++j, logits += vocab)
      all = all && std::max_element(logits, logits + vocab) - logits == row[length - answer + j];
    passed += all;
  }
  return static_cast<double>(passed) / static_cast<double>(count);
}

Status Table(const std::string& profile) {
  const std::string root = SB_SOURCE_DIR;
  SB_ASSIGN(const Safetensors tests, Safetensors::Open(root + "/tests/golden/tiny-v32/recall.safetensors"));
  ThreadPool pool(ThreadPool::HardwareThreads());
  std::printf("| distance in tokens |");
  for (const int d : kDistances) std::printf(" %d |", d);
  for (const bool dense : {true, false}) {
    LoadOptions options;
    options.dense = dense;
    SB_ASSIGN(options.profile, ProfileFromName(profile));
    SB_ASSIGN(const std::unique_ptr<Model> model, Model::Load(root + "/models/tiny-v32", {&pool, BestIsa()}, options));
    std::printf("\n| %s |", dense ? "dense" : "sparse");
    for (const int d : kDistances) {
      SB_ASSIGN(const double recall, Recall(model.get(), tests, d));
      std::printf(" %.3f |", recall);
      std::fflush(stdout);
    }
  }
  std::printf("\n");
  return Ok();
}

}  // namespace
}  // namespace samebits

int main(int argc, char** argv) {
  const samebits::Status status = samebits::Table(argc > 1 ? argv[1] : "float32");
  if (!status.ok()) std::fprintf(stderr, "recall: %s\n", status.text().c_str());
  return status.ok() ? 0 : 2;
}
