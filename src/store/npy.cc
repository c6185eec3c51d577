#include "store/npy.h"

#include <algorithm>
#include <cstring>

#include "base/files.h"
#include "base/strings.h"
#include "store/safetensors.h"

namespace samebits {
namespace {

constexpr uint64_t kMaxHeader = 1 << 20;
constexpr char kMagic[] = "\x93NUMPY";

// The header is a Python dictionary of three known keys; this reads that and nothing more.
class Literal {
 public:
  explicit Literal(std::string_view text) : text_(text) {}
  bool Take(char c) {
    Space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool Text(std::string* out) {
    Space();
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) return false;
    const char quote = text_[at_];
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) return false;
    *out = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return out->find('\\') == std::string::npos;
  }
  bool Boolean(bool* out) {
    Space();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_, word.size()) != word) continue;
      *out = value;
      at_ += word.size();
      return true;
    }
    return false;
  }
  bool Tuple(Shape* out) {
    if (!Take('(')) return false;
    while (!Take(')')) {
      Space();
      uint64_t n = 0;
      const size_t begin = at_;
      for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
        if (n > (uint64_t{1} << 58)) return false;
        n = n * 10 + static_cast<uint64_t>(text_[at_] - '0');
      }
      if (at_ == begin) return false;
      if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2 long
      out->push_back(static_cast<int64_t>(n));
      if (Take(',')) continue;
      if (!Take(')')) return false;
      break;
    }
    return true;
  }
  bool AtEnd() {
    Space();
    return at_ == text_.size();
  }

 private:
  void Space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  std::string_view text_;
  size_t at_ = 0;
};

struct Named {
  const char* code;
  DType dtype;
};
constexpr Named kCodes[] = {{"b1", DType::kBool}, {"i1", DType::kI8},   {"u1", DType::kU8},  {"i2", DType::kI16},
                            {"u2", DType::kU16},  {"i4", DType::kI32},  {"u4", DType::kU32}, {"i8", DType::kI64},
                            {"u8", DType::kU64},  {"f2", DType::kF16},  {"f4", DType::kF32}, {"f8", DType::kF64},
                            {"c8", DType::kC64},  {"V2", DType::kBF16}, {"V1", DType::kU8}};

Status SetDType(const std::string& descr, NpyHeader* header) {
  if (descr.size() >= 3 && std::strchr("<>|=", descr[0]))
    for (const Named& named : kCodes)
      if (descr.substr(1) == named.code) {
        header->dtype = named.dtype;
        header->big_endian = descr[0] == '>' && DTypeBits(named.dtype) > 8;
        if (descr[1] == 'V')
          header->note = "written without a type name (" + descr + "), read as " + DTypeName(named.dtype);
        return Ok();
      }
  return Error("its dtype \"" + descr.substr(0, 60) + "\" cannot be read; save plain numbers");
}

}  // namespace

Result<NpyHeader> ParseNpy(const uint8_t* data, uint64_t size, const std::string& label) {
  const auto refuse = [&](const std::string& why) { return Error(label + ": not a valid .npy file: " + why); };
  if (size < 10 || std::memcmp(data, kMagic, 6) != 0) return refuse("it does not start with \\x93NUMPY");
  const int version = data[6];
  if (version < 1 || version > 3) return refuse("version " + std::to_string(version) + " is unknown");
  uint64_t length = data[8] | static_cast<uint64_t>(data[9]) << 8, start = 10;
  if (version > 1) {
    if (size < 12) return refuse("it is cut short");
    length |= static_cast<uint64_t>(data[10]) << 16 | static_cast<uint64_t>(data[11]) << 24;
    start = 12;
  }
  if (length > kMaxHeader) return refuse("its header claims " + std::to_string(length) + " bytes");
  if (length > size - start) return refuse("its header is cut short");

  NpyHeader header;
  header.data_offset = start + length;
  Literal in(std::string_view(reinterpret_cast<const char*>(data) + start, length));
  std::string key, descr;
  int seen = 0;
  bool good = in.Take('{');
  while (good && !in.Take('}')) {
    good = in.Text(&key) && in.Take(':');
    const int bit = key == "descr" ? 1 : key == "fortran_order" ? 2 : key == "shape" ? 4 : 0;
    if (!good || bit == 0 || (seen & bit)) return refuse("its header is not the expected dictionary");
    seen |= bit;
    if (bit == 1 && !in.Text(&descr)) return refuse("it holds a structured array; save plain numbers");
    if (bit == 2) good = in.Boolean(&header.fortran);
    if (bit == 4) good = in.Tuple(&header.shape);
    if (good && !in.Take(',')) {
      good = in.Take('}');
      break;
    }
  }
  if (!good || seen != 7 || !in.AtEnd()) return refuse("its header is not the expected dictionary");
  const Status typed = SetDType(descr, &header);
  if (!typed.ok()) return refuse(typed.text());
  const Result<uint64_t> bytes = TensorBytes(header.dtype, header.shape);
  if (!bytes.ok()) return refuse(bytes.status().text());
  if (*bytes != size - header.data_offset)
    return refuse(std::string(DTypeName(header.dtype)) + " " + ShapeText(header.shape) + " takes " +
                  std::to_string(*bytes) + " bytes but " + std::to_string(size - header.data_offset) +
                  " follow the header");
  if (header.shape.size() < 2) header.fortran = false;
  return header;
}

