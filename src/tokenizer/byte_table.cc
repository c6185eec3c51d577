#include "tokenizer/byte_table.h"

#include <array>

#include "tokenizer/unicode.h"

namespace samebits {
namespace {

struct Table {
  std::array<uint32_t, 256> of_byte;
  std::array<int, 0x144> of_character;  // -1: stands for no byte

  Table() {
    of_character.fill(-1);
    uint32_t next = 0x100;
    for (int b = 0; b < 256; ++b) {
      const bool printable = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
      of_byte[b] = printable ? b : next++;
      of_character[of_byte[b]] = b;
    }
  }
};

const Table& TheTable() {
  static const Table kTable;
  return kTable;
}

}  // namespace

uint32_t CharacterOfByte(uint8_t byte) { return TheTable().of_byte[byte]; }

std::string BytesToCharacters(std::string_view bytes) {
  std::string out;
  for (const char b : bytes) AppendUtf8(CharacterOfByte(static_cast<uint8_t>(b)), &out);
  return out;
}

bool CharactersToBytes(std::string_view characters, std::string* bytes) {
  bytes->clear();
  if (!CheckUtf8(characters).ok()) return false;
  for (size_t i = 0; i < characters.size();) {
    const uint32_t c = NextCodePoint(characters, &i);
    if (c >= TheTable().of_character.size() || TheTable().of_character[c] < 0) return false;
    bytes->push_back(static_cast<char>(TheTable().of_character[c]));
  }
  return true;
}

}  // namespace samebits
