// One side of a comparison: a recording, a tensor file, or a folder of tensor files. Everything is mapped and looked at
// item by item, so memory stays flat.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "store/tensor_file.h"
#include "trace/trace_reader.h"

namespace samebits {

inline constexpr int kNoLayer = -2;  // the name says nothing; -1 is "outside the layers"

struct SourceItem {
  std::string name;  // aligns the two sides and is printed
  std::string site;  // the operation: a site of trace/sites.h or the tensor's own name
  int64_t step = 0;
  int layer = kNoLayer;
  int rank = 0;
  DType dtype = DType::kU8;
  Shape shape;
  bool has_data = false;
  // Recordings only.
  std::optional<TraceRecord> record;
};

class TensorSource {
 public:
  virtual ~TensorSource() = default;
  // Errors name the path and what was expected there.
  static Result<std::unique_ptr<TensorSource>> Open(const std::string& path);

  virtual const std::string& path() const = 0;
  virtual size_t size() const = 0;
  // Equal text: the same item of the other side.
  virtual std::string_view Key(size_t i) const = 0;
  virtual Result<SourceItem> Item(size_t i) const = 0;
  virtual Result<LoadedTensor> Load(size_t i) = 0;
  // True if nothing but a look at the two index lines shows that the items are equal.
  virtual bool SameLine(size_t, const TensorSource&, size_t) const { return false; }
  // Null unless this is a recording.
  virtual const TraceReader* recording() const { return nullptr; }
  virtual std::vector<std::string> notices() const { return {}; }
};

Result<std::unique_ptr<TensorSource>> OpenRecordingSource(const std::string& path);
Result<std::unique_ptr<TensorSource>> OpenFileSource(const std::string& path);

// The site of trace/sites.h that a name of another engine stands for: "topk_result" -> "topk"; the name itself if none.
// Logits in a layer's file are the indexer's.
std::string CanonicalSite(const SourceItem& item);
// Fills step, layer, rank and site from names other tools use: "debug_x_file_7_tp1:topk_result", "layers.7.q_a",
// "step=0___rank=1___name=x___layer_id=7".
void ReadNameTags(const std::string& name, SourceItem* item);

}  // namespace samebits
