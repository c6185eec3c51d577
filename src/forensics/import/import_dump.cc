#include "forensics/import/import_dump.h"

#include <algorithm>
#include <set>

#include "base/files.h"
#include "base/strings.h"
#include "store/safetensors.h"

namespace samebits {
namespace {

struct Where {
  int64_t step;
  size_t index;
};

// A plain file name: what a tensor of another engine is called may hold anything.
std::string Plain(const std::string& name) {
  std::string out;
  for (const char c : name) out += std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' ? c : '_';
  return out.substr(0, 120);
}

}  // namespace

Result<ImportCounts> ImportDump(TensorSource& source, const std::string& folder, TraceLevel level) {
  if (source.recording() != nullptr) return Error(source.path() + ": is a recording already");
  ImportCounts counts;
  std::set<int> ranks;
  std::vector<Where> order;
  for (size_t i = 0; i < source.size(); ++i) {
    SB_ASSIGN(const SourceItem item, source.Item(i));
    ranks.insert(item.rank);
    order.push_back({item.step, i});
  }
  if (ranks.empty()) return Error(source.path() + ": holds no tensor");
  std::stable_sort(order.begin(), order.end(), [](const Where& a, const Where& b) { return a.step < b.step; });
  int next = 0;  // ranks are numbered without gaps
  for (const int rank : ranks) {
    TraceWriterOptions options;
    options.level = level, options.rank = next++, options.ranks = static_cast<int>(ranks.size());
    if (rank != options.rank) options.about["imported_rank"] = std::to_string(rank);
    options.about["imported"] = "from another engine's dump";
    SB_ASSIGN(TraceWriter writer, TraceWriter::Create(folder, options));
    bool open = false;
    int64_t step = 0;
    for (const Where& at : order) {
      SB_ASSIGN(const SourceItem item, source.Item(at.index));
      if (item.rank != rank) continue;
      if (!item.has_data || DTypeBits(item.dtype) % 8 != 0) {
        ++counts.skipped;
        continue;
      }
      if (open && item.step != step) SB_RETURN_IF_ERROR(writer.EndStep());
      if (!open || item.step != step) SB_RETURN_IF_ERROR(writer.BeginStep(item.step));
      open = true, step = item.step;
      SB_ASSIGN(const LoadedTensor t, source.Load(at.index));
      TraceWriter::Add add;
      add.layer = item.layer == kNoLayer ? -1 : item.layer;
      add.site = CanonicalSite(item);
      const auto known = SiteFromName(add.site);
      add.kind = known ? InfoOf(*known).kind : IsInteger(item.dtype) ? SiteKind::kIndexList : SiteKind::kFloat;
      add.rows.data = t.tensor.data, add.rows.dtype = item.dtype;
      add.rows.cols = add.rows.stride = item.shape.empty() ? 1 : item.shape.back();
      add.rows.count = add.rows.cols > 0 ? t.tensor.elements() / add.rows.cols : 0;
      SB_RETURN_IF_ERROR(writer.Record(add));
      ++counts.tensors, counts.bytes += t.tensor.bytes();
    }
    if (open) SB_RETURN_IF_ERROR(writer.EndStep());
    SB_RETURN_IF_ERROR(writer.Finish());
  }
  return counts;
}

Result<ImportCounts> ExportRecording(TensorSource& source, const std::string& folder) {
  if (source.recording() == nullptr) return Error(source.path() + ": is not a recording");
  SB_RETURN_IF_ERROR(MakeFolders(folder));
  ImportCounts counts;
  std::set<std::string> written;
  for (size_t i = 0; i < source.size(); ++i) {
    SB_ASSIGN(const SourceItem item, source.Item(i));
    if (!item.has_data) {
      ++counts.skipped;
      continue;
    }
    SB_ASSIGN(const LoadedTensor t, source.Load(i));
    std::string name = "debug_" + Plain(item.site) + Format("_file_%d_tp%d", item.layer, item.rank);
    if (item.step > 0) name += Format("_step%lld", static_cast<long long>(item.step));
    if (item.record->key.call > 0) name += Format("_call%d", item.record->key.call);
    if (!written.insert(name).second) return Error(source.path() + ": two records would be written as " + name);
    const std::string path = JoinPath(folder, name + ".safetensors");
    if (FileExists(path)) return Error(path + ": exists already; name an empty folder");
    SB_RETURN_IF_ERROR(WriteSafetensors(path, {{item.site, t.tensor}}));
    ++counts.tensors, counts.bytes += t.tensor.bytes();
  }
  if (counts.tensors == 0) return Error(source.path() + ": the recording holds digests only; record with level full");
  return counts;
}

}  // namespace samebits
