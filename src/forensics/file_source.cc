#include <algorithm>

#include "base/files.h"
#include "base/strings.h"
#include "forensics/tensor_source.h"
#include "store/tensor_file.h"

namespace samebits {
namespace {

constexpr int kFolderDepth = 8;

// Length of the name without its ending, 0 if it is no tensor file.
size_t StemOfTensorFile(const std::string& name) {
  for (const std::string_view tail : {".safetensors", ".npy", ".npz", ".pt", ".pth"})
    if (name.size() > tail.size() && name.compare(name.size() - tail.size(), tail.size(), tail) == 0)
      return name.size() - tail.size();
  return 0;
}

// What the file says beside its tensor goes before what its name says (SGLang's dumper: value and meta).
void ReadTags(const TensorFile& file, SourceItem* item) {
  const auto number = [&](const char* name, auto* out) {
    for (const std::string& key : {std::string("meta.") + name, std::string(name)})
      if (const auto it = file.values().find(key); it != file.values().end())
        if (const Result<int64_t> n = ParseInt(it->second, key); n.ok())
          *out = static_cast<std::decay_t<decltype(*out)>>(*n);
  };
  number("step", &item->step), number("rank", &item->rank), number("layer_id", &item->layer);
  for (const char* key : {"meta.name", "name"})
    if (const auto it = file.values().find(key); it != file.values().end()) item->site = it->second;
}

class FileSource : public TensorSource {
 public:
  explicit FileSource(std::string path) : path_(std::move(path)) {}
  const std::string& path() const override { return path_; }
  size_t size() const override { return items_.size(); }
  std::string_view Key(size_t i) const override { return items_[i].item.name; }
  Result<SourceItem> Item(size_t i) const override { return items_[i].item; }
  Result<LoadedTensor> Load(size_t i) override { return files_[items_[i].file]->Load(items_[i].entry); }

  // prefix: put before tensor names, "" for a lone file.
  Status Add(const std::string& file, const std::string& prefix) {
    SB_ASSIGN(TensorFile opened, TensorFile::Open(file));
    files_.push_back(std::make_unique<TensorFile>(std::move(opened)));
    const std::vector<TensorFile::Entry>& entries = files_.back()->entries();
    // A file of one tensor that another engine named in the file's name, not inside.
    const bool lone = entries.size() == 1 && (entries[0].name == "array" || entries[0].name == "value" ||
                                              entries[0].name == "tensor" || entries[0].name.empty());
    for (size_t e = 0; e < entries.size(); ++e) {
      Place place{files_.size() - 1, e, {}, 0};
      place.item.name = prefix.empty() ? entries[e].name : lone ? prefix : prefix + ":" + entries[e].name;
      ReadNameTags(prefix.empty() ? file + ":" + entries[e].name : place.item.name, &place.item);
      if (lone) ReadTags(*files_.back(), &place.item);
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
      } else if (const size_t stem = StemOfTensorFile(label); stem > 0) {
        SB_RETURN_IF_ERROR(Add(path, label.substr(0, stem)));
      }
    }
    return Ok();
  }
  // By step and layer; within a layer in the causal order of the sites where names tell it. A name that tells nothing
  // stays behind the tensor before it in its file.
  void Sort() {
    int rank = 0;
    for (Place& place : items_) {
      const std::string site = CanonicalSite(place.item);
      if (const auto known = SiteFromName(site))
        rank = static_cast<int>(*known);
      else if (site == "row_starts" || site == "row_lens")
        rank = static_cast<int>(Site::kIndexScores);
      else if (site == "input_ids" || site == "positions" || place.entry == 0)
        rank = -1;
      place.rank = rank;
    }
    std::stable_sort(items_.begin(), items_.end(), [](const Place& x, const Place& y) {
      return std::tie(x.item.step, x.item.layer, x.rank) < std::tie(y.item.step, y.item.layer, y.rank);
    });
  }

 private:
  struct Place {
    size_t file, entry;
    SourceItem item;
    int rank = 0;
  };
  std::string path_;
  std::vector<std::unique_ptr<TensorFile>> files_;
  std::vector<Place> items_;
};

}  // namespace

Result<std::unique_ptr<TensorSource>> OpenFileSource(const std::string& path) {
  auto source = std::make_unique<FileSource>(path);
  if (IsFolder(path)) {
    SB_RETURN_IF_ERROR(source->AddFolder(path, "", 0));
    if (source->size() == 0)
      return Error(path + ": the folder holds neither a recording nor a tensor file (.safetensors, .npy, .npz, .pt)");
  } else {
    SB_RETURN_IF_ERROR(source->Add(path, ""));
  }
  source->Sort();
  return std::unique_ptr<TensorSource>(std::move(source));
}

}  // namespace samebits
