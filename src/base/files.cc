#include "base/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace samebits {
namespace {

Status Errno(const std::string& path, const char* doing) {
  return Error(path + ": cannot " + doing + ": " + std::strerror(errno));
}

struct Fd {
  int fd;
  ~Fd() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

Result<MappedFile> MappedFile::Open(const std::string& path) {
  Fd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (fd.fd < 0) return Errno(path, "open");
  struct stat st;
  if (::fstat(fd.fd, &st) != 0) return Errno(path, "read the size");
  if (S_ISDIR(st.st_mode)) return Error(path + ": is a folder, a file was expected");
  if (!S_ISREG(st.st_mode)) return Error(path + ": is not a plain file");
  MappedFile file;
  file.path_ = path;
  file.size_ = static_cast<uint64_t>(st.st_size);
  if (file.size_ == 0) return file;
  void* map = ::mmap(nullptr, file.size_, PROT_READ, MAP_SHARED, fd.fd, 0);
  if (map == MAP_FAILED) return Errno(path, "map");
  const uint64_t size = file.size_;
  file.holder_ = std::shared_ptr<const void>(map, [size](const void* p) { ::munmap(const_cast<void*>(p), size); });
  file.data_ = static_cast<const uint8_t*>(map);
  return file;
}

Result<std::string> ReadFile(const std::string& path, uint64_t max_bytes) {
  Fd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (fd.fd < 0) return Errno(path, "open");
  std::string out;
  char chunk[1 << 16];
  while (true) {
    const ssize_t n = ::read(fd.fd, chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Errno(path, "read");
    if (n == 0) return out;
    out.append(chunk, static_cast<size_t>(n));
    if (out.size() > max_bytes)
      return Error(path + ": is larger than the " + std::to_string(max_bytes) + " bytes allowed here");
  }
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept { *this = std::move(other); }

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(size_, other.size_);
  path_.swap(other.path_);
  temporary_.swap(other.temporary_);
  buffer_.swap(other.buffer_);
  return *this;
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

Result<AtomicFile> AtomicFile::Create(const std::string& path) {
  if (path.empty()) return Error("the output path is empty");
  if (IsFolder(path)) return Error(path + ": is a folder, an output file was expected");
  AtomicFile file;
  file.path_ = path;
  file.temporary_ = path + ".tmp" + std::to_string(::getpid());
  file.fd_ = ::open(file.temporary_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file.fd_ < 0) return Errno(path, "create");
  return file;
}

Status AtomicFile::Write(const void* data, size_t bytes) {
  buffer_.append(static_cast<const char*>(data), bytes);
  size_ += bytes;
  return buffer_.size() >= (size_t{1} << 20) ? Flush() : Ok();
}

Status AtomicFile::Flush() {
  size_t done = 0;
  while (done < buffer_.size()) {
    const ssize_t n = ::write(fd_, buffer_.data() + done, buffer_.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Errno(path_, "write");
    done += static_cast<size_t>(n);
  }
  buffer_.clear();
  return Ok();
}

Status AtomicFile::WriteAt(uint64_t offset, const void* data, size_t bytes) {
  SB_CHECK(offset + bytes <= size_, "WriteAt past the end");
  SB_RETURN_IF_ERROR(Flush());
  if (::pwrite(fd_, data, bytes, static_cast<off_t>(offset)) != static_cast<ssize_t>(bytes))
    return Errno(path_, "write");
  return Ok();
}

Status AtomicFile::Commit() {
  SB_RETURN_IF_ERROR(Flush());
  if (::fsync(fd_) != 0 && errno != EINVAL) return Errno(path_, "sync");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return Errno(path_, "rename into place");
  ::close(fd_);
  fd_ = -1;
  return Ok();
}

Status WriteFile(const std::string& path, std::string_view contents) {
  SB_ASSIGN(AtomicFile file, AtomicFile::Create(path));
  SB_RETURN_IF_ERROR(file.Write(contents));
  return file.Commit();
}

Status MakeFolders(const std::string& path) {
  for (size_t i = 1; i <= path.size(); ++i) {
    if (i != path.size() && path[i] != '/') continue;
    const std::string prefix = path.substr(0, i);
    if (::mkdir(prefix.c_str(), 0755) != 0 && errno != EEXIST) return Errno(prefix, "create the folder");
  }
  return IsFolder(path) ? Ok() : Error(path + ": exists and is not a folder");
}

bool FileExists(const std::string& path) {
  struct stat st;
  return ::stat(path.c_str(), &st) == 0;
}

bool IsFolder(const std::string& path) {
  struct stat st;
  return ::stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}

Result<std::vector<std::string>> ListFolder(const std::string& path) {
  DIR* dir = ::opendir(path.c_str());
  if (!dir) return Errno(path, "list the folder");
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(dir)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  ::closedir(dir);
  std::sort(names.begin(), names.end());
  return names;
}

std::string JoinPath(std::string_view folder, std::string_view name) {
  if (folder.empty()) return std::string(name);
  std::string out(folder);
  if (out.back() != '/') out += '/';
  return out.append(name);
}

}  // namespace samebits
