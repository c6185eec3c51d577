#include "prove/site_digests.h"

#include <algorithm>

#include "base/strings.h"

namespace samebits {
namespace {
constexpr int kAfterLayers = 1 << 20;
}

SiteDigests::Key SiteDigests::KeyOf(Site site, int layer) {
  if (layer < 0) layer = site == Site::kEmbed ? -1 : kAfterLayers;
  return {layer, static_cast<int>(site)};
}

std::string SiteDigests::NameOf(const Key& key) {
  const std::string name = InfoOf(SiteOf(key)).name;
  return key.first < 0 || key.first == kAfterLayers ? name : Format("layer %d %s", key.first, name.c_str());
}

void SiteDigests::OnRows(Site site, int layer, const Rows& rows) {
  std::vector<Row>* kept = nullptr;
  std::vector<int32_t> sorted;
  const int64_t size = DTypeBits(rows.dtype) / 8;
  for (int64_t r = 0; r < rows.count; ++r) {
    if (rows.owners[r].request != owner_) continue;
    if (kept == nullptr) kept = &rows_[KeyOf(site, layer)];
    const size_t position = static_cast<size_t>(rows.owners[r].position);
    if (kept->size() <= position) kept->resize(position + 1);
    const uint8_t* data = static_cast<const uint8_t*>(rows.data) + r * rows.stride * size;
    const int64_t cols = rows.lens ? rows.lens[r] : rows.cols;
    Row& row = (*kept)[position];
    row.digest = HashBytes(data, static_cast<size_t>(cols * size));
    row.seen = true;
    if (InfoOf(site).kind == SiteKind::kIndexList && rows.dtype == DType::kI32) {
      const int32_t* list = reinterpret_cast<const int32_t*>(data);
      sorted.assign(list, list + cols);
      std::sort(sorted.begin(), sorted.end());
      row.set = HashBytes(sorted.data(), sorted.size() * sizeof(int32_t));
    }
  }
}

void SiteDigests::Void(int32_t first_position) {
  for (auto& [key, rows] : rows_)
    for (size_t p = static_cast<size_t>(first_position); p < rows.size(); ++p) rows[p].seen = false;
}

SiteComparison CompareSites(const SiteDigests& baseline, const SiteDigests& other, size_t limit) {
  SiteComparison result;
  static const std::vector<SiteDigests::Row> kNone;
  auto keys = baseline.rows();
  keys.insert(other.rows().begin(), other.rows().end());
  for (const auto& [key, unused] : keys) {
    const auto a_at = baseline.rows().find(key), b_at = other.rows().find(key);
    const auto& a = a_at == baseline.rows().end() ? kNone : a_at->second;
    const auto& b = b_at == other.rows().end() ? kNone : b_at->second;
    auto& [compared, differing] = result.sites[key];
    for (size_t p = 0; p < std::min(limit, std::max(a.size(), b.size())); ++p) {
      const bool in_a = p < a.size() && a[p].seen, in_b = p < b.size() && b[p].seen;
      if (in_a != in_b) ++result.only_one;
      if (!in_a || !in_b) continue;
      ++compared;
      if (a[p].digest == b[p].digest) continue;
      ++differing;
      if (result.differs) continue;
      result.differs = true;
      result.first = key;
      result.first_position = static_cast<int32_t>(p);
      result.order_only = InfoOf(SiteDigests::SiteOf(key)).kind == SiteKind::kIndexList && a[p].set == b[p].set;
    }
    result.compared += compared;
    result.differing += differing;
  }
  return result;
}

bool SiteValues::Wants(Site site, int) const { return std::find(sites_.begin(), sites_.end(), site) != sites_.end(); }

void SiteValues::OnRows(Site site, int layer, const Rows& rows) {
  for (int64_t r = 0; r < rows.count; ++r) {
    if (rows.owners[r].request != owner_) continue;
    const TensorRef row{rows.dtype,
                        {rows.cols},
                        static_cast<const uint8_t*>(rows.data) + r * rows.stride * (DTypeBits(rows.dtype) / 8)};
    std::vector<float>& to = values_[SiteDigests::KeyOf(site, layer)][rows.owners[r].position];
    to.clear();
    for (int64_t i = 0; i < (rows.lens ? rows.lens[r] : rows.cols); ++i)
      to.push_back(static_cast<float>(ElementAsDouble(row, i)));
  }
}

void SiteValues::Void(int32_t first_position) {
  for (auto& [key, rows] : values_) rows.erase(rows.lower_bound(first_position), rows.end());
}

}  // namespace samebits
