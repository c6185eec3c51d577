#include "forensics/tensor_source.h"

#include <cctype>

#include "base/files.h"

namespace samebits {
namespace {

// The number after the last `tag` that is followed by digits; false if there is none.
bool NumberAfter(const std::string& text, std::string_view tag, int64_t* out) {
  for (size_t at = text.rfind(tag); at != std::string::npos;
       at = at == 0 ? std::string::npos : text.rfind(tag, at - 1)) {
    size_t i = at + tag.size();
    int64_t value = 0;
    const size_t first = i;
    while (i < text.size() && std::isdigit(static_cast<unsigned char>(text[i])) && i - first < 12)
      value = value * 10 + (text[i++] - '0');
    if (i > first) return *out = value, true;
  }
  return false;
}

struct Alias {
  const char *theirs, *ours;
};
constexpr Alias kAliases[] = {
    {"topk_result", "topk"},   {"topk_indices", "topk"}, {"pagetable_1", "topk"},  {"indexer_logits", "index_scores"},
    {"attn_out", "mqa"},       {"attn_output", "mqa"},   {"attention_out", "mqa"}, {"hidden_states", "hidden"},
    {"layer_output", "hidden"}};

}  // namespace

std::string CanonicalSite(const SourceItem& item) {
  const std::string& site = item.site;
  if (site == "logits" && !item.record && item.layer != -1) return "index_scores";
  for (const Alias& alias : kAliases)
    if (site == alias.theirs) return alias.ours;
  return site;
}

void ReadNameTags(const std::string& name, SourceItem* item) {
  int64_t n = 0;
  for (const char* tag : {"layer_id=", "layers.", "layer_", "_file_", "layer"})
    if (NumberAfter(name, tag, &n)) {
      item->layer = static_cast<int>(n);
      break;
    }
  for (const char* tag : {"rank=", "_tp", "rank_", "rank"})
    if (NumberAfter(name, tag, &n)) {
      item->rank = static_cast<int>(n);
      break;
    }
  for (const char* tag : {"step=", "forward_pass_id=", "step_", "step"})
    if (NumberAfter(name, tag, &n)) {
      item->step = n;
      break;
    }
  item->site = name;
  if (const size_t at = name.find("name="); at != std::string::npos) {
    const size_t end = name.find("___", at);
    item->site = name.substr(at + 5, end == std::string::npos ? std::string::npos : end - at - 5);
  } else if (const size_t colon = name.rfind(':'); colon != std::string::npos) {
    item->site = name.substr(colon + 1);
  }
  if (const size_t dot = item->site.rfind('.');
      dot != std::string::npos && dot + 1 < item->site.size() && item->site.find("layers.") != std::string::npos)
    item->site = item->site.substr(dot + 1);
}

Result<std::unique_ptr<TensorSource>> TensorSource::Open(const std::string& path) {
  if (IsTraceFolder(path)) return OpenRecordingSource(path);
  return OpenFileSource(path);
}

}  // namespace samebits
