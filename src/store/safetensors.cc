#include "store/safetensors.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "base/strings.h"

namespace samebits {
namespace {

using nlohmann::json;

// The header as a stream of events: no tree is built, nesting costs no stack, and each fault is named where it stands.
class HeaderReader : public nlohmann::json_sax<json> {
 public:
  std::vector<SafetensorsEntry> entries;
  std::map<std::string, std::string> metadata;
  std::string fault;

  bool null() override { return Value("null"); }
  bool boolean(bool) override { return Value("a boolean"); }
  bool number_integer(int64_t) override { return Value("a negative number"); }
  bool number_float(double, const std::string&) override { return Value("a fraction"); }
  bool binary(binary_t&) override { return Value("binary data"); }
  bool number_unsigned(uint64_t n) override {
    if (place_ == Place::kShape) {
      if (n > uint64_t{1} << 62)
        return Fault("tensor " + Quoted() + ": dimension " + std::to_string(n) + " is too large");
      entry_.shape.push_back(static_cast<int64_t>(n));
      return true;
    }
    if (place_ == Place::kOffsets) {
      if (offsets_ == 2) return Fault("tensor " + Quoted() + ": data_offsets has more than two numbers");
      (offsets_++ == 0 ? entry_.begin : entry_.end) = n;
      return true;
    }
    return Value("a number");
  }
  bool string(std::string& text) override {
    if (place_ == Place::kMetadata) {
      metadata[key_] = text;
      return true;
    }
    if (place_ != Place::kEntry || key_ != "dtype") return Value("text");
    const auto dtype = DTypeFromName(text);
    if (!dtype) return Fault("tensor " + Quoted() + ": dtype \"" + text.substr(0, 40) + "\" is unknown");
    entry_.dtype = *dtype;
    return true;
  }
  bool start_object(std::size_t) override {
    if (place_ == Place::kStart) return place_ = Place::kTop, true;
    if (place_ != Place::kTop) return Value("an object");
    seen_ = 0;
    if (key_ == "__metadata__") {
      place_ = Place::kMetadata;
      return true;
    }
    place_ = Place::kEntry;
    entry_ = SafetensorsEntry();
    entry_.name = key_;
    offsets_ = 0;
    return true;
  }
  bool key(std::string& text) override {
    key_ = text;
    if (place_ == Place::kTop) {
      if (!names_.emplace(text, 0).second)
        return Fault("the header has the name \"" + text.substr(0, 200) + "\" twice");
    } else if (place_ == Place::kMetadata) {
      if (metadata.count(text)) return Fault("__metadata__ has the name \"" + text.substr(0, 200) + "\" twice");
    } else if (place_ == Place::kEntry) {
      const int bit = text == "dtype" ? 1 : text == "shape" ? 2 : text == "data_offsets" ? 4 : 0;
      if (bit == 0) return Fault("tensor " + Quoted() + ": field \"" + text.substr(0, 40) + "\" is unknown");
      if (seen_ & bit) return Fault("tensor " + Quoted() + ": field \"" + text + "\" appears twice");
      seen_ |= bit;
    }
    return true;
  }
  bool end_object() override {
    if (place_ == Place::kMetadata) return place_ = Place::kTop, true;
    if (place_ != Place::kEntry) return place_ = Place::kDone, true;
    if (seen_ != 7)
      return Fault("tensor " + Quoted() + ": " +
                   (!(seen_ & 1)   ? "dtype"
                    : !(seen_ & 2) ? "shape"
                                   : "data_offsets") +
                   " is missing");
    entries.push_back(std::move(entry_));
    place_ = Place::kTop;
    return true;
  }
  bool start_array(std::size_t) override {
    if (place_ != Place::kEntry) return Value("a list");
    if (key_ == "shape") return place_ = Place::kShape, true;
    if (key_ == "data_offsets") return place_ = Place::kOffsets, true;
    return Value("a list");
  }
  bool end_array() override {
    if (place_ == Place::kOffsets && offsets_ != 2)
      return Fault("tensor " + Quoted() + ": data_offsets must have two numbers");
    place_ = Place::kEntry;
    return true;
  }
  bool parse_error(std::size_t at, const std::string&, const nlohmann::detail::exception&) override {
    return Fault("the header is not valid JSON at byte " + std::to_string(at + 7));
  }

 private:
  enum class Place { kStart, kTop, kMetadata, kEntry, kShape, kOffsets, kDone };

