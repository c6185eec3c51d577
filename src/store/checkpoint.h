// A model's weights: a folder with model.safetensors.index.json and its shards, a folder with one model.safetensors, or
// one plain file. Shards are mapped; nothing is read until it is used.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "store/safetensors.h"

namespace samebits {

// The weight_map of a model.safetensors.index.json: tensor -> shard. Shard names must be plain names of files in the
// model's folder.
Result<std::map<std::string, std::string>> ParseShardIndex(std::string_view json_text, const std::string& label);

class Checkpoint {
 public:
  static Result<Checkpoint> Open(const std::string& path);

  const std::string& path() const { return path_; }
  // In the order of their names.
  const std::vector<Safetensors>& shards() const { return shards_; }
  // Every tensor name, sorted.
  std::vector<std::string> Names() const;
  bool Has(const std::string& name) const { return where_.count(name) != 0; }
  // Errors name the checkpoint and the tensor.
  Result<TensorRef> Find(const std::string& name) const;
  // Also refuses another dtype or shape.
  Result<TensorRef> Find(const std::string& name, DType dtype, const Shape& shape) const;
  // The shard that holds the tensor, which must exist.
  const Safetensors& ShardOf(const std::string& name) const { return shards_[where_.at(name)]; }
  uint64_t total_bytes() const;

 private:
  std::string path_;
  std::vector<Safetensors> shards_;
  std::map<std::string, size_t> where_;
};

}  // namespace samebits
