// Byte-pair merging inside one piece: again and again the pair of lowest rank, leftmost first. O(n log n) in the length
// of the piece, so that two megabytes of one letter are no attack.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"

namespace samebits {

class Bpe {
 public:
  // ids of the 256 single bytes; -1: that byte has no token.
  explicit Bpe(std::vector<int32_t> byte_ids);
  // Merges come in rank order. False if the pair is there already (the first rank holds).
  bool AddMerge(int32_t left, int32_t right, int32_t merged);
  // Appends the tokens of the piece. Error: a byte that has no token.
  Status Encode(std::string_view piece, std::vector<int32_t>* ids) const;
  size_t merges() const { return merges_.size(); }

 private:
  struct Merge {
    int32_t rank, merged;
  };
  static uint64_t Key(int32_t left, int32_t right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  }
  const Merge* Find(int32_t left, int32_t right) const {
    const auto it = merges_.find(Key(left, right));
    return it == merges_.end() ? nullptr : &it->second;
  }
  void EncodeShort(std::vector<int32_t>* ids, size_t begin) const;
  void EncodeLong(std::vector<int32_t>* ids, size_t begin) const;

  struct Hash {
    size_t operator()(uint64_t k) const { return (k ^ (k >> 32)) * 0x9E3779B97F4A7C15u; }
  };
  std::vector<int32_t> byte_ids_;
  std::unordered_map<uint64_t, Merge, Hash> merges_;
};

}  // namespace samebits
