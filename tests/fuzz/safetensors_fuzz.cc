// Safetensors headers and shard indexes: refused, or every tensor lies inside the bytes given.
#include <cstdlib>
#include <string_view>

#include "store/checkpoint.h"
#include "store/digest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace samebits;
  const auto parsed = Safetensors::Parse(data, size, "fuzz");
  if (parsed.ok()) {
    for (size_t i = 0; i < parsed->entries().size(); ++i) {
      const TensorRef t = parsed->At(i);
      const uint8_t* begin = static_cast<const uint8_t*>(t.data);
      if (begin < data || t.bytes() > size || begin + t.bytes() > data + size) std::abort();
      DigestTensor(t, true);
    }
  }
  (void)ParseShardIndex(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz").ok();
  return 0;
}
