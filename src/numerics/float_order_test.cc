#include "numerics/float_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "numerics/philox.h"
#include "numerics/random_inputs.h"

namespace samebits {
namespace {

std::vector<float> Numbers() {
  std::vector<float> x = {0.0f,
                          -0.0f,
                          FromBits(1),
                          FromBits(0x80000001u),
                          FromBits(0x7f800000u),
                          FromBits(0xff800000u),
                          FromBits(0x7f7fffffu),
                          FromBits(0xff7fffffu),
                          1.0f,
                          -1.0f};
  RandomInputs random(11);
  while (x.size() < 1500) {
    const float v = FromBits(random.Bits32());
    if (!IsNan(v)) x.push_back(v);
  }
  return x;
}

TEST(FloatOrder, KeysOrderAsValuesDo) {
  const std::vector<float> x = Numbers();
  for (const float a : x)
    for (const float b : x) ASSERT_EQ(a < b, OrderKey(a) < OrderKey(b)) << a << " " << b;
}

TEST(FloatOrder, KeysComeBack) {
  for (const float a : Numbers()) {
    const uint32_t expected = Bits(a) == 0x80000000u ? 0 : Bits(a);  // the shared zero is +0
    EXPECT_EQ(Bits(FromOrderKey(OrderKey(a))), expected);
    EXPECT_GT(OrderKey(a), 0u);
  }
}

TEST(FloatOrder, NeighboursAreOneUlpApart) {
  EXPECT_EQ(OrderedBits32(0x80000000u), OrderedBits32(0));
  EXPECT_EQ(OrderedBits32(1) - OrderedBits32(0x80000001u), 2);
  EXPECT_EQ(OrderedBits32(0x40000000u) - OrderedBits32(0x3fffffffu), 1);
  EXPECT_EQ(OrderedBits16(0x8000), OrderedBits16(0));
  EXPECT_EQ(OrderedBits16(0x0001) - OrderedBits16(0x8001), 2);
}

// Negative control: the raw bits, taken as unsigned, are another order.
TEST(FloatOrder, RawBitsAreNotTheOrder) { EXPECT_GT(Bits(-1.0f), Bits(1.0f)); }

// The known answers published with the generator (Random123, kat_vectors).
TEST(Philox, KnownAnswers) {
  auto expect = [](const Philox4& got, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    EXPECT_EQ(got.v[0], a);
    EXPECT_EQ(got.v[1], b);
    EXPECT_EQ(got.v[2], c);
    EXPECT_EQ(got.v[3], d);
  };
  expect(Philox4x32(0, 0, 0), 0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u);
  expect(Philox4x32(~0ull, ~0ull, ~0ull), 0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu);
  expect(Philox4x32(0x299f31d0a4093822ull, 0x85a308d3243f6a88ull, 0x0370734413198a2eull), 0xd16cfe09u, 0x94fdccebu,
         0x5001e420u, 0x24126ea1u);
}

}  // namespace
}  // namespace samebits
