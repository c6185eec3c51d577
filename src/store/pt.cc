#include "store/pt.h"

#include <cstring>
#include <set>

#include "base/strings.h"
#include "store/safetensors.h"

namespace samebits {
namespace {

using Kind = PickleNode::Kind;

constexpr uint64_t kMaxPickle = uint64_t{256} << 20;
constexpr int kMaxDepth = 64;
constexpr int64_t kMaxVisits = 300'000;
// Longer lists of plain numbers become one value that gives their length.
constexpr size_t kListedNumbers = 64;
constexpr uint64_t kMaxGathered = uint64_t{4} << 30;

std::string ValueText(const PickleNode& n) {
  switch (n.kind) {
    case Kind::kBool:
      return n.integer ? "true" : "false";
    case Kind::kInt:
      return std::to_string(n.integer);
    case Kind::kFloat:
      return Format("%.17g", n.number);
    case Kind::kText:
    case Kind::kGlobal:
      return n.text;
    default:
      return "";
  }
}

class Flattener {
 public:
  Flattener(const Pickle& pickle, const ZipView& zip, std::string root, const std::string& label)
      : pickle_(pickle), zip_(zip), root_(std::move(root)), label_(label) {
    crc_trusted_ = zip.CrcHolds(*zip.Find(root_ + "/data.pkl"));
  }
  Result<PtFile> Run() {
    SB_RETURN_IF_ERROR(Walk(pickle_.root, "", 0));
    return std::move(out_);
  }

 private:
  Status Walk(uint32_t index, const std::string& name, int depth) {
    const PickleNode& n = pickle_.nodes[index];
    if (depth > kMaxDepth)
      return Error(label_ + ": its values nest deeper than " + std::to_string(kMaxDepth) +
                   " levels or contain themselves");
    if (++visits_ > kMaxVisits)
      return Error(label_ + ": its values unfold to more than " + std::to_string(kMaxVisits) + " entries");
    switch (n.kind) {
      case Kind::kTensor:
        return AddTensor(n, name.empty() ? "tensor" : name);
      case Kind::kDict:
        for (size_t i = 0; i + 1 < n.children.size(); i += 2) {
          const PickleNode& key = pickle_.nodes[n.children[i]];
          if (key.kind != Kind::kText && key.kind != Kind::kInt && key.kind != Kind::kBool)
            return Error(label_ + ": a dictionary below \"" + name + "\" has a key that is neither text nor a number");
          SB_RETURN_IF_ERROR(Walk(n.children[i + 1], Below(name, ValueText(key)), depth + 1));
        }
        return Ok();
      case Kind::kSequence:
        if (n.children.size() > kListedNumbers) {
          visits_ += static_cast<int64_t>(n.children.size() / 8);
          bool plain = true;
          for (const uint32_t c : n.children) plain = plain && pickle_.nodes[c].kind <= Kind::kBytes;
          if (plain) {
            out_.values.emplace(name, std::to_string(n.children.size()) + " plain values");
            return Ok();
          }
        }
        for (size_t i = 0; i < n.children.size(); ++i)
          SB_RETURN_IF_ERROR(Walk(n.children[i], Below(name, std::to_string(i)), depth + 1));
        return Ok();
      case Kind::kNone:
      case Kind::kBytes:
      case Kind::kStorage:
      case Kind::kMark:
        return Ok();
      default:
        out_.values.emplace(name.empty() ? "value" : name, ValueText(n).substr(0, 4096));
        return Ok();
    }
  }
  static std::string Below(const std::string& name, const std::string& key) {
    return (name.empty() ? key : name + "." + key).substr(0, 4096);
  }

  Status AddTensor(const PickleNode& n, const std::string& name) {
    const std::string where = label_ + ": tensor \"" + name + "\"";
    if (!names_.insert(name).second) return Error(where + " appears twice once nested names are joined");
    const PickleNode& storage = pickle_.nodes[n.children[0]];
    const ZipView::Member* member = zip_.Find(root_ + "/data/" + storage.text);
    if (member == nullptr)
      return Error(where + ": its data (record data/" + storage.text.substr(0, 100) + ") is missing");
    if (member->deflated) return Error(where + ": its data is compressed, which torch never does");
    const uint64_t element = static_cast<uint64_t>(DTypeBits(n.dtype)) / 8;
    const uint64_t unit = storage.untyped ? 1 : static_cast<uint64_t>(DTypeBits(storage.dtype)) / 8;
    uint64_t claimed;
    if (__builtin_mul_overflow(static_cast<uint64_t>(storage.integer), unit, &claimed) || claimed > member->size)
      return Error(where + ": its storage claims " + std::to_string(storage.integer) + " elements but the file has " +
                   std::to_string(member->size) + " bytes for it");
    PtTensor t;
    t.name = name;
    t.dtype = n.dtype;
    t.shape = n.shape;
    t.strides = n.strides;
    t.storage_bytes = claimed;
    const Result<uint64_t> bytes = TensorBytes(n.dtype, n.shape);
    if (!bytes.ok()) return bytes.status().At(where);
    // The farthest element; strides are not negative.
    uint64_t last = static_cast<uint64_t>(n.integer);
    int64_t expected = 1;
    for (size_t d = n.shape.size(); d-- > 0;) {
      if (*bytes == 0) break;
      uint64_t reach;
      if (__builtin_mul_overflow(static_cast<uint64_t>(n.shape[d] - 1), static_cast<uint64_t>(n.strides[d]), &reach) ||
          __builtin_add_overflow(last, reach, &last))
        return Error(where + ": its strides reach outside its storage");
      if (n.shape[d] != 1 && n.strides[d] != expected) t.contiguous = false;
      expected *= n.shape[d];
    }
    if (*bytes > 0 && last >= claimed / element) return Error(where + ": it reaches outside its storage");
    t.offset = member->offset + (*bytes > 0 ? static_cast<uint64_t>(n.integer) * element : 0);
    t.has_crc = crc_trusted_ && t.contiguous && *bytes == member->size && n.integer == 0;
    t.crc = t.has_crc ? member->crc : 0;
    out_.tensors.push_back(std::move(t));
    return Ok();
  }

