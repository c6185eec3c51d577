// What prove compares: a digest of every row at every site of every layer, by the request's own positions. Where the row
// stood in a batch, or how often it was computed, does not show.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "store/digest.h"
#include "trace/probe.h"

namespace samebits {

// The rows of one request. Rows of other owners pass by.
class SiteDigests : public ProbeSink {
 public:
  explicit SiteDigests(int64_t owner) : owner_(owner) {}
  bool Wants(Site, int) const override { return true; }
  void OnRows(Site site, int layer, const Rows& rows) override;
  // What was seen from this position on was a rejected draft.
  void Void(int32_t first_position);

  struct Row {
    Digest128 digest;
    Digest128 set;  // of index lists: the same for the same entries in another order
    bool seen = false;
  };
  // Keyed in causal order: layer, then site. The head's sites come after the last layer, the embedding before the first.
  using Key = std::pair<int, int>;
  static Key KeyOf(Site site, int layer);
  const std::map<Key, std::vector<Row>>& rows() const { return rows_; }
  static Site SiteOf(const Key& key) { return static_cast<Site>(key.second); }
  // "layer 3 topk"; "logits" outside layers.
  static std::string NameOf(const Key& key);

 private:
  int64_t owner_;
  std::map<Key, std::vector<Row>> rows_;
};

// One place where two runs differ, and how much was compared on the way.
struct SiteComparison {
  int64_t compared = 0, only_one = 0, differing = 0;
  bool differs = false;
  SiteDigests::Key first{};  // in causal order
  int32_t first_position = 0;
  bool order_only = false;  // an index list with the same entries
  // Per key: rows compared and rows that differ, for the heat map.
  std::map<SiteDigests::Key, std::pair<int64_t, int64_t>> sites;
};
// Positions from `limit` on have other input tokens (a different token was drawn before) and are left out.
SiteComparison CompareSites(const SiteDigests& baseline, const SiteDigests& other, size_t limit = SIZE_MAX);

// Values of chosen sites, kept only when a difference is to be shown.
class SiteValues : public ProbeSink {
 public:
  SiteValues(int64_t owner, std::vector<Site> sites) : owner_(owner), sites_(std::move(sites)) {}
  bool Wants(Site site, int layer) const override;
  void OnRows(Site site, int layer, const Rows& rows) override;
  void Void(int32_t first_position);
  // key -> position -> values
  const std::map<SiteDigests::Key, std::map<int32_t, std::vector<float>>>& values() const { return values_; }

 private:
  int64_t owner_;
  std::vector<Site> sites_;
  std::map<SiteDigests::Key, std::map<int32_t, std::vector<float>>> values_;
};

}  // namespace samebits
