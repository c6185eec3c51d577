#include "trace/trace_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/strings.h"

namespace samebits {
namespace {

// Tensor data held back for one shard before it is written; what a crash can lose of it.
constexpr uint64_t kShardBytes = uint64_t{256} << 20;

std::string Quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// A file that grows by whole write() calls: what was written survives the process.
class AppendFile {
 public:
  AppendFile() = default;
  AppendFile(const AppendFile&) = delete;
  ~AppendFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  Status Open(const std::string& path) {
    path_ = path;
    fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    return fd_ >= 0 ? Ok() : Error(path + ": cannot create: " + std::strerror(errno));
  }
  void Put(std::string_view text) { buffer_ += text; }
  void Put(const void* data, size_t n) { buffer_.append(static_cast<const char*>(data), n); }
  size_t pending() const { return buffer_.size(); }
  Status Flush() {
    size_t done = 0;
    while (done < buffer_.size()) {
      const ssize_t n = ::write(fd_, buffer_.data() + done, buffer_.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return Error(path_ + ": cannot write: " + std::strerror(errno));
      done += static_cast<size_t>(n);
    }
    buffer_.clear();
    return Ok();
  }

 private:
  int fd_ = -1;
  std::string path_, buffer_;
};

void PutDigest(AppendFile* file, const Digest128& d) {
  uint8_t bytes[16];
  d.Store(bytes);
  file->Put(bytes, sizeof bytes);
}

// A line under construction. A decode step writes hundreds, so that printf would cost more than the hashes.
class Line {
 public:
  Line& operator<<(std::string_view text) {
    text_ += text;
    return *this;
  }
  Line& operator<<(int64_t v) {
    char digits[24];
    text_.append(digits, std::to_chars(digits, digits + sizeof digits, v).ptr);
    return *this;
  }
  Line& operator<<(int v) { return *this << static_cast<int64_t>(v); }
  // A JSON string. Our sites have plain names, imported ones may not.
  Line& Quote(std::string_view text) {
    for (const char c : text)
      if (c < 0x20 || c == '"' || c == '\\' || c == 0x7f) return *this << Quoted(std::string(text));
    return *this << "\"" << text << "\"";
  }
  // Runs [request, first position, count].
  Line& OwnerRuns(const RowOwner* owners, int64_t count) {
    for (int64_t r = 0, n; r < count; r += n) {
      n = 1;
      while (r + n < count && owners[r + n].request == owners[r].request &&
             owners[r + n].position == owners[r].position + n)
        ++n;
      *this << (r ? ",[" : "[") << owners[r].request << "," << owners[r].position << "," << n << "]";
    }
    return *this;
  }
  // Runs [first, count] of lengths that grow by one, as causal rows do.
  Line& LengthRuns(const int32_t* lens, int64_t count) {
    for (int64_t r = 0, n; r < count; r += n) {
      n = 1;
      while (r + n < count && lens[r + n] == lens[r] + n) ++n;
      *this << (r ? ",[" : "[") << lens[r] << "," << n << "]";
    }
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Finite doubles as the shortest text that never loses a bit; the others as strings, which JSON numbers cannot hold.
std::string Number(double x) {
  if (x - x != 0) return x > 0 ? "\"inf\"" : "\"-inf\"";
  for (const int digits : {9, 17}) {
    const std::string text = Format("%.*g", digits, x);
    if (digits == 17 || std::stod(text) == x) return text;
  }
  return "0";
}

}  // namespace

struct TraceWriter::State {
  std::string folder;
  TraceWriterOptions options;
  AppendFile lines, rows;
  bool in_step = false, full_stopped = false, stopped = false;
  int64_t step = 0, records = 0, steps = 0, row_count = 0;
  uint64_t data_bytes = 0;
  int last_layer = -2;
  std::map<std::pair<int, std::string>, int> calls;  // of the current step
  std::vector<std::string> notices;
  // The shard being gathered.
  std::vector<SafetensorsWriter::Declared> held;
  std::string held_bytes;
  int part = 0;

  std::string Suffix() const { return options.rank == 0 ? "" : Format("_rank%d", options.rank); }
  std::string StepName() const { return Format("step_%06lld", static_cast<long long>(step)); }
  std::string ShardName() const {
    return StepName() + Format("_rank%d", options.rank) + (part ? Format("_part%d", part) : "") + ".safetensors";
  }

  Status Flush() {
    // Row digests first: a line never points at digests that are not there.
    SB_RETURN_IF_ERROR(rows.Flush());
    return lines.Flush();
  }

  void Notice(const std::string& text) {
    notices.push_back(text);
    lines.Put("{\"type\":\"notice\",\"step\":" + std::to_string(step) + ",\"text\":" + Quoted(text) + "}\n");
    if (!options.quiet) std::fprintf(stderr, "samebits: NOTICE: %s\n", text.c_str());
  }

