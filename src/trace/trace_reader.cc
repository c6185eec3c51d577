#include "trace/trace_reader.h"

#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/strings.h"

namespace samebits {
namespace {

using nlohmann::json;

constexpr std::string_view kSiteStart = "{\"type\":\"site\",";
// Open shards kept; maps cost no memory, their parsed headers do.
constexpr size_t kOpenShards = 32;
constexpr int64_t kMostRows = int64_t{1} << 40;

std::map<std::string, std::string> TextMap(const json& parent, const char* name) {
  std::map<std::string, std::string> out;
  if (const auto it = parent.find(name); it != parent.end() && it->is_object())
    for (const auto& [key, value] : it->items())
      if (value.is_string()) out[key] = value.get<std::string>();
  return out;
}

Result<TraceManifest> ReadManifest(const std::string& path) {
  SB_ASSIGN(const std::string text, ReadFile(path, 64 << 20));
  const json m = json::parse(text, nullptr, false);
  if (!m.is_object()) return Error(path + ": is not valid JSON");
  if (!m.contains("schema") || m["schema"] != kTraceSchema)
    return Error(path + ": the schema is not " + kTraceSchema + "; this program cannot read the recording");
  TraceManifest out;
  const auto level = TraceLevelFromName(m.value("level", json()).is_string() ? m["level"].get<std::string>() : "");
  const auto layout = TraceLayoutFromName(m.value("layout", json()).is_string() ? m["layout"].get<std::string>() : "");
  if (!level || !layout) return Error(path + ": level or layout is unknown");
  out.level = *level, out.layout = *layout;
  if (const auto it = m.find("ranks"); it != m.end() && it->is_number_integer()) out.ranks = it->get<int>();
  out.complete = m.contains("complete") && m["complete"] == true;
  out.about = TextMap(m, "about");
  out.filter = TextMap(m, "filter");
  if (const auto it = m.find("notices"); it != m.end() && it->is_array())
    for (const json& notice : *it)
      if (notice.is_string()) out.notices.push_back(notice.get<std::string>());
  return out;
}

// Nesting of our own lines is three deep; deeper text is not parsed, so that it cannot exhaust the stack.
bool TooDeep(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (++depth > 8) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

double Number(const json& v) {
  if (!v.is_string()) return v.get<double>();
  const double inf = std::numeric_limits<double>::infinity();
  return v == "-inf" ? -inf : inf;
}

bool IsPlainRelative(const std::string& path) {
  if (path.empty() || path[0] == '/' || path.find('\0') != std::string::npos) return false;
  for (const std::string& part : Split(path, '/'))
    if (part.empty() || part == "." || part == "..") return false;
  return true;
}

}  // namespace

bool IsTraceFolder(const std::string& folder) {
  return FileExists(JoinPath(folder, "manifest.json")) && FileExists(JoinPath(folder, "sites.jsonl"));
}

Result<TraceReader> TraceReader::Open(const std::string& folder) {
  TraceReader reader;
  reader.folder_ = folder;
  if (!IsFolder(folder)) return Error(folder + ": is not a folder; name the folder of a recording");
  const std::string manifest = JoinPath(folder, "manifest.json");
  if (!FileExists(manifest)) return Error(folder + ": has no manifest.json, so it is not a recording");
  SB_ASSIGN(reader.manifest_, ReadManifest(manifest));
  TraceManifest& m = reader.manifest_;
  if (m.ranks < 1 || m.ranks > 1 << 20) return Error(manifest + ": the number of ranks is out of range");
  for (int rank = 0; rank < m.ranks; ++rank) {
    const std::string name = rank == 0 ? "sites.jsonl" : Format("sites_rank%d.jsonl", rank);
    const std::string path = JoinPath(folder, name);
    if (!FileExists(path)) {
      if (rank == 0) return Error(path + ": is missing");
      m.notices.push_back(Format("rank %d of %d is missing", rank, m.ranks));
      m.complete = false;
      continue;
    }
    if (rank > 0) {
      SB_ASSIGN(const TraceManifest other, ReadManifest(JoinPath(folder, Format("manifest_rank%d.json", rank))));
      m.complete = m.complete && other.complete;
      m.notices.insert(m.notices.end(), other.notices.begin(), other.notices.end());
    }
    SB_ASSIGN(MappedFile lines, MappedFile::Open(path));
    const std::string_view text(reinterpret_cast<const char*>(lines.data()), lines.size());
    for (size_t at = 0; at < text.size();) {
      const size_t end = text.find('\n', at);
      if (end == std::string_view::npos) {
        m.notices.push_back(name + ": the last line is cut off and was dropped");
        m.complete = false;
        break;
      }
      const std::string_view line = text.substr(at, end - at);
      if (line.substr(0, kSiteStart.size()) == kSiteStart) reader.lines_.push_back(line);
      at = end + 1;
    }
    reader.line_files_.push_back(std::move(lines));
    const std::string rows = JoinPath(folder, Format("rows_rank%d.bin", rank));
    if (FileExists(rows)) {
      SB_ASSIGN(reader.row_files_[rank], MappedFile::Open(rows));
    }
  }
  if (!m.complete) m.notices.push_back("the recording is incomplete: it was cut off before it was finished");
  return reader;
}

std::string_view TraceReader::KeyText(size_t i) const {
  const std::string_view line = lines_[i];
  const size_t end = line.find(",\"dtype\":");
  return line.substr(0, end == std::string_view::npos ? line.size() : end);
}

Result<TraceRecord> TraceReader::Record(size_t i) const {
  const std::string_view text = lines_[i];
  const auto bad = [&](const char* why) {
    return Error(Format("%s: record %zu of the recording is damaged (%s)", folder_.c_str(), i, why));
  };
  if (TooDeep(text)) return bad("too deeply nested");
  const json line = json::parse(text.begin(), text.end(), nullptr, false);
  if (!line.is_object()) return bad("not valid JSON");
  TraceRecord r;
  try {
    r.key.step = line.at("step").get<int64_t>();
    r.key.layer = line.at("layer").get<int>();
    r.key.site = line.at("site").get<std::string>();
    r.key.call = line.at("call").get<int>();
    r.key.rank = line.at("rank").get<int>();
    const auto dtype = DTypeFromName(line.at("dtype").get<std::string>());
    if (!dtype) return bad("unknown dtype");
    r.dtype = *dtype;
    for (const char* list : {"shape", "owners", "lens"})
      if (line.contains(list) && !line[list].is_array()) return bad("a list is not a list");
    for (const json& d : line.at("shape")) r.shape.push_back(d.get<int64_t>());
    if (!TensorBytes(r.dtype, r.shape).ok()) return bad("impossible shape");
    r.rows = line.at("rows").get<int64_t>();
    r.rows_at = line.at("rows_at").get<int64_t>();
    if (r.rows < 0 || r.rows_at < 0 || r.rows > kMostRows || r.rows_at > kMostRows) return bad("impossible row count");
    if (r.rows == 0 ? r.shape.empty() || ElementCount(r.shape) != 0 : ElementCount(r.shape) % r.rows != 0)
      return bad("the shape does not divide into its rows");
    r.has_sets = line.contains("sets");
    int64_t owned = 0;
    if (const auto it = line.find("owners"); it != line.end()) {
      for (const json& run : *it) {
        r.owners.push_back({run.at(0).get<int64_t>(), run.at(1).get<int32_t>(), run.at(2).get<int64_t>()});
        if (r.owners.back().count < 0 || r.owners.back().count > r.rows - owned) return bad("more owners than rows");
        owned += r.owners.back().count;
      }
      if (owned != r.rows) return bad("fewer owners than rows");
    }
    if (const auto it = line.find("lens"); it != line.end()) {
      for (const json& run : *it) {
        const int64_t first = run.at(0).get<int32_t>(), count = run.at(1).get<int64_t>();
        if (first < 0 || count < 0 || count > r.rows - static_cast<int64_t>(r.lens.size()) || r.shape.size() != 2 ||
            first + count - 1 > r.shape[1])
          return bad("impossible row lengths");
        for (int64_t k = 0; k < count; ++k) r.lens.push_back(static_cast<int32_t>(first + k));
      }
      if (static_cast<int64_t>(r.lens.size()) != r.rows) return bad("fewer lengths than rows");
    }
    if (!Digest128::FromHex(line.at("ordered").get<std::string>(), &r.ordered) ||
        !Digest128::FromHex(line.at("order_free").get<std::string>(), &r.order_free))
      return bad("a digest is not 32 hex digits");
    r.specials = {line.at("nan").get<int64_t>(), line.at("inf").get<int64_t>(), line.at("neg_zero").get<int64_t>()};
    if (line.contains("min"))
      r.stats =
          TraceStats{Number(line["min"]), Number(line.at("max")), Number(line.at("mean")), Number(line.at("absmax"))};
    if (line.contains("file")) {
      r.file = line["file"].get<std::string>();
      r.tensor = line.at("tensor").get<std::string>();
    }
  } catch (const json::exception&) {
    return bad("a field is missing or has the wrong type");
  }
  return r;
}

bool TraceReader::DigestAt(int rank, int64_t index, Digest128* out) const {
  const auto it = row_files_.find(rank);
  if (it == row_files_.end() || index < 0 || static_cast<uint64_t>(index) >= it->second.size() / 16) return false;
  const uint8_t* p = it->second.data() + index * 16;
  *out = Digest128();
  for (int b = 0; b < 8; ++b) {
    out->lo |= static_cast<uint64_t>(p[b]) << (8 * b);
    out->hi |= static_cast<uint64_t>(p[8 + b]) << (8 * b);
  }
  return true;
}

bool TraceReader::RowDigest(const TraceRecord& r, int64_t row, Digest128* out) const {
  return row >= 0 && row < r.rows && DigestAt(r.key.rank, r.rows_at + row, out);
}

bool TraceReader::RowSet(const TraceRecord& r, int64_t row, Digest128* out) const {
  return r.has_sets && row >= 0 && row < r.rows && DigestAt(r.key.rank, r.rows_at + r.rows + row, out);
}

Result<TraceTensor> TraceReader::Data(const TraceRecord& r) {
  const std::string where = Format("%s: step %lld, layer %d, site %s", folder_.c_str(),
                                   static_cast<long long>(r.key.step), r.key.layer, r.key.site.c_str());
  if (r.file.empty()) return Error(where + ": no data was kept; record again with level full");
  if (!IsPlainRelative(r.file))
    return Error(where + ": the file name \"" + r.file + "\" leaves the recording's folder");
  std::shared_ptr<const Safetensors>& shard = shards_[r.file];
  if (!shard) {
    Result<Safetensors> opened = Safetensors::Open(JoinPath(folder_, r.file));
    if (!opened.ok()) {
      shards_.erase(r.file);
      return opened.status();
    }
    if (shards_.size() > kOpenShards) shards_.clear();
    shards_[r.file] = std::make_shared<const Safetensors>(std::move(*opened));
  }
  TraceTensor out;
  out.shard = shards_[r.file];
  SB_ASSIGN(out.tensor, out.shard->Find(r.tensor));
  if (out.tensor.dtype != r.dtype || out.tensor.shape != r.shape)
    return Error(where + ": " + r.file + " holds " + DTypeName(out.tensor.dtype) + " " + ShapeText(out.tensor.shape) +
                 " but the record says " + DTypeName(r.dtype) + " " + ShapeText(r.shape));
  return out;
}

}  // namespace samebits
