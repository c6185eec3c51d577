#include "model/kv_cache.h"

#include <gtest/gtest.h>

#include <cstring>

namespace samebits {
namespace {

ModelConfig Small(ModelFamily family) {
  ModelConfig c;
  c.family = family;
  c.num_layers = 2;
  c.kv_lora_rank = 6, c.rope_dim = 2;
  if (c.sparse()) c.index_dim = 4;
  return c;
}

TEST(KvCache, SizesFollowProfileAndFamily) {
  const int64_t slots = 3 * 8;
  EXPECT_EQ(KvCache(Small(ModelFamily::kV32), kDeepseekProfile, 3, 8).bytes(), 2u * slots * (8 * 2 + 4 + 4));
  EXPECT_EQ(KvCache(Small(ModelFamily::kV32), kFloat32Profile, 3, 8).bytes(), 2u * slots * (8 * 4 + 4 * 4));
  EXPECT_EQ(KvCache(Small(ModelFamily::kV3), kDeepseekProfile, 3, 8).bytes(), 2u * slots * 8 * 2);
  EXPECT_EQ(KvCache(Small(ModelFamily::kV3), kDeepseekProfile, 0, 8).bytes(), 0u);
}

TEST(KvCache, RowsGoThroughThePageTable) {
  KvCache cache(Small(ModelFamily::kV32), kFloat32Profile, 3, 8);
  const int32_t table[] = {2, 0};
  const PagedRows rows = cache.LatentRows(1, table);
  const float* pool = static_cast<const float*>(cache.Latent(1).data);
  EXPECT_EQ(rows.Row<float>(0), pool + 16 * 8);
  EXPECT_EQ(rows.Row<float>(9), pool + 1 * 8);
  EXPECT_EQ(cache.IndexScaleRows(1, table).pool, nullptr);
}

TEST(KvCache, CopyAndPoisonTouchOnePage) {
  KvCache cache(Small(ModelFamily::kV32), kDeepseekProfile, 3, 8);
  for (int layer = 0; layer < 2; ++layer)
    for (const Mat& m : {cache.Latent(layer), cache.IndexKeys(layer), cache.IndexScales(layer)})
      for (int64_t i = 0; i < m.rows * m.cols * DTypeBits(m.dtype) / 8; ++i)
        static_cast<uint8_t*>(m.data)[i] = static_cast<uint8_t>(i * 7 % 113);
  cache.CopyPage(0, 2);
  cache.PoisonPage(1);
  for (int layer = 0; layer < 2; ++layer) {
    const BF16* latent = static_cast<const BF16*>(cache.Latent(layer).data);
    EXPECT_EQ(std::memcmp(latent, latent + 2 * 64, 128), 0);
    for (int i = 0; i < 64; ++i) {
      EXPECT_FALSE(IsNan(ToF32(latent[i])));
      EXPECT_TRUE(IsNan(ToF32(latent[64 + i])));
    }
    const E4M3* keys = static_cast<const E4M3*>(cache.IndexKeys(layer).data);
    const float* scales = static_cast<const float*>(cache.IndexScales(layer).data);
    EXPECT_EQ(std::memcmp(keys, keys + 64, 32), 0);
    EXPECT_EQ(std::memcmp(scales, scales + 16, 32), 0);
    for (int i = 0; i < 32; ++i) EXPECT_TRUE(IsNan(ToF32(keys[32 + i])));
    for (int i = 0; i < 8; ++i) EXPECT_TRUE(IsNan(scales[8 + i]));
  }
}

}  // namespace
}  // namespace samebits
