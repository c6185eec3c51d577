// config.json: an error or a checked config, never a crash.
#include <cstdint>
#include <string>

#include "model/config.h"

using namespace samebits;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)ParseModelConfig(std::string(reinterpret_cast<const char*>(data), size), "input");
  return 0;
}
