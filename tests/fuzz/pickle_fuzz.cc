// Pickles without the archive around them, wrapped into the smallest archive so that the walk over their values runs too.
#include <string>

#include "store/pickle.h"
#include "store/pt.h"

namespace {

void Put(std::string* out, uint64_t v, int n) {
  for (int i = 0; i < n; ++i) out->push_back(static_cast<char>(v >> (8 * i)));
}

// A stored archive of a/data.pkl and a/data/0 (64 bytes).
std::string Archive(const std::string& pickle) {
  std::string out, directory;
  const std::pair<std::string, std::string> members[] = {{"a/data.pkl", pickle}, {"a/data/0", std::string(64, 'x')}};
  for (const auto& [name, bytes] : members) {
    const uint64_t at = out.size();
    out += "PK\x03\x04" + std::string(22, '\0');
    Put(&out, name.size(), 2);
    Put(&out, 0, 2);
    out += name + bytes;
    directory += "PK\x01\x02" + std::string(16, '\0');
    Put(&directory, bytes.size(), 4);
    Put(&directory, bytes.size(), 4);
    Put(&directory, name.size(), 2);
    directory += std::string(12, '\0');
    Put(&directory, at, 4);
    directory += name;
  }
  const uint64_t at = out.size();
  out += directory + "PK\x05\x06" + std::string(4, '\0');
  Put(&out, 2, 2);
  Put(&out, 2, 2);
  Put(&out, directory.size(), 4);
  Put(&out, at, 4);
  Put(&out, 0, 2);
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace samebits;
  if (!ParsePickle(data, size, "fuzz").ok()) return 0;
  const std::string archive = Archive(std::string(reinterpret_cast<const char*>(data), size));
  const uint8_t* bytes = reinterpret_cast<const uint8_t*>(archive.data());
  const auto parsed = ParsePt(bytes, archive.size(), "fuzz");
  if (!parsed.ok()) return 0;
  for (const PtTensor& t : parsed->tensors)
    if (ElementCount(t.shape) < 1 << 16) (void)GatherPt(t, bytes, "fuzz").ok();
  return 0;
}
