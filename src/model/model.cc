#include "model/model.h"

#include "base/files.h"
#include "base/strings.h"
#include "model/forward.h"

namespace samebits {
namespace {

// Finds where a step's first number that is not sound appeared: the step runs again with this sink (it writes the same rows).
class UnsoundLocator : public ProbeSink {
 public:
  bool Wants(Site site, int) const override { return !found_ && InfoOf(site).kind == SiteKind::kFloat; }
  void OnRows(Site site, int layer, const Rows& rows) override {
    ConstMat m;
    m.data = rows.data, m.dtype = rows.dtype, m.rows = rows.count, m.cols = rows.cols, m.stride = rows.stride;
    for (int64_t r = 0; r < rows.count && !found_; ++r)
      for (int64_t c = 0; c < (rows.lens ? rows.lens[r] : rows.cols); ++c) {
        const float x = MatAt(m, r, c);
        if (IsSound(x)) continue;
        found_ = true, site_ = site, layer_ = layer, owner_ = rows.owners[r], value_ = x;
        break;
      }
  }
  bool found() const { return found_; }
  int64_t request() const { return owner_.request; }
  std::string Sentence() const {
    std::string where = std::string("site ") + InfoOf(site_).name;
    if (layer_ >= 0) where += Format(" of layer %d", layer_);
    const char* what = IsNan(value_) ? "a NaN" : IsNan(Sub(value_, value_)) ? "an infinity" : "a number beyond 2^50";
    return Format("request %lld: %s appeared at position %d, %s; the request cannot go on",
                  static_cast<long long>(owner_.request), what, owner_.position, where.c_str());
  }

 private:
  bool found_ = false;
  float value_ = 0;
  Site site_ = Site::kEmbed;
  int layer_ = -1;
  RowOwner owner_;
};

class DeepseekModel : public Model {
 public:
  DeepseekModel(const ModelConfig& config, const LoadOptions& options, ModelWeights weights, const CpuContext& context)
      : config_(config),
        profile_(*options.profile),
        dense_(options.dense),
        weights_(std::move(weights)),
        rope_(config.rope, config.max_positions),
        context_(context),
        pass_(config_, profile_, dense_, weights_, rope_, context_, &buffers_) {}

  const ModelConfig& config() const override { return config_; }
  const Profile& profile() const override { return profile_; }
  void SetContext(const CpuContext& context) override { context_ = context; }
  uint64_t weight_bytes() const override { return weights_.bytes; }

  Status Forward(const ForwardBatch& batch, KvCache& cache, std::vector<float>* logits) override {
    SB_RETURN_IF_ERROR(Check(batch));
    if (batch.tokens.empty()) return logits->clear(), Ok();
    int64_t bad_row = -1;
    SB_RETURN_IF_ERROR(pass_.Run(batch, &cache, logits, &bad_row));
    if (bad_row < 0) return Ok();
    UnsoundLocator locator;
    ForwardBatch again = batch;
    again.probe = &locator;
    again.index_lists_shuffled = nullptr;
    SB_RETURN_IF_ERROR(pass_.Run(again, &cache, logits, &bad_row));
    SB_CHECK(locator.found(), "an unsound row that no site shows");
    if (batch.failed_request) *batch.failed_request = locator.request();
    return Error(locator.Sentence());
  }

 private:
  Status Check(const ForwardBatch& batch) const {
    SB_CHECK(batch.owners.size() == batch.tokens.size() && batch.page_tables.size() == batch.tokens.size(),
             "one owner and one page table per row");
    for (size_t r = 0; r < batch.tokens.size(); ++r) {
      const RowOwner& owner = batch.owners[r];
      const auto fail = [&](const std::string& what) {
        if (batch.failed_request) *batch.failed_request = owner.request;
        return Error(Format("request %lld: ", static_cast<long long>(owner.request)) + what);
      };
      if (batch.tokens[r] < 0 || batch.tokens[r] >= config_.vocab_size)
        return fail(Format("token id %d at position %d is outside the vocabulary of %lld", batch.tokens[r],
                           owner.position, static_cast<long long>(config_.vocab_size)));
      if (owner.position < 0 || owner.position >= config_.max_positions)
        return fail(
            Format("position %d is outside the model's context of %d tokens", owner.position, config_.max_positions));
    }
    for (size_t i = 0; i < batch.logit_rows.size(); ++i)
      SB_CHECK(batch.logit_rows[i] >= 0 && batch.logit_rows[i] < static_cast<int64_t>(batch.tokens.size()) &&
                   (i == 0 || batch.logit_rows[i] > batch.logit_rows[i - 1]),
               "logit rows ascend and lie in the batch");
    return Ok();
  }

  const ModelConfig config_;
  const Profile& profile_;
  const bool dense_;
  const ModelWeights weights_;
  const RopeTable rope_;
  CpuContext context_;
  StepBuffers buffers_;
  ForwardPass pass_;
};

}  // namespace

Result<std::unique_ptr<Model>> Model::Load(const std::string& folder, const CpuContext& context,
                                           const LoadOptions& options) {
  const std::string path = JoinPath(folder, "config.json");
  SB_ASSIGN(const std::string text, ReadFile(path, 1 << 24));
  SB_ASSIGN(const ModelConfig config, ParseModelConfig(text, path));
  SB_ASSIGN(ModelWeights weights,
            LoadWeights(folder, config, *options.profile, options.dense, options.show_progress, context));
  return std::unique_ptr<Model>(std::make_unique<DeepseekModel>(config, options, std::move(weights), context));
}

std::string ContractId(const Profile& profile, const BreakRules* broken) {
  return broken && broken->any() ? "broken" : std::string("portable-1") + profile.contract_suffix;
}

}  // namespace samebits
