#include "store/tensor_file.h"

#include <cstring>

#include "store/npy.h"
#include "store/pt.h"
#include "store/safetensors.h"

namespace samebits {

struct TensorFile::Source {
  std::vector<NpyHeader> npy;  // one per entry
  std::vector<PtTensor> pt;    // one per entry
  ZipView zip;
  std::vector<ZipView::Member> members;  // of an .npz, one per entry
};

namespace {

constexpr const char* kFormatNames[] = {"safetensors", "npy", "npz", "pt"};

TensorFile::Entry EntryOf(const std::string& name, const NpyHeader& h) {
  TensorFile::Entry e;
  e.name = name;
  e.dtype = h.dtype;
  e.shape = h.shape;
  e.bytes = *TensorBytes(h.dtype, h.shape);
  e.offset = h.data_offset;
  e.mapped = !h.fortran && !h.big_endian;
  e.note = h.note;
  return e;
}

}  // namespace

const char* TensorFile::format_name() const { return kFormatNames[static_cast<int>(format_)]; }

Result<TensorFile> TensorFile::Open(const std::string& path) {
  SB_ASSIGN(MappedFile file, MappedFile::Open(path));
  SB_ASSIGN(TensorFile t, Parse(file.data(), file.size(), path));
  t.file_ = std::move(file);
  return t;
}

Result<TensorFile> TensorFile::Parse(const uint8_t* data, uint64_t size, const std::string& label) {
  TensorFile t;
  t.data_ = data;
  t.size_ = size;
  t.path_ = label;
  const auto starts = [&](const char* magic, size_t n) { return size >= n && std::memcmp(data, magic, n) == 0; };
  if (size == 0) return Error(label + ": is empty");
  Status status;
  if (starts("\x93NUMPY", 6)) {
    status = t.ReadNpy();
  } else if (starts("PK\x03\x04", 4) || starts("PK\x05\x06", 4)) {
    SB_ASSIGN(const ZipView zip, ZipView::Parse(data, size, label));
    bool torch = false;
    for (const ZipView::Member& m : zip.members()) torch = torch || m.name.ends_with("/data.pkl");
    status = torch ? t.ReadPt() : t.ReadNpz();
  } else if (size > 8 && data[8] == '{') {
    status = t.ReadSafetensors();
  } else if (data[0] == 0x80) {
    status = t.ReadPt();
  } else {
    return Error(label + ": is none of safetensors, .npy, .npz and torch .pt (by its first bytes)");
  }
  if (!status.ok()) return status;
  for (size_t i = 0; i < t.entries_.size(); ++i) t.index_.emplace(t.entries_[i].name, i);
  return t;
}

Status TensorFile::ReadSafetensors() {
  format_ = Format::kSafetensors;
  SB_ASSIGN(const Safetensors s, Safetensors::Parse(data_, size_, path_));
  for (const SafetensorsEntry& e : s.entries()) {
    Entry entry;
    entry.name = e.name;
    entry.dtype = e.dtype;
    entry.shape = e.shape;
    entry.bytes = e.end - e.begin;
    entry.offset = s.data_offset() + e.begin;
    entries_.push_back(std::move(entry));
  }
  values_ = s.metadata();
  return Ok();
}

Status TensorFile::ReadNpy() {
  format_ = Format::kNpy;
  SB_ASSIGN(const NpyHeader header, ParseNpy(data_, size_, path_));
  entries_.push_back(EntryOf("array", header));
  auto source = std::make_shared<Source>();
  source->npy.push_back(header);
  source_ = source;
  return Ok();
}

Status TensorFile::ReadNpz() {
  format_ = Format::kNpz;
  auto source = std::make_shared<Source>();
  SB_ASSIGN(source->zip, ZipView::Parse(data_, size_, path_));
  for (const ZipView::Member& m : source->zip.members()) {
    const std::string label = path_ + ": " + m.name;
    if (!m.name.ends_with(".npy")) return Error(label + ": is not a .npy; neither NumPy nor torch wrote this archive");
    NpyHeader header;
    if (m.deflated) {
      SB_ASSIGN(const std::string bytes, source->zip.Read(m));
      SB_ASSIGN(header, ParseNpy(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), label));
    } else {
      SB_ASSIGN(header, ParseNpy(source->zip.Packed(m), m.size, label));
    }
    Entry e = EntryOf(m.name.substr(0, m.name.size() - 4), header);
    e.offset = m.deflated ? m.offset : m.offset + header.data_offset;
    e.mapped = e.mapped && !m.deflated;
    e.crc = m.crc;
    entries_.push_back(std::move(e));
    source->npy.push_back(header);
    source->members.push_back(m);
  }
  source_ = source;
  return Ok();
}

Status TensorFile::ReadPt() {
  format_ = Format::kPt;
  SB_ASSIGN(PtFile pt, ParsePt(data_, size_, path_));
  for (const PtTensor& t : pt.tensors) {
    Entry e;
    e.name = t.name;
    e.dtype = t.dtype;
    e.shape = t.shape;
    e.bytes = *TensorBytes(t.dtype, t.shape);
    e.offset = t.offset;
    e.mapped = t.contiguous;
    if (t.has_crc) e.crc = t.crc;
    if (!t.contiguous) e.note = "strided";
    entries_.push_back(std::move(e));
  }
  values_ = std::move(pt.values);
  auto source = std::make_shared<Source>();
  source->pt = std::move(pt.tensors);
  source_ = source;
  return Ok();
}

std::optional<size_t> TensorFile::Find(const std::string& name) const {
  const auto it = index_.find(name);
  return it == index_.end() ? std::nullopt : std::optional<size_t>(it->second);
}

Result<LoadedTensor> TensorFile::Load(size_t i) const {
  const Entry& e = entries_[i];
  LoadedTensor out;
  if (e.mapped) {
    out.tensor = TensorRef{e.dtype, e.shape, data_ + e.offset};
    out.holder = std::make_shared<const MappedFile>(file_);
    return out;
  }
  auto tensor = std::make_shared<Tensor>();
  if (format_ == Format::kPt) {
    SB_ASSIGN(*tensor, GatherPt(source_->pt[i], data_, path_));
  } else if (format_ == Format::kNpz && source_->members[i].deflated) {
    SB_ASSIGN(const std::string bytes, source_->zip.Read(source_->members[i]));
    *tensor = NpyToRowMajor(source_->npy[i], reinterpret_cast<const uint8_t*>(bytes.data()));
  } else {
    const uint64_t start = format_ == Format::kNpz ? source_->members[i].offset : 0;
    *tensor = NpyToRowMajor(source_->npy[i], data_ + start);
  }
  out.tensor = tensor->ref();
  out.holder = std::move(tensor);
  return out;
}

}  // namespace samebits
