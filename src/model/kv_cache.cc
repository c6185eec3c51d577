#include "model/kv_cache.h"

#include <cstring>

namespace samebits {
namespace {

Mat MatOf(std::vector<uint8_t>& bytes, DType dtype, int64_t rows, int64_t cols) {
  Mat m;
  m.data = bytes.data(), m.dtype = dtype, m.rows = rows, m.cols = cols, m.stride = cols;
  return m;
}

PagedRows RowsOf(const std::vector<uint8_t>& bytes, DType dtype, int64_t cols, const int32_t* table, int32_t page) {
  PagedRows r;
  r.pool = bytes.empty() ? nullptr : bytes.data();
  r.dtype = dtype, r.row_stride = cols, r.page_table = table, r.page_size = page;
  return r;
}

// One byte whose repetition is a NaN in BF16, F32 and E4M3 alike.
constexpr int kNanByte = 0xff;

}  // namespace

KvCache::KvCache(const ModelConfig& config, const Profile& profile, int64_t pages, int32_t page_size)
    : pages_(pages),
      latent_cols_(config.kv_lora_rank + config.rope_dim),
      index_cols_(config.sparse() ? config.index_dim : 0),
      page_size_(page_size),
      latent_dtype_(profile.activation),
      index_dtype_(profile.index_fp8 ? DType::kF8E4M3 : DType::kF32),
      index_scaled_(config.sparse() && profile.index_fp8),
      layers_(config.num_layers) {
  SB_CHECK(pages >= 0 && page_size >= 1, "cache size");
  const int64_t slots = pages * page_size;
  for (Layer& layer : layers_) {
    layer.latent.resize(slots * latent_cols_ * DTypeBits(latent_dtype_) / 8);
    layer.index_keys.resize(slots * index_cols_ * DTypeBits(index_dtype_) / 8);
    layer.index_scales.resize(index_scaled_ ? slots * sizeof(float) : 0);
  }
}

uint64_t KvCache::bytes() const {
  uint64_t sum = 0;
  for (const Layer& layer : layers_) sum += layer.latent.size() + layer.index_keys.size() + layer.index_scales.size();
  return sum;
}

Mat KvCache::Latent(int layer) {
  return MatOf(layers_[layer].latent, latent_dtype_, pages_ * page_size_, latent_cols_);
}
Mat KvCache::IndexKeys(int layer) {
  return MatOf(layers_[layer].index_keys, index_dtype_, pages_ * page_size_, index_cols_);
}
Mat KvCache::IndexScales(int layer) {
  return MatOf(layers_[layer].index_scales, DType::kF32, index_scaled_ ? pages_ * page_size_ : 0, 1);
}

PagedRows KvCache::LatentRows(int layer, const int32_t* page_table) const {
  return RowsOf(layers_[layer].latent, latent_dtype_, latent_cols_, page_table, page_size_);
}
PagedRows KvCache::IndexKeyRows(int layer, const int32_t* page_table) const {
  return RowsOf(layers_[layer].index_keys, index_dtype_, index_cols_, page_table, page_size_);
}
PagedRows KvCache::IndexScaleRows(int layer, const int32_t* page_table) const {
  return RowsOf(layers_[layer].index_scales, DType::kF32, 1, page_table, page_size_);
}

void KvCache::CopyPage(int32_t from, int32_t to) {
  for (Layer& layer : layers_)
    for (std::vector<uint8_t>* pool : {&layer.latent, &layer.index_keys, &layer.index_scales}) {
      const size_t page = pool->size() / pages_;
      if (page) std::memcpy(pool->data() + to * page, pool->data() + from * page, page);
    }
}

void KvCache::PoisonPage(int32_t page) {
  for (Layer& layer : layers_)
    for (std::vector<uint8_t>* pool : {&layer.latent, &layer.index_keys, &layer.index_scales}) {
      const size_t bytes = pool->size() / pages_;
      if (bytes) std::memset(pool->data() + page * bytes, kNanByte, bytes);
    }
}

}  // namespace samebits