Tensor NpyToRowMajor(const NpyHeader& header, const uint8_t* file) {
  Tensor out(header.dtype, header.shape);
  const uint8_t* from = file + header.data_offset;
  uint8_t* to = static_cast<uint8_t*>(out.raw());
  const size_t bytes = static_cast<size_t>(DTypeBits(header.dtype)) / 8, rank = header.shape.size();
  const int64_t n = out.elements();
  std::vector<int64_t> coordinate(rank, 0), stride(rank, 1);
  if (header.fortran) {
    for (size_t d = 1; d < rank; ++d) stride[d] = stride[d - 1] * header.shape[d - 1];
  } else {
    for (size_t d = rank; d-- > 1;) stride[d - 1] = stride[d] * header.shape[d];
  }
  int64_t at = 0;
  const size_t part = header.dtype == DType::kC64 ? 4 : bytes;
  for (int64_t i = 0; i < n; ++i) {
    uint8_t* element = to + static_cast<size_t>(i) * bytes;
    std::memcpy(element, from + static_cast<size_t>(at) * bytes, bytes);
    if (header.big_endian)
      for (size_t p = 0; p < bytes; p += part) std::reverse(element + p, element + p + part);
    for (size_t d = rank; d-- > 0;) {
      at += stride[d];
      if (++coordinate[d] < header.shape[d]) break;
      at -= stride[d] * header.shape[d];
      coordinate[d] = 0;
    }
  }
  return out;
}

Status WriteNpy(const std::string& path, const TensorRef& t) {
  const char* code = nullptr;
  for (const Named& named : kCodes)
    if (named.dtype == t.dtype && code == nullptr) code = named.code;
  if (code == nullptr && DTypeBits(t.dtype) == 8) code = "V1";
  if (code == nullptr)
    return Error(path + ": NumPy has no type for " + DTypeName(t.dtype) + "; write safetensors instead");
  std::string header = std::string("{'descr': '") + (DTypeBits(t.dtype) > 8 ? "<" : "|") + code +
                       "', 'fortran_order': False, 'shape': (";
  for (size_t i = 0; i < t.shape.size(); ++i) header += (i ? ", " : "") + std::to_string(t.shape[i]);
  header += t.shape.size() == 1 ? ",), }" : "), }";
  const size_t start = header.size() + 76 > 65535 ? 12 : 10;
  header.append((64 - (start + header.size() + 1) % 64) % 64, ' ');
  header += '\n';
  std::string file(kMagic, 6);
  file += static_cast<char>(start == 12 ? 2 : 1);
  file += '\0';
  for (size_t i = 0; i < start - 8; ++i) file += static_cast<char>(header.size() >> (8 * i));
  SB_ASSIGN(AtomicFile out, AtomicFile::Create(path));
  SB_RETURN_IF_ERROR(out.Write(file + header));
  if (t.bytes() > 0) SB_RETURN_IF_ERROR(out.Write(t.data, t.bytes()));
  return out.Commit();
}

}  // namespace samebits
