// A model for tests whose output is a hash of the whole context, read back through the page tables from the KV cache and
// nowhere else. A page mixed up, freed too early or written by the wrong sequence changes every later token.
#pragma once

#include <cstring>
#include <limits>

#include "model/model.h"

namespace samebits {

class HashModel : public Model {
 public:
  explicit HashModel(int max_positions = 4096) {
    config_.family = ModelFamily::kV3;
    config_.vocab_size = 64;
    config_.num_layers = 1;
    config_.kv_lora_rank = 3;
    config_.rope_dim = 1;
    config_.max_positions = max_positions;
    config_.eos_id = 63;
  }
  const ModelConfig& config() const override { return config_; }
  const Profile& profile() const override { return kFloat32Profile; }
  void SetContext(const CpuContext&) override {}
  uint64_t weight_bytes() const override { return 0; }

  // Row of position p: {state, p + 1, check}; state folds the token into all states before.
  Status Forward(const ForwardBatch& batch, KvCache& cache, std::vector<float>* logits) override {
    ++calls;
    const int64_t rows = static_cast<int64_t>(batch.tokens.size());
    std::vector<uint64_t> states(rows);
    for (int64_t r = 0; r < rows; ++r) {
      const RowOwner owner = batch.owners[r];
      if (batch.tokens[r] == poison_token)
        return Error("request " + std::to_string(owner.request) + ": NaN at layer 0");
      const PagedRows kv = cache.LatentRows(0, batch.page_tables[r]);
      uint64_t state = Mix(static_cast<uint64_t>(batch.tokens[r]) + 1);
      for (int64_t p = 0; p < owner.position; ++p) {
        uint32_t row[4];
        std::memcpy(row, kv.Row<float>(p), sizeof(row));
        if (row[2] != static_cast<uint32_t>(p + 1) || row[3] != (row[0] ^ row[1] ^ row[2]))
          return Error("a stale row was read at position " + std::to_string(p));
        state = Mix(state ^ (uint64_t{row[1]} << 32 | row[0]));
      }
      states[r] = state;
      uint32_t row[4] = {static_cast<uint32_t>(state), static_cast<uint32_t>(state >> 32),
                         static_cast<uint32_t>(owner.position + 1), 0};
      row[3] = row[0] ^ row[1] ^ row[2];
      std::memcpy(const_cast<float*>(kv.Row<float>(owner.position)), row, sizeof(row));
      if (batch.probe != nullptr && batch.probe->Wants(Site::kHidden, 0))
        batch.probe->OnRows(Site::kHidden, 0, {row, DType::kF32, 1, 4, 4, nullptr, &owner});
    }
    logits->resize(batch.logit_rows.size() * config_.vocab_size);
    for (size_t i = 0; i < batch.logit_rows.size(); ++i)
      for (int64_t v = 0; v < config_.vocab_size; ++v) {
        float& x = (*logits)[i * config_.vocab_size + v];
        // Coarse on purpose: ties between tokens.
        x = static_cast<float>(Mix(states[batch.logit_rows[i]] + v) % 24) * 0.25f;
        if (nan_logits) x = std::numeric_limits<float>::quiet_NaN();
      }
    return Ok();
  }

  int64_t calls = 0;
  int32_t poison_token = -1;  // a row with this token makes Forward fail
  bool nan_logits = false;

 private:
  static uint64_t Mix(uint64_t x) {
    x ^= x >> 31;
    x *= 0x9E3779B97F4A7C15u;
    x ^= x >> 29;
    return x * 0xBF58476D1CE4E5B9u + 1;
  }
  ModelConfig config_;
};

}  // namespace samebits
