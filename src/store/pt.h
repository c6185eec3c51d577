// torch.save's zip format: tensors by flattened name ("model.layers.0.weight", "0.value"), read without torch and
// without running anything (pickle.h).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "store/pickle.h"
#include "store/zip.h"

namespace samebits {

struct PtTensor {
  std::string name;
  DType dtype = DType::kU8;
  Shape shape, strides;  // strides in elements
  uint64_t offset = 0;   // of the first element, in the file
  bool contiguous = true;
  uint64_t storage_bytes = 0;
  // CRC-32 of exactly this tensor's bytes, where the archive has one that can be trusted.
  bool has_crc = false;
  uint32_t crc = 0;
};

struct PtFile {
  std::vector<PtTensor> tensors;              // in the order of the pickle
  std::map<std::string, std::string> values;  // everything else that is a number, text or flag, by flattened name
};

Result<PtFile> ParsePt(const uint8_t* data, uint64_t size, const std::string& label);
// The tensor's elements gathered row-major. `file` is what ParsePt was given.
Result<Tensor> GatherPt(const PtTensor& tensor, const uint8_t* file, const std::string& label);

}  // namespace samebits
