#include <unistd.h>

#include <cstring>

#include "base/files.h"
#include "base/strings.h"
#include "case.h"
#include "forensics/compare.h"
#include "store/checkpoint.h"
#include "store/safetensors.h"

namespace samebits {
namespace {

class TemporaryFile {
 public:
  TemporaryFile(const std::string& bytes, uint64_t extend_to) {
    char name[] = "/tmp/samebits_case_XXXXXX";
    const int fd = ::mkstemp(name);
    bool ok = fd >= 0 && ::write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
    if (ok && extend_to > bytes.size()) ok = ::ftruncate(fd, static_cast<off_t>(extend_to)) == 0;  // a hole, no blocks
    if (fd >= 0) ::close(fd);
    path_ = name;
    Expect(ok, "cannot write " + path_);
  }
  ~TemporaryFile() { ::unlink(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void ExpectTensor(const Safetensors& file, size_t i, const Json& j) {
  Members want(j, "tensor");
  const SafetensorsEntry& e = file.entries()[i];
  const TensorRef tensor = file.At(i);
  if (const Json* x = want.Find("name")) ExpectText("name", e.name, *x);
  if (const Json* x = want.Find("dtype")) ExpectText("dtype", DTypeName(e.dtype), *x);
  if (const Json* x = want.Find("shape")) ExpectInts("shape", e.shape, *x);
  if (const Json* x = want.Find("elements")) ExpectInts("elements", std::vector{tensor.elements()}, Json::array({*x}));
  if (const Json* x = want.Find("begin"))
    ExpectInts("begin", std::vector{static_cast<int64_t>(e.begin)}, Json::array({*x}));
  if (const Json* x = want.Find("end")) ExpectInts("end", std::vector{static_cast<int64_t>(e.end)}, Json::array({*x}));
  auto values = [&](const char* name, const auto& check) {
    const Json* x = want.Find(name);
    if (x == nullptr) return;
    Expect(static_cast<int64_t>(List(*x).size()) == tensor.elements(), std::string(name) + " has another length");
    for (size_t k = 0; k < x->size(); ++k) check((*x)[k], static_cast<int64_t>(k));
  };
  values("values", [&](const Json& v, int64_t k) {  // integers and booleans, by their bits: exact beyond 2^53
    const int64_t number = v.is_boolean() ? int64_t{v.get<bool>()} : Value<int64_t>(v);
    const uint64_t mask = ~uint64_t{0} >> (64 - DTypeBits(e.dtype));
    Expect(IsInteger(e.dtype) && ElementBits(tensor, k) == (static_cast<uint64_t>(number) & mask),
           Format("value %lld is %s, expected ", (long long)k, ElementText(tensor, k).c_str()) + v.dump());
  });
  values("values_bits", [&](const Json& v, int64_t k) {
    const uint64_t bits = HexBits(v, static_cast<int>(Value<std::string>(v).size()) - 2);
    Expect(ElementBits(tensor, k) == bits, Format("bits of value %lld", (long long)k));
  });
  values("values_f32_bits", [&](const Json& v, int64_t k) {
    ExpectBits(Format("value %lld", (long long)k), static_cast<float>(ElementAsDouble(tensor, k)), v);
  });
  if (const std::string unread = want.Unread(); !unread.empty()) Unsupported(unread);
}

void ExpectParsed(const Result<Safetensors>& file, Members& want) {
  const Json& accept = want["accept"];
  want.Find("error");  // a hint; only refusal is demanded
  const Json *tensors = want.Find("tensors"), *metadata = want.Find("metadata"),
             *if_accepted = want.Find("if_accepted");
  if (accept.is_boolean() && !accept.get<bool>()) return Expect(!file.ok(), "accepted");
  if (!file.ok()) return Expect(accept == "either", "refused: " + file.status().text());
  if (if_accepted) {
    Expect((*file).entries().size() == 1, "another number of tensors");
    ExpectTensor(*file, 0, *if_accepted);
  }
  if (tensors) {
    Expect((*file).entries().size() == List(*tensors).size(), "another number of tensors");
    for (size_t i = 0; i < tensors->size(); ++i) ExpectTensor(*file, i, (*tensors)[i]);
  }
  if (metadata) {
    Expect(Json((*file).metadata()) == *metadata, "metadata is " + Json((*file).metadata()).dump());
  }
}

void ParseSafetensors(Members& in, Members& want) {
  const std::string bytes = Base64Bytes(in["file_b64"]);
  if (const Json* size = in.Find("file_bytes"))
    if (Value<int64_t>(*size) != static_cast<int64_t>(bytes.size())) Malformed("file_b64 has not file_bytes bytes");
  const Json* extend = in.Find("extend_to_bytes");
  const int64_t extend_to = extend ? Count(*extend, int64_t{1} << 40) : 0;
  const TemporaryFile file(bytes, static_cast<uint64_t>(extend_to));
  ExpectParsed(Safetensors::Open(file.path()), want);
  if (extend) return;
  // The same from memory of exactly that size, where a sanitizer sees a byte too far.
  std::vector<uint8_t> exact(bytes.begin(), bytes.end());
  exact.shrink_to_fit();
  ExpectParsed(Safetensors::Parse(exact.data(), exact.size(), "case"), want);
}

void CheckIndex(Members& in, Members& want) {
  const auto map = ParseShardIndex(in["index"].dump(), "case");
  want.Find("error");
  if (want["accept"] == true) return ExpectOk(map.status());
  Expect(want["accept"] != false || !map.ok(), "accepted");
}

constexpr CaseOp kOps[] = {{"parse_safetensors", ParseSafetensors}, {"check_index", CheckIndex}};

}  // namespace

std::span<const CaseOp> FileCaseOps() { return kOps; }

}  // namespace samebits