  std::string Quoted() const { return "\"" + entry_.name.substr(0, 200) + "\""; }
  bool Fault(std::string text) {
    fault = std::move(text);
    return false;
  }
  bool Value(const char* what) {
    if (place_ == Place::kMetadata)
      return Fault("__metadata__ value of \"" + key_.substr(0, 200) + "\" is " + what + ", only text is allowed");
    if (place_ == Place::kEntry || place_ == Place::kShape || place_ == Place::kOffsets)
      return Fault("tensor " + Quoted() + ": " + key_ + " holds " + what);
    if (place_ == Place::kTop) return Fault("the entry \"" + key_.substr(0, 200) + "\" is " + what + ", not an object");
    return Fault(std::string("the header is ") + what + ", not an object");
  }

  Place place_ = Place::kStart;
  std::string key_;
  SafetensorsEntry entry_;
  int seen_ = 0, offsets_ = 0;
  std::unordered_map<std::string, int> names_;
};

Status CheckCoverage(const std::vector<SafetensorsEntry>& sorted, uint64_t data_bytes) {
  uint64_t at = 0;
  for (const SafetensorsEntry& e : sorted) {
    const std::string where = "tensor \"" + e.name + "\"";
    if (e.begin > e.end)
      return Error(where + ": data begins at " + std::to_string(e.begin) + ", after its end " + std::to_string(e.end));
    if (e.end > data_bytes)
      return Error(where + ": data ends at byte " + std::to_string(e.end) + " of a data section of " +
                   std::to_string(data_bytes) + " bytes; the file is cut short or its header is wrong");
    const Result<uint64_t> bytes = TensorBytes(e.dtype, e.shape);
    if (!bytes.ok()) return bytes.status().At(where);
    if (*bytes != e.end - e.begin)
      return Error(where + ": " + DTypeName(e.dtype) + " " + ShapeText(e.shape) + " takes " + std::to_string(*bytes) +
                   " bytes but data_offsets give it " + std::to_string(e.end - e.begin));
    if (e.begin < at) return Error(where + ": shares bytes with the tensor before it");
    if (e.begin > at)
      return Error(where + ": bytes " + std::to_string(at) + " to " + std::to_string(e.begin) +
                   " before it belong to no tensor");
    at = e.end;
  }
  if (at != data_bytes)
    return Error(std::to_string(data_bytes - at) + " bytes after the last tensor belong to no tensor");
  return Ok();
}

}  // namespace

Result<uint64_t> TensorBytes(DType dtype, const Shape& shape) {
  uint64_t bits = static_cast<uint64_t>(DTypeBits(dtype));
  // In order, as every reader multiplies: [2^40, 2^40, 0] is refused although it is empty.
  for (const int64_t d : shape) {
    if (d < 0) return Error("shape " + ShapeText(shape) + " has a negative dimension");
    if (__builtin_mul_overflow(bits, static_cast<uint64_t>(d), &bits) || bits > uint64_t{1} << 62)
      return Error("shape " + ShapeText(shape) + " has more elements than can exist");
  }
  if (bits % 8 != 0)
    return Error(std::string(DTypeName(dtype)) + " " + ShapeText(shape) + " does not fill whole bytes");
  return bits / 8;
}

Result<Safetensors> Safetensors::Open(const std::string& path) {
  SB_ASSIGN(MappedFile file, MappedFile::Open(path));
  SB_ASSIGN(Safetensors s, Parse(file.data(), file.size(), path));
  s.file_ = std::move(file);
  return s;
}

Result<Safetensors> Safetensors::Parse(const uint8_t* data, uint64_t size, const std::string& label) {
  const auto refuse = [&](const std::string& why) { return Error(label + ": not a valid safetensors file: " + why); };
  if (size < 8) return refuse("it has " + std::to_string(size) + " bytes, the header length alone takes 8");
  uint64_t header = 0;
  for (int i = 0; i < 8; ++i) header |= static_cast<uint64_t>(data[i]) << (8 * i);
  if (header > kMaxSafetensorsHeader)
    return refuse("its header claims " + std::to_string(header) + " bytes, more than the 100,000,000 allowed");
  if (header > size - 8)
    return refuse("its header claims " + std::to_string(header) + " bytes but only " + std::to_string(size - 8) +
                  " follow");
  const char* text = reinterpret_cast<const char*>(data) + 8;
  if (header < 2 || text[0] != '{') return refuse("the header does not start with {");

  // The JSON parser takes NUL for the end of the text; the format does not.
  if (std::memchr(text, 0, header) != nullptr) return refuse("the header has a NUL byte");
  HeaderReader reader;
  if (!json::sax_parse(text, text + header, &reader)) return refuse(reader.fault);
  Safetensors s;
  s.path_ = label;
  s.data_offset_ = 8 + header;
  s.data_bytes_ = size - s.data_offset_;
  s.data_ = data + s.data_offset_;
  s.entries_ = std::move(reader.entries);
  s.metadata_ = std::move(reader.metadata);
  std::sort(s.entries_.begin(), s.entries_.end(), [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  const Status covered = CheckCoverage(s.entries_, s.data_bytes_);
  if (!covered.ok()) return refuse(covered.text());
  for (size_t i = 0; i < s.entries_.size(); ++i) s.index_.emplace(s.entries_[i].name, i);
  return s;
}

TensorRef Safetensors::At(size_t i) const {
  const SafetensorsEntry& e = entries_[i];
  return TensorRef{e.dtype, e.shape, data_ + e.begin};
}

Result<TensorRef> Safetensors::Find(const std::string& name) const {
  const auto it = index_.find(name);
  if (it == index_.end()) return Error(path_ + ": has no tensor \"" + name + "\"");
  return At(it->second);
}

Result<SafetensorsWriter> SafetensorsWriter::Create(const std::string& path, const std::vector<Declared>& tensors,
                                                    const std::map<std::string, std::string>& metadata) {
  const auto quoted = [](const std::string& s) { return json(s).dump(); };
  SafetensorsWriter writer;
  writer.path_ = path;
  std::string header = "{";
  std::unordered_map<std::string, int> names;
  try {
    if (!metadata.empty()) {
      header += "\"__metadata__\":{";
      for (const auto& [key, value] : metadata)
        header += (header.back() == '{' ? "" : ",") + quoted(key) + ":" + quoted(value);
      header += "}";
    }
    for (const Declared& t : tensors) {
      if (!names.emplace(t.name, 0).second || t.name == "__metadata__")
        return Error(path + ": tensor name \"" + t.name + "\" cannot be written (used twice or reserved)");
      const Result<uint64_t> bytes = TensorBytes(t.dtype, t.shape);
      if (!bytes.ok()) return bytes.status().At(path + ": tensor \"" + t.name + "\"");
      header +=
          (header.size() > 1 ? "," : "") + quoted(t.name) + ":{\"dtype\":\"" + DTypeName(t.dtype) + "\",\"shape\":[";
      for (size_t i = 0; i < t.shape.size(); ++i) header += (i ? "," : "") + std::to_string(t.shape[i]);
      header +=
          "],\"data_offsets\":[" + std::to_string(writer.left_) + "," + std::to_string(writer.left_ + *bytes) + "]}";
      writer.left_ += *bytes;
    }
  } catch (const json::exception&) {
    return Error(path + ": a tensor name or metadata text is not valid UTF-8");
  }
  header += "}";
  header.append((64 - (header.size() + 8) % 64) % 64, ' ');
  if (header.size() > kMaxSafetensorsHeader)
    return Error(path + ": the header would be " + std::to_string(header.size()) +
                 " bytes; write fewer tensors into one file");
  SB_ASSIGN(writer.file_, AtomicFile::Create(path));
  uint8_t length[8];
  for (int i = 0; i < 8; ++i) length[i] = static_cast<uint8_t>(header.size() >> (8 * i));
  SB_RETURN_IF_ERROR(writer.file_.Write(length, 8));
  SB_RETURN_IF_ERROR(writer.file_.Write(header));
  return writer;
}

Status SafetensorsWriter::Append(const void* data, uint64_t bytes) {
  SB_CHECK(bytes <= left_, path_ + ": more bytes than declared");
  left_ -= bytes;
  return bytes == 0 ? Ok() : file_.Write(data, bytes);
}

Status SafetensorsWriter::Commit() {
  SB_CHECK(left_ == 0, path_ + ": fewer bytes than declared");
  return file_.Commit();
}

Status WriteSafetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                        const std::map<std::string, std::string>& metadata) {
  std::vector<SafetensorsWriter::Declared> declared;
  for (const NamedTensor& t : tensors) declared.push_back({t.name, t.tensor.dtype, t.tensor.shape});
  SB_ASSIGN(SafetensorsWriter writer, SafetensorsWriter::Create(path, declared, metadata));
  for (const NamedTensor& t : tensors) SB_RETURN_IF_ERROR(writer.Append(t.tensor.data, t.tensor.bytes()));
  return writer.Commit();
}

}  // namespace samebits
