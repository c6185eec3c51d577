// For tests: the roundings of format.h written the slow, obvious way, in fp64 and by search.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "numerics/format.h"

namespace samebits {

// The two bf16 around |x|, the nearer one, ties to the even one; past the middle to 2^128 infinity.
inline uint16_t SlowBF16(uint32_t u) {
  const uint16_t sign = static_cast<uint16_t>((u >> 16) & 0x8000u);
  const float magnitude = std::bit_cast<float>(u & 0x7fffffffu);
  if (std::isnan(magnitude)) return 0x7fff;
  if (std::isinf(magnitude)) return sign | 0x7f80u;
  auto value = [](uint32_t bits) {
    return bits >= 0x7f80 ? 0x1p128 : double{std::bit_cast<float>(bits << 16)};  // infinity as the next step
  };
  const uint32_t below = std::bit_cast<uint32_t>(magnitude) >> 16, above = below + 1;
  const double down = double{magnitude} - value(below), up = value(above) - double{magnitude};
  const uint32_t nearest = down < up ? below : up < down ? above : (below % 2 == 0 ? below : above);
  return static_cast<uint16_t>(sign | nearest);
}

class SlowE4M3 {
 public:
  SlowE4M3() {
    for (int i = 0; i < 126; ++i) middle_.push_back((Value(i) + Value(i + 1)) / 2);
  }
  // The value of byte i < 127, from the definition.
  static double Value(int i) {
    const int e = i >> 3, m = i & 7;
    return e == 0 ? std::ldexp(m, -9) : std::ldexp(8 + m, e - 10);
  }
  uint8_t Round(uint32_t u) const {
    const uint8_t sign = static_cast<uint8_t>((u >> 24) & 0x80u);
    const float magnitude = std::bit_cast<float>(u & 0x7fffffffu);
    if (std::isnan(magnitude)) return 0x7f;
    // The number of middles below |x|; on a middle itself, the even neighbour.
    const auto at = std::lower_bound(middle_.begin(), middle_.end(), double{magnitude});
    int i = static_cast<int>(at - middle_.begin());
    if (i < 126 && middle_[static_cast<size_t>(i)] == double{magnitude} && i % 2 == 1) ++i;
    return static_cast<uint8_t>(sign | i);
  }

 private:
  std::vector<double> middle_;
};

}  // namespace samebits
