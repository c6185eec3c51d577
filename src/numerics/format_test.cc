#include "numerics/format.h"

#include <gtest/gtest.h>

#include <cmath>

#include "numerics/random_inputs.h"
#include "numerics/slow_rounding.h"

namespace samebits {
namespace {

// Every 4099th bit pattern, all patterns around the borders of both formats, and every bf16 middle.
std::vector<uint32_t> Patterns() {
  std::vector<uint32_t> u;
  for (uint64_t i = 0; i < (1ull << 32); i += 4099) u.push_back(static_cast<uint32_t>(i));
  const float borders[] = {0.0f,      0x1p-149f,       0x1p-126f, 0x1p-10f, 0x1p-9f, 0x1.8p-9f,   0x1p-7f,
                           0x1.cp-7f, 0x1p-6f,         1.0f,      448.0f,   464.0f,  0x1.fep127f, 3.4e38f,
                           2.0f,      0x1.fffffep127f, 256.0f,    480.0f};
  for (const float b : borders)
    for (int d = -40; d <= 40; ++d)
      for (const uint32_t sign : {0u, 0x80000000u}) u.push_back((Bits(b) + static_cast<uint32_t>(d)) ^ sign);
  for (uint32_t h = 0; h < 0x10000; ++h)
    for (const uint32_t low : {0x7fffu, 0x8000u, 0x8001u}) u.push_back(h << 16 | low);
  return u;
}

TEST(Format, BF16RoundsToNearestEven) {
  for (const uint32_t u : Patterns()) ASSERT_EQ(RoundToBF16(FromBits(u)).bits, SlowBF16(u)) << std::hex << u;
}

TEST(Format, E4M3RoundsToNearestEvenAndSaturates) {
  const SlowE4M3 slow;
  for (const uint32_t u : Patterns()) ASSERT_EQ(RoundToE4M3(FromBits(u)).bits, slow.Round(u)) << std::hex << u;
  for (const float x : {448.0f, 464.0f, 465.0f, 1000.0f, FromBits(0x7f800000u)}) EXPECT_EQ(RoundToE4M3(x).bits, 0x7e);
  EXPECT_EQ(RoundToE4M3(-0.0f).bits, 0x80);
  EXPECT_EQ(RoundToE4M3(FromBits(0xffc00000u)).bits, 0x7f);
}

TEST(Format, EveryE4M3IsItsDefinitionAndSurvivesARoundTrip) {
  for (int i = 0; i < 256; ++i) {
    const E4M3 x{static_cast<uint8_t>(i)};
    if ((i & 0x7f) == 0x7f) {
      EXPECT_TRUE(IsNan(ToF32(x)));
      continue;
    }
    const double magnitude = SlowE4M3::Value(i & 0x7f);
    EXPECT_EQ(Bits(ToF32(x)), Bits(static_cast<float>(i & 0x80 ? -magnitude : magnitude))) << i;
    EXPECT_EQ(RoundToE4M3(ToF32(x)).bits, i);
  }
}

TEST(Format, E8M0DecodesPowersAndCeilsToThem) {
  for (int b = 0; b < 255; ++b) {
    const float power = ToF32(E8M0{static_cast<uint8_t>(b)});
    EXPECT_EQ(Bits(power), Bits(static_cast<float>(std::ldexp(1.0, b - 127)))) << b;
    EXPECT_EQ(CeilToE8M0(power).bits, b);
    EXPECT_EQ(CeilToE8M0(FromBits(Bits(power) - 1)).bits, b);
    EXPECT_EQ(CeilToE8M0(FromBits(Bits(power) + 1)).bits, b == 254 ? 254 : b + 1);
  }
  EXPECT_TRUE(IsNan(ToF32(E8M0{255})));
  EXPECT_EQ(CeilToE8M0(0x1p-149f).bits, 0);
  EXPECT_EQ(CeilToE8M0(0x1.fffffep127f).bits, 254);
}

// Negative controls: the slow references tell apart truncation, ties away from zero, and no saturation.
TEST(Format, BrokenRoundingsAreCaught) {
  auto truncated = [](uint32_t u) { return static_cast<uint16_t>(u >> 16); };
  auto away = [](uint32_t u) { return static_cast<uint16_t>((u + 0x8000u) >> 16); };
  int truncation = 0, ties_away = 0;
  for (uint32_t u = 0x3f800000u; u < 0x3f840000u; ++u) {
    truncation += truncated(u) != SlowBF16(u);
    ties_away += away(u) != SlowBF16(u);
  }
  EXPECT_GT(truncation, 100000);
  EXPECT_EQ(ties_away, 2);  // exactly the ties whose lower neighbour is even
  EXPECT_NE(SlowE4M3().Round(Bits(465.0f)), 0x7f);
}

}  // namespace
}  // namespace samebits
