#include "base/strings.h"
#include "forensics/tensor_source.h"

namespace samebits {
namespace {

class RecordingSource : public TensorSource {
 public:
  RecordingSource(std::string path, TraceReader reader) : path_(std::move(path)), reader_(std::move(reader)) {}
  const std::string& path() const override { return path_; }
  size_t size() const override { return reader_.size(); }
  std::string_view Key(size_t i) const override { return reader_.KeyText(i); }
  Result<SourceItem> Item(size_t i) const override {
    SB_ASSIGN(TraceRecord r, reader_.Record(i));
    SourceItem item;
    item.site = r.key.site;
    item.step = r.key.step, item.layer = r.key.layer, item.rank = r.key.rank;
    item.name = Format("step %lld %s %s", static_cast<long long>(r.key.step),
                       r.key.layer < 0 ? "head" : Format("layer %d", r.key.layer).c_str(), r.key.site.c_str());
    if (r.key.rank > 0 || reader_.manifest().ranks > 1) item.name += Format(" rank %d", r.key.rank);
    if (r.key.call > 0) item.name += Format(" call %d", r.key.call);
    item.dtype = r.dtype, item.shape = r.shape;
    item.has_data = !r.file.empty();
    item.record = std::move(r);
    return item;
  }
  Result<LoadedTensor> Load(size_t i) override {
    SB_ASSIGN(const TraceRecord r, reader_.Record(i));
    SB_ASSIGN(TraceTensor t, reader_.Data(r));
    return LoadedTensor{t.tensor, t.shard};
  }
  bool SameLine(size_t i, const TensorSource& other, size_t j) const override {
    const TraceReader* o = other.recording();
    return o != nullptr && reader_.line(i) == o->line(j);
  }
  const TraceReader* recording() const override { return &reader_; }
  std::vector<std::string> notices() const override { return reader_.manifest().notices; }

 private:
  std::string path_;
  TraceReader reader_;
};

}  // namespace

Result<std::unique_ptr<TensorSource>> OpenRecordingSource(const std::string& path) {
  SB_ASSIGN(TraceReader reader, TraceReader::Open(path));
  return std::unique_ptr<TensorSource>(new RecordingSource(path, std::move(reader)));
}

}  // namespace samebits