  const Pickle& pickle_;
  const ZipView& zip_;
  const std::string root_;
  const std::string& label_;
  bool crc_trusted_ = false;
  int64_t visits_ = 0;
  std::set<std::string> names_;
  PtFile out_;
};

}  // namespace

Result<PtFile> ParsePt(const uint8_t* data, uint64_t size, const std::string& label) {
  if (size >= 2 && data[0] == 0x80)
    return Error(
        label +
        ": is a bare pickle (torch.save before 1.6, or another program); load it and save it again with torch.save");
  SB_ASSIGN(const ZipView zip, ZipView::Parse(data, size, label));
  const ZipView::Member* pickle = nullptr;
  std::string root;
  for (const ZipView::Member& m : zip.members()) {
    const size_t slash = m.name.find('/');
    if (slash == std::string::npos || m.name.substr(slash) != "/data.pkl") continue;
    if (pickle != nullptr) return Error(label + ": has two data.pkl");
    pickle = &m;
    root = m.name.substr(0, slash);
  }
  if (pickle == nullptr) return Error(label + ": is a zip archive without data.pkl, so torch.save did not write it");
  if (zip.Find(root + "/constants.pkl") != nullptr)
    return Error(label + ": is a TorchScript program, not saved tensors; nothing was run");
  if (const ZipView::Member* order = zip.Find(root + "/byteorder"); order != nullptr) {
    // Not through Read: torch writes no CRCs when told so.
    const std::string text(reinterpret_cast<const char*>(zip.Packed(*order)),
                           order->packed_size < 16 ? order->packed_size : 0);
    if (text != "little")
      return Error(label + ": was written on a big-endian machine; save it again on a little-endian one");
  }
  if (pickle->size > kMaxPickle)
    return Error(label + ": its data.pkl has " + HumanBytes(pickle->size) + "; more than 256 MB is refused");
  Pickle values;
  if (pickle->deflated) {
    SB_ASSIGN(const std::string text, zip.Read(*pickle));
    SB_ASSIGN(values, ParsePickle(reinterpret_cast<const uint8_t*>(text.data()), text.size(), label));
  } else {
    SB_ASSIGN(values, ParsePickle(zip.Packed(*pickle), pickle->size, label));
  }
  return Flattener(values, zip, root, label).Run();
}

Result<Tensor> GatherPt(const PtTensor& t, const uint8_t* file, const std::string& label) {
  SB_ASSIGN(const uint64_t bytes, TensorBytes(t.dtype, t.shape));
  // A broadcast tensor can claim any size with a few bytes of data.
  if (bytes > kMaxGathered && bytes > t.storage_bytes)
    return Error(label + ": tensor \"" + t.name + "\" repeats " + HumanBytes(t.storage_bytes) + " of data into " +
                 HumanBytes(bytes) + "; save the part that matters");
  Tensor out(t.dtype, t.shape);
  const size_t element = static_cast<size_t>(DTypeBits(t.dtype)) / 8, rank = t.shape.size();
  uint8_t* to = static_cast<uint8_t*>(out.raw());
  const uint8_t* from = file + t.offset;
  std::vector<int64_t> coordinate(rank, 0);
  int64_t at = 0;
  for (int64_t i = 0, n = out.elements(); i < n; ++i) {
    std::memcpy(to + static_cast<size_t>(i) * element, from + static_cast<size_t>(at) * element, element);
    for (size_t d = rank; d-- > 0;) {
      at += t.strides[d];
      if (++coordinate[d] < t.shape[d]) break;
      at -= t.strides[d] * t.shape[d];
      coordinate[d] = 0;
    }
  }
  return out;
}

}  // namespace samebits
