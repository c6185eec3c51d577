// samebits inspect PATH: the tensors of a file or checkpoint.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <regex>

#include "base/progress.h"
#include "base/strings.h"
#include "cli/cli_options.h"
#include "cli/cli_verbs.h"
#include "store/checkpoint.h"
#include "store/digest.h"
#include "store/tensor_file.h"

namespace samebits {
namespace {

// std::regex recurses once per character: a name of megabytes would exhaust the stack.
constexpr size_t kFilteredName = 2000;

struct Options {
  std::string path, filter;
  bool json = false, digest = false, quiet = false;
};

struct Row {
  std::string name, file;
  TensorFile::Entry entry;
  TensorDigests digests;
};

// The files PATH means: itself, the shards of a checkpoint, or every tensor file of a folder.
Result<std::vector<std::string>> FilesOf(const std::string& path) {
  if (!IsFolder(path)) return std::vector<std::string>{path};
  const bool checkpoint =
      FileExists(JoinPath(path, "model.safetensors.index.json")) || FileExists(JoinPath(path, "model.safetensors"));
  std::vector<std::string> files;
  if (checkpoint) {
    SB_ASSIGN(const Checkpoint c, Checkpoint::Open(path));
    for (const Safetensors& shard : c.shards()) files.push_back(shard.path());
    return files;
  }
  SB_ASSIGN(const std::vector<std::string> names, ListFolder(path));
  for (const std::string& name : names)
    for (const char* ending : {".safetensors", ".npy", ".npz", ".pt", ".pth"})
      if (name.ends_with(ending)) files.push_back(JoinPath(path, name));
  if (files.empty()) return Error(path + ": holds no checkpoint and no .safetensors, .npy, .npz or .pt file");
  return files;
}

// Terminals and tables must not be broken by a name; JSON gives it exactly.
std::string Printable(const std::string& name) {
  std::string out;
  for (const char c : name) {
    const unsigned char u = static_cast<unsigned char>(c);
    out += u < 0x20 || u == 0x7f ? Format("\\x%02x", u) : std::string(1, c);
  }
  return out;
}

// Columns a terminal uses: UTF-8 continuation bytes take none.
size_t Width(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}
std::string Padded(const std::string& text, size_t width, bool right = false) {
  const std::string space(width > Width(text) ? width - Width(text) : 0, ' ');
  return right ? space + text : text + space;
}

void PrintTable(const Options& options, const std::vector<Row>& rows, bool with_file) {
  std::vector<std::vector<std::string>> table = {{"name", "dtype", "shape", "bytes", "offset"}};
  std::vector<bool> right = {false, false, false, true, true};
  if (with_file) table[0].push_back("file"), right.push_back(false);
  if (options.digest)
    for (const char* column : {"ordered digest", "order-free digest", "nan", "inf", "-0"})
      table[0].push_back(column), right.push_back(table[0].size() > 7u + (with_file ? 1 : 0));
  for (const Row& row : rows) {
    const TensorFile::Entry& e = row.entry;
    table.push_back({Printable(row.name), DTypeName(e.dtype), ShapeText(e.shape),
                     WithCommas(static_cast<int64_t>(e.bytes)), WithCommas(static_cast<int64_t>(e.offset))});
    if (with_file) table.back().push_back(row.file);
    if (options.digest)
      for (const std::string& cell :
           {row.digests.ordered.Hex(), row.digests.order_free.Hex(), WithCommas(row.digests.specials.nan),
            WithCommas(row.digests.specials.inf), WithCommas(row.digests.specials.neg_zero)})
        table.back().push_back(cell);
  }
  std::vector<size_t> widths(table[0].size(), 0);
  for (const auto& line : table)
    for (size_t c = 0; c < line.size(); ++c) widths[c] = std::max(widths[c], Width(line[c]));
  for (const auto& line : table) {
    std::string out;
    for (size_t c = 0; c < line.size(); ++c) out += (c ? "  " : "") + Padded(line[c], widths[c], right[c]);
    out.erase(out.find_last_not_of(' ') + 1);
    std::printf("%s\n", out.c_str());
  }
}

Status Inspect(const Options& options) {
  std::regex filter;
  try {
    filter = std::regex(options.filter, std::regex::optimize);
  } catch (const std::regex_error&) {
    return Error("--filter: \"" + options.filter + "\" is not a regular expression");
  }
  SB_ASSIGN(const std::vector<std::string> paths, FilesOf(options.path));
  std::vector<Row> rows;
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  std::vector<std::pair<std::string, std::string>> notes;
  int64_t read = 0;
  uint64_t bytes = 0;
  std::map<std::string, std::pair<int64_t, uint64_t>> by_dtype;
  for (const std::string& path : paths) {
    SB_ASSIGN(const TensorFile file, TensorFile::Open(path));
    const std::string name = paths.size() == 1 ? path : path.substr(path.find_last_of('/') + 1);
    nlohmann::ordered_json j;
    j["file"] = name;
    j["format"] = file.format_name();
    j["values"] = file.values();
    files.push_back(std::move(j));
    read += static_cast<int64_t>(file.entries().size());
    std::vector<size_t> chosen;
    int64_t chosen_bytes = 0;
    for (size_t i = 0; i < file.entries().size(); ++i)
      if (options.filter.empty() || std::regex_search(file.entries()[i].name.substr(0, kFilteredName), filter)) {
        chosen.push_back(i);
        chosen_bytes += static_cast<int64_t>(file.entries()[i].bytes);
      }
    Progress progress("digest of " + name, "bytes", chosen_bytes, options.digest && !options.quiet);
    for (const size_t i : chosen) {
      Row row{file.entries()[i].name, name, file.entries()[i], {}};
      if (options.digest) {
        SB_ASSIGN(const LoadedTensor loaded, file.Load(i));
        row.digests = DigestTensor(loaded.tensor, options.json);
        progress.Add(static_cast<int64_t>(row.entry.bytes));
      }
      if (!row.entry.note.empty()) notes.emplace_back(row.name, row.entry.note);
      bytes += row.entry.bytes;
      auto& [count, total] = by_dtype[DTypeName(row.entry.dtype)];
      ++count, total += row.entry.bytes;
      rows.push_back(std::move(row));
    }
  }
  if (options.json) {
    nlohmann::ordered_json out;
    out["path"] = options.path;
    out["files"] = files;
    out["tensors"] = nlohmann::ordered_json::array();
    for (const Row& row : rows) {
      nlohmann::ordered_json t;
      t["name"] = row.name;
      t["dtype"] = DTypeName(row.entry.dtype);
      t["shape"] = row.entry.shape;
      t["bytes"] = row.entry.bytes;
      t["file"] = row.file;
      t["offset"] = row.entry.offset;
      if (row.entry.crc) t["crc32"] = Format("%08x", *row.entry.crc);
      if (!row.entry.note.empty()) t["note"] = row.entry.note;
      if (options.digest) {
        t["ordered"] = row.digests.ordered.Hex();
        t["order_free"] = row.digests.order_free.Hex();
        t["element_set"] = row.digests.element_set.Hex();
        t["nan"] = row.digests.specials.nan;
        t["inf"] = row.digests.specials.inf;
        t["neg_zero"] = row.digests.specials.neg_zero;
      }
      out["tensors"].push_back(std::move(t));
    }
    out["total"] = {
        {"tensors", rows.size()}, {"bytes", bytes}, {"left_out_by_filter", read - static_cast<int64_t>(rows.size())}};
    std::printf("%s\n", out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    return Ok();
  }
  if (!rows.empty()) PrintTable(options, rows, paths.size() > 1);
  for (const auto& [name, note] : notes) std::printf("note: %s: %s\n", Printable(name).c_str(), note.c_str());
  for (const auto& file : files)
    for (const auto& [key, value] : file["values"].items())
      std::printf("value: %s%s = %s\n", paths.size() > 1 ? (file["file"].get<std::string>() + ": ").c_str() : "",
                  Printable(key).c_str(), Printable(value.get<std::string>()).c_str());
  std::string dtypes;
  for (const auto& [dtype, total] : by_dtype)
    dtypes += Format("%s%s %s in %s", dtypes.empty() ? "" : ", ", dtype.c_str(), WithCommas(total.first).c_str(),
                     HumanBytes(total.second).c_str());
  std::printf(
      "%s tensor%s, %s (%s bytes) in %zu file%s%s%s%s\n", WithCommas(static_cast<int64_t>(rows.size())).c_str(),
      rows.size() == 1 ? "" : "s", HumanBytes(bytes).c_str(), WithCommas(static_cast<int64_t>(bytes)).c_str(),
      paths.size(), paths.size() == 1 ? "" : "s", dtypes.empty() ? "" : ": ", dtypes.c_str(),
      options.filter.empty()
          ? ""
          : Format("; %s left out by --filter", WithCommas(read - static_cast<int64_t>(rows.size())).c_str()).c_str());
  return Ok();
}

}  // namespace

int Verb_inspect(int argc, char** argv) {
  Options options;
  CLI::App app("List the tensors of a file (safetensors, .npy, .npz, torch .pt) or of a checkpoint folder.",
               "samebits inspect");
  app.add_option("PATH", options.path, "a file, a checkpoint folder, or a folder of tensor files")->required();
  app.add_option("--filter", options.filter, "only tensors whose name contains a match of this regular expression");
  app.add_flag("--digest", options.digest,
               "read the data: digests with and without order, NaN, infinity and -0 counts");
  app.add_flag("--json", options.json, "one JSON document on stdout");
  app.add_flag("-q,--quiet", options.quiet, "no progress");
  app.footer(
      "Examples:\n"
      "  samebits inspect models/tiny-v32\n"
      "  samebits inspect models/tiny-v32 --filter 'layers\\.0\\.self_attn'\n"
      "  samebits inspect dump.pt --digest\n"
      "  samebits inspect weights.safetensors --json | jq .total");
  if (const int code = ParseVerb(&app, "inspect", argc, argv); code >= 0) return code;
  const Status status = Inspect(options);
  return status.ok() ? kExitSame : Trouble("inspect", status.text());
}

}  // namespace samebits
