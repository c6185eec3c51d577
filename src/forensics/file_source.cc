#include <algorithm>

#include "base/files.h"
#include "forensics/tensor_source.h"
#include "store/safetensors.h"

namespace samebits {
namespace {

constexpr int kFolderDepth = 8;

bool EndsWith(const std::string& s, std::string_view tail) {
  return s.size() >= tail.size() && s.compare(s.size() - tail.size(), tail.size(), tail) == 0;
}

class FileSource : public TensorSource {
 public:
  explicit FileSource(std::string path) : path_(std::move(path)) {}
  const std::string& path() const override { return path_; }
  size_t size() const override { return items_.size(); }
  std::string_view Key(size_t i) const override { return items_[i].item.name; }
  Result<SourceItem> Item(size_t i) const override { return items_[i].item; }
  Result<LoadedTensor> Load(size_t i) override {
    const Place& place = items_[i];
    return LoadedTensor{files_[place.file], files_[place.file]->At(place.entry)};
  }

  // prefix: put before tensor names, "" for a lone file.
  Status Add(const std::string& file, const std::string& prefix) {
    SB_ASSIGN(Safetensors opened, Safetensors::Open(file));
    files_.push_back(std::make_shared<const Safetensors>(std::move(opened)));
    const std::vector<SafetensorsEntry>& entries = files_.back()->entries();
    for (size_t e = 0; e < entries.size(); ++e) {
      Place place{files_.size() - 1, e, {}};
      place.item.name = prefix.empty() ? entries[e].name : prefix + ":" + entries[e].name;
      ReadNameTags(prefix.empty() ? file + ":" + entries[e].name : place.item.name, &place.item);
      place.item.dtype = entries[e].dtype, place.item.shape = entries[e].shape;
      place.item.has_data = true;
      items_.push_back(std::move(place));
    }
    return Ok();
  }
  Status AddFolder(const std::string& folder, const std::string& prefix, int depth) {
    SB_ASSIGN(const std::vector<std::string> names, ListFolder(folder));
    for (const std::string& name : names) {
      const std::string path = JoinPath(folder, name), label = prefix.empty() ? name : prefix + "/" + name;
      if (IsFolder(path)) {
        if (depth >= kFolderDepth) return Error(path + ": folders are nested too deeply");
        SB_RETURN_IF_ERROR(AddFolder(path, label, depth + 1));
      } else if (EndsWith(name, ".safetensors")) {
        SB_RETURN_IF_ERROR(Add(path, label.substr(0, label.size() - std::string(".safetensors").size())));
      }
    }
    return Ok();
  }
  void SortByLayer() {
    std::stable_sort(items_.begin(), items_.end(), [](const Place& x, const Place& y) {
      return std::tie(x.item.step, x.item.layer) < std::tie(y.item.step, y.item.layer);
    });
  }

 private:
  struct Place {
    size_t file, entry;
    SourceItem item;
  };
  std::string path_;
  std::vector<std::shared_ptr<const Safetensors>> files_;
  std::vector<Place> items_;
};

}  // namespace

Result<std::unique_ptr<TensorSource>> OpenFileSource(const std::string& path) {
  auto source = std::make_unique<FileSource>(path);
  if (IsFolder(path)) {
    SB_RETURN_IF_ERROR(source->AddFolder(path, "", 0));
    if (source->size() == 0) return Error(path + ": the folder holds neither a recording nor a .safetensors file");
    source->SortByLayer();
  } else {
    SB_RETURN_IF_ERROR(source->Add(path, ""));
  }
  return std::unique_ptr<TensorSource>(std::move(source));
}

}  // namespace samebits
