// Read-only view of a ZIP archive in memory: the central directory, ZIP64, stored and deflated members. Nothing is ever
// extracted to disk.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"

namespace samebits {

class ZipView {
 public:
  struct Member {
    std::string name;
    bool deflated = false;
    uint32_t crc = 0;          // as the directory claims; equal CRC and size of two members screen equal data
    uint64_t size = 0;         // unpacked
    uint64_t packed_size = 0;  // in the archive
    uint64_t offset = 0;       // of the packed bytes
  };
  // Every member's bytes are inside the archive; names are unique, relative and without "..".
  static Result<ZipView> Parse(const uint8_t* data, uint64_t size, const std::string& label);

  const std::vector<Member>& members() const { return members_; }
  const Member* Find(const std::string& name) const;
  // Unpacks a deflated or copies a stored member; checks size and CRC.
  Result<std::string> Read(const Member& member) const;
  const uint8_t* Packed(const Member& member) const { return data_ + member.offset; }
  // Does the CRC of the bytes match? (torch can be told to write none.)
  bool CrcHolds(const Member& member) const;

 private:
  const uint8_t* data_ = nullptr;
  std::string label_;
  std::vector<Member> members_;
  std::map<std::string, size_t> index_;
};

}  // namespace samebits
