#pragma once

#include <cstdint>

namespace samebits {

// xorshift64, state not 0: for orders that must not matter. Not for drawing tokens.
inline uint64_t NextRandom(uint64_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

}  // namespace samebits
