// Files: read-only maps, whole-file reads, and writes that appear complete or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace samebits {

// A read-only memory map. Pages are read on demand: a file larger than memory opens. Shared by copies.
class MappedFile {
 public:
  // Errors name the path: missing, a folder, not readable. An empty file maps to size 0.
  static Result<MappedFile> Open(const std::string& path);
  const uint8_t* data() const { return data_; }
  uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }

 private:
  std::shared_ptr<const void> holder_;
  const uint8_t* data_ = nullptr;
  uint64_t size_ = 0;
  std::string path_;
};

// Reads the whole file; refuses more than max_bytes.
Result<std::string> ReadFile(const std::string& path, uint64_t max_bytes = uint64_t{1} << 31);

// Writes beside the target under a temporary name, syncs, then renames: the target is the old file or the whole new
// one, never a part, also on a crash or a full disk. An AtomicFile destroyed without Commit() removes what it wrote.
class AtomicFile {
 public:
  AtomicFile() = default;
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  ~AtomicFile();
  static Result<AtomicFile> Create(const std::string& path);
  Status Write(const void* data, size_t bytes);
  Status Write(std::string_view text) { return Write(text.data(), text.size()); }
  // Overwrites bytes already written (headers whose size is known last).
  Status WriteAt(uint64_t offset, const void* data, size_t bytes);
  Status Commit();
  uint64_t size() const { return size_; }

 private:
  Status Flush();
  int fd_ = -1;
  uint64_t size_ = 0;
  std::string path_, temporary_, buffer_;
};

Status WriteFile(const std::string& path, std::string_view contents);
Status MakeFolders(const std::string& path);
bool FileExists(const std::string& path);
bool IsFolder(const std::string& path);
// Names of the entries in a folder, sorted bytewise.
Result<std::vector<std::string>> ListFolder(const std::string& path);
// "folder/name"; name alone if folder is empty.
std::string JoinPath(std::string_view folder, std::string_view name);

}  // namespace samebits
