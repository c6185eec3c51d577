// The byte-to-character table of byte-level BPE: vocabularies write each byte as one printable character.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace samebits {

// Bytes 0x21-7E, A1-AC and AE-FF stand for themselves; the other 68, in increasing order, are U+0100, U+0101, ...
uint32_t CharacterOfByte(uint8_t byte);
std::string BytesToCharacters(std::string_view bytes);
// False if a character stands for no byte (an added token written out in the vocabulary).
bool CharactersToBytes(std::string_view characters, std::string* bytes);

}  // namespace samebits
