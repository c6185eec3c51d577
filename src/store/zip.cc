#include "store/zip.h"

#include <zlib.h>

#include <algorithm>

#include "base/strings.h"

namespace samebits {
namespace {

constexpr uint64_t kEndSize = 22, kEnd64LocatorSize = 20, kEnd64Size = 56, kCentralSize = 46, kLocalSize = 30;
constexpr uint32_t kEndMark = 0x06054b50, kEnd64LocatorMark = 0x07064b50, kEnd64Mark = 0x06064b50;
constexpr uint32_t kCentralMark = 0x02014b50, kLocalMark = 0x04034b50;
// Deflate cannot pack better than 1032 : 1; a member that claims more is a lie.
constexpr uint64_t kBestRatio = 1032;

// Little-endian reads that know where the bytes end.
struct Reader {
  const uint8_t* data;
  uint64_t size;
  bool Has(uint64_t at, uint64_t n) const { return at <= size && n <= size - at; }
  uint64_t Get(uint64_t at, int n) const {
    uint64_t v = 0;
    for (int i = 0; i < n; ++i) v |= static_cast<uint64_t>(data[at + static_cast<uint64_t>(i)]) << (8 * i);
    return v;
  }
};

bool SafeName(const std::string& name) {
  if (name.empty() || name[0] == '/' || name.find('\\') != std::string::npos || name.find('\0') != std::string::npos)
    return false;
  for (const std::string& part : Split(name, '/'))
    if (part == "..") return false;
  return true;
}

uint32_t Crc(const uint8_t* data, uint64_t size) {
  uLong crc = crc32(0, nullptr, 0);
  while (size > 0) {
    const uInt n = static_cast<uInt>(std::min<uint64_t>(size, 1u << 30));
    crc = crc32(crc, data, n);
    data += n, size -= n;
  }
  return static_cast<uint32_t>(crc);
}

}  // namespace

Result<ZipView> ZipView::Parse(const uint8_t* data, uint64_t size, const std::string& label) {
  const auto refuse = [&](const std::string& why) { return Error(label + ": not a valid zip archive: " + why); };
  const Reader in{data, size};
  if (size < kEndSize) return refuse("it has only " + std::to_string(size) + " bytes");
  // The end record is followed by a comment of at most 65535 bytes.
  uint64_t end = size - kEndSize;
  const uint64_t lowest = end > 65535 ? end - 65535 : 0;
  while (in.Get(end, 4) != kEndMark || in.Get(end + 20, 2) != size - end - kEndSize) {
    if (end == lowest) return refuse("the end of its directory is missing; the file is cut short");
    --end;
  }
  uint64_t count = in.Get(end + 10, 2), directory_size = in.Get(end + 12, 4), directory = in.Get(end + 16, 4);
  uint64_t directory_end = end;
  if (end >= kEnd64LocatorSize && in.Get(end - kEnd64LocatorSize, 4) == kEnd64LocatorMark) {
    const uint64_t end64 = in.Get(end - kEnd64LocatorSize + 8, 8);
    if (!in.Has(end64, kEnd64Size) || end64 + kEnd64Size > end || in.Get(end64, 4) != kEnd64Mark)
      return refuse("its ZIP64 record is damaged");
    count = in.Get(end64 + 32, 8), directory_size = in.Get(end64 + 40, 8), directory = in.Get(end64 + 48, 8);
    directory_end = end64;
  }
  if (directory > directory_end || directory_size > directory_end - directory)
    return refuse("its directory lies outside the file");
  if (count > directory_size / kCentralSize) return refuse("it claims more members than fit its directory");

  ZipView zip;
  zip.data_ = data;
  zip.label_ = label;
  uint64_t at = directory;
  const Reader dir{data, directory + directory_size};
  for (uint64_t i = 0; i < count; ++i) {
    if (!dir.Has(at, kCentralSize) || dir.Get(at, 4) != kCentralMark) return refuse("its directory is damaged");
    const uint64_t flags = dir.Get(at + 8, 2), method = dir.Get(at + 10, 2);
    const uint64_t name_size = dir.Get(at + 28, 2), extra_size = dir.Get(at + 30, 2), comment = dir.Get(at + 32, 2);
    if (!dir.Has(at + kCentralSize, name_size + extra_size + comment)) return refuse("its directory is damaged");
    Member m;
    m.name.assign(reinterpret_cast<const char*>(data + at + kCentralSize), name_size);
    m.crc = static_cast<uint32_t>(dir.Get(at + 16, 4));
    m.packed_size = dir.Get(at + 20, 4), m.size = dir.Get(at + 24, 4);
    uint64_t local = dir.Get(at + 42, 4);
    // ZIP64 extra field: 8-byte values, only for the fields that are saturated, in this order.
    uint64_t x = at + kCentralSize + name_size;
    const uint64_t extra_end = x + extra_size;
    while (x + 4 <= extra_end) {
      const uint64_t id = dir.Get(x, 2), n = dir.Get(x + 2, 2);
      if (n > extra_end - x - 4) return refuse("a member's extra field is damaged");
      uint64_t p = x + 4;
      if (id == 1) {
        for (uint64_t* field : {&m.size, &m.packed_size, &local}) {
          if (*field != 0xffffffffu) continue;
          if (p + 8 > x + 4 + n) return refuse("a member's ZIP64 field is too short");
          *field = dir.Get(p, 8), p += 8;
        }
      }
      x += 4 + n;
    }
    at += kCentralSize + name_size + extra_size + comment;
    if (!m.name.empty() && m.name.back() == '/') continue;  // a folder
    const std::string quoted = "member \"" + m.name.substr(0, 200) + "\"";
    if (!SafeName(m.name)) return refuse(quoted + " has a name that leaves the archive");
    if (flags & 1) return refuse(quoted + " is encrypted");
    if (method != 0 && method != 8) return refuse(quoted + " uses compression method " + std::to_string(method));
    m.deflated = method == 8;
    if (!in.Has(local, kLocalSize) || in.Get(local, 4) != kLocalMark)
      return refuse(quoted + " does not begin where the directory says");
    m.offset = local + kLocalSize + in.Get(local + 26, 2) + in.Get(local + 28, 2);
    if (!in.Has(m.offset, m.packed_size)) return refuse(quoted + " ends outside the file");
    if (m.deflated ? m.size / kBestRatio > m.packed_size + 1 : m.size != m.packed_size)
      return refuse(quoted + " claims " + std::to_string(m.size) + " bytes, which its " +
                    std::to_string(m.packed_size) + " cannot hold");
    if (!zip.index_.emplace(m.name, zip.members_.size()).second) return refuse(quoted + " appears twice");
    zip.members_.push_back(std::move(m));
  }
  return zip;
}

const ZipView::Member* ZipView::Find(const std::string& name) const {
  const auto it = index_.find(name);
  return it == index_.end() ? nullptr : &members_[it->second];
}

bool ZipView::CrcHolds(const Member& m) const {
  return m.deflated ? Read(m).ok() : Crc(data_ + m.offset, m.size) == m.crc;
}

Result<std::string> ZipView::Read(const Member& m) const {
  const auto damaged = [&](const char* why) {
    return Error(label_ + ": member \"" + m.name + "\" is damaged: " + why);
  };
  const uint8_t* packed = data_ + m.offset;
  std::string out;
  if (!m.deflated) {
    out.assign(reinterpret_cast<const char*>(packed), m.size);
  } else {
    out.resize(m.size);
    z_stream z = {};
    if (inflateInit2(&z, -MAX_WBITS) != Z_OK) return damaged("zlib cannot start");
    uint64_t in_left = m.packed_size, done = 0;
    int state = Z_OK;
    uint8_t none = 0;
    z.next_in = const_cast<uint8_t*>(packed);
    while (state == Z_OK) {
      z.avail_in = static_cast<uInt>(std::min<uint64_t>(in_left, 1u << 30));
      z.avail_out = static_cast<uInt>(std::min<uint64_t>(m.size - done, 1u << 30));
      z.next_out = m.size - done > 0 ? reinterpret_cast<uint8_t*>(out.data()) + done : &none;
      const uInt in_before = z.avail_in, out_before = z.avail_out;
      state = inflate(&z, Z_NO_FLUSH);
      in_left -= in_before - z.avail_in, done += out_before - z.avail_out;
      if (in_before == z.avail_in && out_before == z.avail_out) break;
    }
    inflateEnd(&z);
    if (state != Z_STREAM_END || done != m.size) return damaged("it does not unpack to the size it claims");
  }
  if (Crc(reinterpret_cast<const uint8_t*>(out.data()), out.size()) != m.crc) return damaged("its CRC does not match");
  return out;
}

}  // namespace samebits
