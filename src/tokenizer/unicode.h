// UTF-8 and the few Unicode classes that pre-tokenizers ask for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace samebits {

// General category, first letter; and the White_Space property. Unicode 15.0, whatever library is installed.
enum UnicodeClass : uint8_t {
  kLetter = 1,
  kMark = 2,
  kNumber = 4,
  kPunctuation = 8,
  kSymbol = 16,
  kSpace = 32,
};
// One byte of class bits per code point below 0x110000.
const uint8_t* UnicodeClasses();

// Text given by a user: an error names the offset of the first byte that is not UTF-8.
Status CheckUtf8(std::string_view text);
// Decodes the code point at text[*at] and moves *at past it. The text has passed CheckUtf8.
uint32_t NextCodePoint(std::string_view text, size_t* at);
void AppendUtf8(uint32_t code_point, std::string* out);

// Turns bytes that arrive in any portions into valid UTF-8: an incomplete tail is held back; wrong bytes become U+FFFD,
// one for each maximal wrong part (the Unicode recommendation). The result does not depend on the portions.
class Utf8Stream {
 public:
  std::string Push(std::string_view bytes);
  // End of the stream: a held tail becomes one U+FFFD.
  std::string Flush();
  bool holding() const { return !tail_.empty(); }

 private:
  std::string tail_;  // a proper prefix of a well-formed sequence
};

}  // namespace samebits
