#include "store/checkpoint.h"

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/strings.h"

namespace samebits {
namespace {

using nlohmann::json;

constexpr const char* kIndexName = "model.safetensors.index.json";
constexpr const char* kSingleName = "model.safetensors";

bool IsPlainName(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\\') == std::string::npos && name.find('\0') == std::string::npos;
}

// Reads {"metadata": anything, "weight_map": {text: text}, ...} as events, so that nesting costs no stack.
class IndexReader : public nlohmann::json_sax<json> {
 public:
  std::map<std::string, std::string> map;
  std::string fault;
  bool saw_map = false;

  bool null() override { return Other(); }
  bool boolean(bool) override { return Other(); }
  bool number_integer(int64_t) override { return Other(); }
  bool number_unsigned(uint64_t) override { return Other(); }
  bool number_float(double, const std::string&) override { return Other(); }
  bool binary(binary_t&) override { return Other(); }
  bool string(std::string& text) override {
    if (!InMap()) return Other();
    if (!IsPlainName(text))
      return Fault("tensor \"" + key_ + "\" is placed in \"" + text.substr(0, 200) +
                   "\", which is not a plain file name in the model's folder");
    if (!map.emplace(key_, text).second) return Fault("weight_map has the tensor \"" + key_ + "\" twice");
    return true;
  }
  bool start_object(std::size_t) override {
    if (depth_ == 1 && key_ == "weight_map") {
      if (saw_map) return Fault("weight_map appears twice");
      saw_map = in_map_ = true;
    } else if (InMap()) {
      return Other();
    }
    ++depth_;
    return true;
  }
  bool end_object() override {
    if (InMap()) in_map_ = false;
    return --depth_, true;
  }
  bool start_array(std::size_t) override {
    if (!Other()) return false;
    return ++depth_, true;
  }
  bool end_array() override { return --depth_, true; }
  bool key(std::string& text) override { return key_ = text.substr(0, 4096), true; }
  bool parse_error(std::size_t at, const std::string&, const nlohmann::detail::exception&) override {
    return Fault("it is not valid JSON at byte " + std::to_string(at));
  }

 private:
  bool InMap() const { return in_map_ && depth_ == 2; }
  bool Other() {
    if (InMap()) return Fault("the shard name of \"" + key_ + "\" is not text");
    if (depth_ == 0) return Fault("it is not a JSON object");
    if (depth_ == 1 && key_ == "weight_map") return Fault("weight_map is not an object");
    return true;
  }
  bool Fault(std::string text) {
    fault = std::move(text);
    return false;
  }
  int depth_ = 0;
  bool in_map_ = false;
  std::string key_;
};

}  // namespace

Result<std::map<std::string, std::string>> ParseShardIndex(std::string_view text, const std::string& label) {
  if (text.find('\0') != std::string_view::npos) return Error(label + ": it is not valid JSON: it has a NUL byte");
  IndexReader reader;
  if (!json::sax_parse(text.begin(), text.end(), &reader)) return Error(label + ": " + reader.fault);
  if (!reader.saw_map) return Error(label + ": has no weight_map");
  return std::move(reader.map);
}

Result<Checkpoint> Checkpoint::Open(const std::string& path) {
  Checkpoint c;
  c.path_ = path;
  std::vector<std::string> files;
  std::map<std::string, std::string> map;
  if (!IsFolder(path)) {
    files.push_back(path);
  } else if (const std::string index = JoinPath(path, kIndexName); FileExists(index)) {
    SB_ASSIGN(const std::string text, ReadFile(index, kMaxSafetensorsHeader * 4));
    SB_ASSIGN(map, ParseShardIndex(text, index));
    std::set<std::string> names;
    for (const auto& [tensor, shard] : map) names.insert(shard);
    std::vector<std::string> missing;
    for (const std::string& name : names) {
      files.push_back(JoinPath(path, name));
      if (!FileExists(files.back())) missing.push_back(name);
    }
    if (!missing.empty()) {
      const size_t count = missing.size();
      if (count > 8) missing.resize(8), missing.push_back("...");
      return Error(path + ": " + std::to_string(count) + " of " + std::to_string(files.size()) +
                   " shards are missing: " + Join(missing, ", ") + "; download them again");
    }
  } else if (const std::string single = JoinPath(path, kSingleName); FileExists(single)) {
    files.push_back(single);
  } else {
    return Error(path + ": has neither " + kIndexName + " nor " + kSingleName + "; name the folder of a checkpoint");
  }
  for (const std::string& file : files) {
    SB_ASSIGN(Safetensors shard, Safetensors::Open(file));
    for (const SafetensorsEntry& e : shard.entries()) {
      const auto [it, fresh] = c.where_.emplace(e.name, c.shards_.size());
      if (!fresh)
        return Error(path + ": tensor \"" + e.name + "\" is in two shards, " + c.shards_[it->second].path() + " and " +
                     file);
    }
    c.shards_.push_back(std::move(shard));
  }
  for (const auto& [tensor, shard] : map) {
    const auto it = c.where_.find(tensor);
    if (it == c.where_.end() || c.shards_[it->second].path() != JoinPath(path, shard))
      return Error(path + ": the index places tensor \"" + tensor + "\" in " + shard + ", which does not have it");
  }
  return c;
}

std::vector<std::string> Checkpoint::Names() const {
  std::vector<std::string> names;
  for (const auto& [name, shard] : where_) names.push_back(name);
  return names;
}

Result<TensorRef> Checkpoint::Find(const std::string& name) const {
  const auto it = where_.find(name);
  if (it == where_.end()) return Error(path_ + ": has no tensor \"" + name + "\"");
  return shards_[it->second].Find(name);
}

Result<TensorRef> Checkpoint::Find(const std::string& name, DType dtype, const Shape& shape) const {
  SB_ASSIGN(TensorRef t, Find(name));
  if (t.dtype != dtype || t.shape != shape)
    return Error(path_ + ": tensor \"" + name + "\" is " + DTypeName(t.dtype) + " " + ShapeText(t.shape) +
                 "; the model needs " + DTypeName(dtype) + " " + ShapeText(shape));
  return t;
}

uint64_t Checkpoint::total_bytes() const {
  uint64_t bytes = 0;
  for (const Safetensors& s : shards_)
    for (const SafetensorsEntry& e : s.entries()) bytes += e.end - e.begin;
  return bytes;
}

}  // namespace samebits
