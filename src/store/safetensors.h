// Safetensors: u64 header length, JSON header, data. Strict: what the reader accepts is exactly a header whose tensors
// cover the data section once, in any order, with sizes that follow from dtype and shape.
//
// The file is mapped, not read: its size is fixed when it is opened and every offset is checked against that size, so
// no later access leaves the map. A file cut short by somebody else *while* it is mapped makes the kernel raise SIGBUS
// on the lost pages; no check at open time can prevent that. Checkpoints are replaced by rename, never cut in place.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/files.h"
#include "tensor/tensor.h"

namespace samebits {

inline constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;

struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::kU8;
  Shape shape;
  uint64_t begin = 0, end = 0;  // in the data section
};

// Bytes of `shape` elements of `dtype`; an error when the product overflows or does not fill whole bytes.
Result<uint64_t> TensorBytes(DType dtype, const Shape& shape);

class Safetensors {
 public:
  static Result<Safetensors> Open(const std::string& path);
  // The bytes must outlive the object. `label` stands for the path in errors.
  static Result<Safetensors> Parse(const uint8_t* data, uint64_t size, const std::string& label);

  const std::string& path() const { return path_; }
  // In order of begin offset, empty tensors before the one that starts at the same place; then by name.
  const std::vector<SafetensorsEntry>& entries() const { return entries_; }
  // __metadata__; empty if there is none.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  bool Has(const std::string& name) const { return index_.count(name) != 0; }
  // The data is not aligned to the element size.
  Result<TensorRef> Find(const std::string& name) const;
  TensorRef At(size_t i) const;
  // Offset of the data section in the file.
  uint64_t data_offset() const { return data_offset_; }
  uint64_t file_bytes() const { return data_offset_ + data_bytes_; }

 private:
  MappedFile file_;
  std::string path_;
  const uint8_t* data_ = nullptr;
  uint64_t data_offset_ = 0, data_bytes_ = 0;
  std::vector<SafetensorsEntry> entries_;
  std::map<std::string, std::string> metadata_;
  std::unordered_map<std::string, size_t> index_;
};

// Writes a file whose tensors are known beforehand and whose bytes arrive one after another. The same calls give the
// same bytes. Data starts at a multiple of 64, tensors follow without gaps in the order declared.
class SafetensorsWriter {
 public:
  struct Declared {
    std::string name;
    DType dtype;
    Shape shape;
  };
  static Result<SafetensorsWriter> Create(const std::string& path, const std::vector<Declared>& tensors,
                                          const std::map<std::string, std::string>& metadata = {});
  // The next bytes of the data section; calls need not follow tensor borders.
  Status Append(const void* data, uint64_t bytes);
  // Refused unless exactly the declared bytes were appended. Until then the target is untouched.
  Status Commit();

 private:
  AtomicFile file_;
  std::string path_;
  uint64_t left_ = 0;
};

struct NamedTensor {
  std::string name;
  TensorRef tensor;
};
Status WriteSafetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                        const std::map<std::string, std::string>& metadata = {});

}  // namespace samebits
