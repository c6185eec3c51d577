// .npy, .npz and .pt (the first bytes choose): refused, or every tensor loads and can be read to its end.
#include "store/digest.h"
#include "store/tensor_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace samebits;
  const auto file = TensorFile::Parse(data, size, "fuzz");
  if (!file.ok()) return 0;
  for (size_t i = 0; i < file->entries().size(); ++i) {
    // A broadcast view may rightly be large; the time to copy it is not what is tested.
    if (file->entries()[i].bytes > 1 << 20) continue;
    if (const auto loaded = file->Load(i); loaded.ok()) DigestTensor(loaded->tensor, true);
  }
  return 0;
}
