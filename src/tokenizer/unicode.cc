#include "tokenizer/unicode.h"

#include <vector>

#include "base/strings.h"

namespace samebits {
namespace {

constexpr uint32_t kRanges[] = {
#include "tokenizer/unicode_ranges.inc"
};

// What may follow the lead byte of a well-formed sequence (Unicode 15, table 3-7).
struct Lead {
  int length;         // 0: no sequence begins with this byte
  uint8_t low, high;  // bounds of the second byte
};

Lead LeadOf(uint8_t b) {
  if (b < 0x80) return {1, 0, 0};
  if (b < 0xC2) return {0, 0, 0};
  if (b < 0xE0) return {2, 0x80, 0xBF};
  if (b == 0xE0) return {3, 0xA0, 0xBF};
  if (b == 0xED) return {3, 0x80, 0x9F};
  if (b < 0xF0) return {3, 0x80, 0xBF};
  if (b == 0xF0) return {4, 0x90, 0xBF};
  if (b < 0xF4) return {4, 0x80, 0xBF};
  if (b == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

// Length of the longest prefix of `text` that is a prefix of one well-formed sequence; *complete: the whole sequence.
// 0: the first byte begins nothing.
size_t WellFormedPrefix(std::string_view text, bool* complete) {
  const Lead lead = LeadOf(static_cast<uint8_t>(text[0]));
  *complete = false;
  if (lead.length == 0) return 0;
  size_t n = 1;
  while (n < text.size() && n < static_cast<size_t>(lead.length)) {
    const uint8_t b = static_cast<uint8_t>(text[n]);
    if (b < (n == 1 ? lead.low : 0x80) || b > (n == 1 ? lead.high : 0xBF)) break;
    ++n;
  }
  *complete = n == static_cast<size_t>(lead.length);
  return n;
}

}  // namespace

const uint8_t* UnicodeClasses() {
  static const std::vector<uint8_t> kClasses = [] {
    std::vector<uint8_t> classes(0x110000);
    const size_t n = std::size(kRanges);
    for (size_t i = 0; i < n; ++i) {
      const uint32_t end = i + 1 < n ? kRanges[i + 1] >> 8 : 0x110000;
      for (uint32_t c = kRanges[i] >> 8; c < end; ++c) classes[c] = static_cast<uint8_t>(kRanges[i]);
    }
    return classes;
  }();
  return kClasses.data();
}

Status CheckUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    bool complete;
    const size_t n = WellFormedPrefix(text.substr(i, 4), &complete);
    if (!complete)
      return Error(
          Format("the text is not UTF-8: byte 0x%02X at offset %zu begins no valid character; convert the "
                 "text to UTF-8",
                 static_cast<uint8_t>(text[i]), i));
    i += n;
  }
  return Ok();
}

uint32_t NextCodePoint(std::string_view text, size_t* at) {
  const uint8_t b = static_cast<uint8_t>(text[*at]);
  const int length = LeadOf(b).length;
  SB_CHECK(length > 0 && *at + length <= text.size(), "text was not checked");
  uint32_t c = length == 1 ? b : b & (0x7F >> length);
  for (int i = 1; i < length; ++i) c = c << 6 | (static_cast<uint8_t>(text[*at + i]) & 0x3F);
  *at += length;
  return c;
}

void AppendUtf8(uint32_t c, std::string* out) {
  if (c < 0x80) {
    out->push_back(static_cast<char>(c));
    return;
  }
  const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  out->push_back(static_cast<char>((0xF00 >> (more + 1)) | (c >> (6 * more))));
  for (int i = more - 1; i >= 0; --i) out->push_back(static_cast<char>(0x80 | ((c >> (6 * i)) & 0x3F)));
}

static constexpr char kReplacement[] = "\xEF\xBF\xBD";

std::string Utf8Stream::Push(std::string_view bytes) {
  tail_.append(bytes);
  std::string out;
  size_t i = 0;
  while (i < tail_.size()) {
    bool complete;
    const size_t n = WellFormedPrefix(std::string_view(tail_).substr(i), &complete);
    if (complete) {
      out.append(tail_, i, n);
      i += n;
    } else if (n > 0 && i + n == tail_.size()) {
      break;  // more bytes may complete it
    } else {
      out += kReplacement;
      i += n == 0 ? 1 : n;
    }
  }
  tail_.erase(0, i);
  return out;
}

std::string Utf8Stream::Flush() {
  const bool held = holding();
  tail_.clear();
  return held ? kReplacement : "";
}

}  // namespace samebits