  Status WriteManifest(bool complete) {
    nlohmann::ordered_json m;
    m["schema"] = kTraceSchema;
    m["level"] = TraceLevelName(options.level);
    m["layout"] = TraceLayoutName(options.layout);
    m["rank"] = options.rank;
    m["ranks"] = options.ranks;
    m["about"] = options.about;
    m["filter"] = options.filter;
    m["caps"] = {{"records", options.max_records}, {"bytes", options.max_bytes}};
    m["complete"] = complete;
    m["steps"] = steps;
    m["records"] = records;
    m["data_bytes"] = data_bytes;
    m["notices"] = notices;
    return WriteFile(JoinPath(folder, "manifest" + Suffix() + ".json"),
                     m.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  }

  Status WriteHeld() {
    if (held.empty()) return Ok();
    SB_ASSIGN(SafetensorsWriter writer, SafetensorsWriter::Create(JoinPath(folder, ShardName()), held));
    SB_RETURN_IF_ERROR(writer.Append(held_bytes.data(), held_bytes.size()));
    SB_RETURN_IF_ERROR(writer.Commit());
    held.clear();
    held_bytes.clear();
    ++part;
    return Ok();
  }

  // Packs the rows, with zeros behind the end of short ones.
  void Pack(const DigestRows& in, std::string* out) const {
    const size_t element = static_cast<size_t>(DTypeBits(in.dtype)) / 8;
    const size_t row_bytes = static_cast<size_t>(in.cols) * element, stride = static_cast<size_t>(in.stride) * element;
    for (int64_t r = 0; r < in.count; ++r) {
      const size_t used = (in.lens ? static_cast<size_t>(in.lens[r]) : static_cast<size_t>(in.cols)) * element;
      out->append(static_cast<const char*>(in.data) + static_cast<size_t>(r) * stride, used);
      out->append(row_bytes - used, '\0');
    }
  }

  Status Keep(const Add& add, const Shape& shape, int call, std::string* file, std::string* tensor) {
    const uint64_t bytes = static_cast<uint64_t>(add.rows.count) * static_cast<uint64_t>(add.rows.cols) *
                           static_cast<uint64_t>(DTypeBits(add.rows.dtype)) / 8;
    if (full_stopped || data_bytes + bytes > options.max_bytes) {
      if (!full_stopped)
        Notice(
            Format("the cap of %s of tensor data is reached at step %lld, layer %d, site %s: digests go on, data "
                   "stops here; raise the cap or narrow the filter",
                   HumanBytes(options.max_bytes).c_str(), static_cast<long long>(step), add.layer, add.site.c_str()));
      full_stopped = true;
      return Ok();
    }
    data_bytes += bytes;
    if (options.layout == TraceLayout::kPerTensor) {
      const std::string name = Format("debug_%s_file_%d_tp%d%s.safetensors", add.site.c_str(), add.layer, options.rank,
                                      call ? Format("_call%d", call).c_str() : "");
      *file = JoinPath(StepName(), name);
      *tensor = add.site;
      SB_RETURN_IF_ERROR(MakeFolders(JoinPath(folder, StepName())));
      std::string packed;
      Pack(add.rows, &packed);
      return WriteSafetensors(JoinPath(folder, *file), {{add.site, {add.rows.dtype, shape, packed.data()}}});
    }
    *tensor = Format("layer%d.%s%s", add.layer, add.site.c_str(), call ? Format(".call%d", call).c_str() : "");
    if (!held.empty() && held_bytes.size() + bytes > kShardBytes) SB_RETURN_IF_ERROR(WriteHeld());
    *file = ShardName();
    held.push_back({*tensor, add.rows.dtype, shape});
    Pack(add.rows, &held_bytes);
    return Ok();
  }
};

TraceWriter::TraceWriter() : state_(std::make_unique<State>()) {}
TraceWriter::TraceWriter(TraceWriter&&) noexcept = default;
TraceWriter& TraceWriter::operator=(TraceWriter&&) noexcept = default;
TraceWriter::~TraceWriter() = default;
int64_t TraceWriter::records() const { return state_->records; }
const std::vector<std::string>& TraceWriter::notices() const { return state_->notices; }

Result<TraceWriter> TraceWriter::Create(const std::string& folder, const TraceWriterOptions& options) {
  TraceWriter writer;
  State& s = *writer.state_;
  s.folder = folder;
  s.options = options;
  SB_RETURN_IF_ERROR(MakeFolders(folder));
  const std::string lines = JoinPath(folder, "sites" + s.Suffix() + ".jsonl");
  if (FileExists(lines))
    return Error(folder + ": already holds a recording (" + lines + "); name another folder or remove it");
  SB_RETURN_IF_ERROR(s.lines.Open(lines));
  SB_RETURN_IF_ERROR(s.rows.Open(JoinPath(folder, Format("rows_rank%d.bin", options.rank))));
  SB_RETURN_IF_ERROR(s.WriteManifest(false));
  return writer;
}

Status TraceWriter::BeginStep(int64_t step) {
  State& s = *state_;
  SB_CHECK(!s.in_step, "BeginStep within a step");
  s.in_step = true;
  s.step = step;
  s.calls.clear();
  s.part = 0;
  s.last_layer = -2;
  s.lines.Put(Format("{\"type\":\"step\",\"step\":%lld,\"rank\":%d}\n", static_cast<long long>(step), s.options.rank));
  return s.Flush();
}

Status TraceWriter::Record(const Add& add) {
  State& s = *state_;
  SB_CHECK(s.in_step, "Record outside a step");
  if (s.stopped) return Ok();
  if (s.records >= s.options.max_records) {
    s.stopped = true;
    s.Notice(Format(
        "the cap of %lld records is reached at step %lld, layer %d, site %s: nothing is recorded from here "
        "on; raise the cap or narrow the filter",
        static_cast<long long>(s.options.max_records), static_cast<long long>(s.step), add.layer, add.site.c_str()));
    return s.Flush();
  }
  if (DTypeBits(add.rows.dtype) % 8 != 0)
    return Error(s.folder + ": site " + add.site + " has dtype " + DTypeName(add.rows.dtype) +
                 ", which cannot be recorded");
  if (add.layer != s.last_layer && s.lines.pending() > 0) SB_RETURN_IF_ERROR(s.Flush());
  s.last_layer = add.layer;

  const DigestRows& rows = add.rows;
  const RowDigests digests = DigestOf(rows, s.options.pool);
  const Shape shape = rows.shape.empty() ? Shape{rows.count, rows.cols} : rows.shape;
  const int call = s.calls[{add.layer, add.site}]++;
  Line line;
  line << "{\"type\":\"site\",\"step\":" << s.step << ",\"layer\":" << add.layer << ",\"site\":";
  line.Quote(add.site) << ",\"call\":" << call << ",\"rank\":" << s.options.rank;
  line << ",\"dtype\":\"" << DTypeName(rows.dtype) << "\",\"shape\":[";
  for (size_t i = 0; i < shape.size(); ++i) line << (i ? "," : "") << shape[i];
  line << "]";
  if (add.owners) (line << ",\"owners\":[").OwnerRuns(add.owners, rows.count) << "]";
  if (rows.lens) (line << ",\"lens\":[").LengthRuns(rows.lens, rows.count) << "]";
  const bool sets = add.kind == SiteKind::kIndexList || add.kind == SiteKind::kExperts;
  line << ",\"ordered\":\"" << digests.ordered.Hex() << "\",\"order_free\":\"" << digests.order_free.Hex();
  line << "\",\"rows\":" << rows.count << ",\"rows_at\":" << s.row_count << (sets ? ",\"sets\":true" : "");
  line << ",\"nan\":" << digests.specials.nan << ",\"inf\":" << digests.specials.inf;
  line << ",\"neg_zero\":" << digests.specials.neg_zero;
  for (const Digest128& d : digests.rows) PutDigest(&s.rows, d);
  s.row_count += rows.count;
  if (sets) {
    for (const Digest128& d : RowElementSets(rows)) PutDigest(&s.rows, d);
    s.row_count += rows.count;
  }
  if (s.options.level != TraceLevel::kDigest) {
    const TraceStats stats = StatsOf(rows);
    line << ",\"min\":" << Number(stats.min) << ",\"max\":" << Number(stats.max);
    line << ",\"mean\":" << Number(stats.mean) << ",\"absmax\":" << Number(stats.absmax);
  }
  if (s.options.level == TraceLevel::kFull) {
    std::string file, tensor;
    SB_RETURN_IF_ERROR(s.Keep(add, shape, call, &file, &tensor));
    if (!file.empty()) (line << ",\"file\":").Quote(file) << ",\"tensor\":" << Quoted(tensor);
  }
  line << "}\n";
  s.lines.Put(line.text());
  ++s.records;
  return Ok();
}

Status TraceWriter::EndStep() {
  State& s = *state_;
  SB_CHECK(s.in_step, "EndStep outside a step");
  s.in_step = false;
  ++s.steps;
  SB_RETURN_IF_ERROR(s.WriteHeld());
  s.lines.Put(Format("{\"type\":\"end\",\"step\":%lld,\"rank\":%d}\n", static_cast<long long>(s.step), s.options.rank));
  return s.Flush();
}

Status TraceWriter::Finish() {
  if (state_->in_step) SB_RETURN_IF_ERROR(EndStep());
  return state_->WriteManifest(true);
}

}  // namespace samebits
