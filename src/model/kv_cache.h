// The paged KV cache of one model: per layer the latent rows and, for V3.2, the indexer's keys. Pages are handed out by
// the engine (engine/pages.h); this is only the memory. Fresh and freed pages may be poisoned: no result may depend on
// them.
#pragma once

#include <cstdint>
#include <vector>

#include "model/config.h"
#include "ops/op.h"

namespace samebits {

class KvCache {
 public:
  // page_size in tokens.
  KvCache(const ModelConfig& config, const Profile& profile, int64_t pages, int32_t page_size);
  int64_t pages() const { return pages_; }
  int32_t page_size() const { return page_size_; }
  uint64_t bytes() const;

  // Rows of [kv_lora_rank + rope] in the profile's activation dtype.
  Mat Latent(int layer);
  // Indexer keys [slots, index_dim] E4M3 (with scales) or F32, and scales [slots, 1] F32 (empty without fp8).
  Mat IndexKeys(int layer);
  Mat IndexScales(int layer);
  PagedRows LatentRows(int layer, const int32_t* page_table) const;
  PagedRows IndexKeyRows(int layer, const int32_t* page_table) const;
  PagedRows IndexScaleRows(int layer, const int32_t* page_table) const;

  // Copies one page in every layer (copy on write of a shared, partly filled page).
  void CopyPage(int32_t from, int32_t to);
  // Fills a page with NaN patterns: what a stale page may hold. Tests and prove use it.
  void PoisonPage(int32_t page);

 private:
  struct Layer {
    std::vector<uint8_t> latent, index_keys, index_scales;
  };
  int64_t pages_ = 0, latent_cols_ = 0, index_cols_ = 0;
  int32_t page_size_ = 64;
  DType latent_dtype_ = DType::kBF16, index_dtype_ = DType::kF8E4M3;
  bool index_scaled_ = false;
  std::vector<Layer> layers_;
};

}  // namespace samebits
