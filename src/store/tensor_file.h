// One way to read every kind of tensor file: safetensors, .npy, .npz and torch's .pt. What a file is, its first bytes
// say, not its name.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "tensor/tensor.h"

namespace samebits {

// Row-major little-endian data and whatever keeps it alive (a map, or memory if it had to be unpacked or reordered).
struct LoadedTensor {
  TensorRef tensor;
  std::shared_ptr<const void> holder;
};

class TensorFile {
 public:
  enum class Format { kSafetensors, kNpy, kNpz, kPt };
  struct Entry {
    std::string name;  // a .npy's only array: "array"
    DType dtype = DType::kU8;
    Shape shape;
    uint64_t bytes = 0;
    uint64_t offset = 0;  // in the file
    bool mapped = true;   // false: Load makes a copy (strided, column-major, big-endian or compressed)
    std::optional<uint32_t>
        crc;  // CRC-32 of the tensor's file bytes where the archive holds one: equal CRC, dtype, shape and size
              // screen tensors as equal without reading them
    std::string note;  // what a reader should know; usually empty
  };

  static Result<TensorFile> Open(const std::string& path);
  static Result<TensorFile> Parse(const uint8_t* data, uint64_t size, const std::string& label);

  const std::string& path() const { return path_; }
  Format format() const { return format_; }
  const char* format_name() const;
  const std::vector<Entry>& entries() const { return entries_; }
  // __metadata__ of safetensors; numbers and texts beside the tensors of a .pt.
  const std::map<std::string, std::string>& values() const { return values_; }
  std::optional<size_t> Find(const std::string& name) const;
  Result<LoadedTensor> Load(size_t i) const;

 private:
  struct Source;  // what Load needs beyond the entry
  Status ReadSafetensors();
  Status ReadNpy();
  Status ReadNpz();
  Status ReadPt();

  MappedFile file_;
  const uint8_t* data_ = nullptr;
  uint64_t size_ = 0;
  std::string path_;
  Format format_ = Format::kSafetensors;
  std::vector<Entry> entries_;
  std::map<std::string, std::string> values_;
  std::map<std::string, size_t> index_;
  std::shared_ptr<const Source> source_;
};

}  // namespace samebits
