// Every lane operation of simd.h, on every instruction set, against the scalar definitions of hd.h and format.h.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "numerics/numerics_probe.h"
#include "numerics/random_inputs.h"

namespace samebits {
namespace {

std::vector<uint32_t> Operands(uint64_t seed, int64_t n) {
  static constexpr uint32_t kSpecial[] = {0,           0x80000000u, 1,           0x80000001u, 0x007fffffu, 0x00800000u,
                                          0x3f800000u, 0xbf800000u, 0x7f7fffffu, 0xff7fffffu, 0x7f800000u, 0xff800000u,
                                          0x7fc00000u, 0xffc00001u, 0x7fffffffu, 0x4b400000u, 0x3f7fffffu};
  RandomInputs random(seed);
  std::vector<uint32_t> v(static_cast<size_t>(n));
  for (uint32_t& x : v) {
    const uint64_t kind = random.Below(3);
    x = kind == 0 ? kSpecial[random.Below(std::size(kSpecial))] : kind == 1 ? random.Bits32() : Bits(random.Normal());
  }
  return v;
}

// Which payload a NaN result of arithmetic carries is no part of the contract (a NaN is an error of the request).
bool IsArithmetic(LaneOp op) { return op <= LaneOp::kSqrt; }

template <class Row>
void ExpectLanes(const char* isa, const Row& row) {
  const int64_t blocks = 512, n = blocks * 16;
  const std::vector<uint32_t> a = Operands(1, n), b = Operands(2, n), c = Operands(3, n);
  for (int k = 0; k < static_cast<int>(LaneOp::kCount); ++k) {
    const LaneOp op = static_cast<LaneOp>(k);
    std::vector<uint32_t> out(a.size());
    row(op, a.data(), b.data(), c.data(), out.data(), blocks);
    for (size_t i = 0; i < a.size(); ++i) {
      const uint32_t expected = LaneOpScalar(op, a[i], b[i], c[i]);
      if (IsArithmetic(op) && IsNan(FromBits(expected)) && IsNan(FromBits(out[i]))) continue;
      ASSERT_EQ(out[i], expected) << isa << " operation " << k << " of " << std::hex << a[i] << " " << b[i] << " "
                                  << c[i];
    }
  }
}

TEST(Simd, LaneOperationsAreTheScalarOnes){
#define SB_ONE(isa, space) \
  if (IsaAvailable(isa)) ExpectLanes(#space, space::LaneRow);
    SB_FOR_EACH_ISA(SB_ONE)
#undef SB_ONE
}

TEST(Simd, ConversionsAreTheScalarOnesAndTailsWriteNothingPastTheEnd) {
  const std::vector<uint32_t> bits = Operands(4, 4096);
  std::vector<float> x(bits.size());
  std::memcpy(x.data(), bits.data(), bits.size() * 4);
#define SB_ONE(isa, space)                                                                                           \
  if (IsaAvailable(isa)) {                                                                                           \
    for (size_t begin = 0; begin + 48 < x.size(); begin += 41) {                                                     \
      for (const size_t n : {1u, 2u, 15u, 16u, 17u, 31u, 33u}) {                                                     \
        std::vector<BF16> half(48, BF16{0xabcd});                                                                    \
        std::vector<E4M3> byte(48, E4M3{0xab});                                                                      \
        std::vector<float> wide(48, -7.0f);                                                                          \
        space::ToBF16Row(&x[begin], half.data(), static_cast<int64_t>(n));                                           \
        space::ToE4M3Row(&x[begin], byte.data(), static_cast<int64_t>(n));                                           \
        space::FromBF16Row(half.data(), wide.data(), static_cast<int64_t>(n));                                       \
        for (size_t i = 0; i < 48; ++i) {                                                                            \
          ASSERT_EQ(half[i].bits, i < n ? RoundToBF16(x[begin + i]).bits : 0xabcd) << #space << " " << x[begin + i]; \
          ASSERT_EQ(byte[i].bits, i < n ? RoundToE4M3(x[begin + i]).bits : 0xab) << #space << " " << x[begin + i];   \
          ASSERT_EQ(Bits(wide[i]), i < n ? Bits(ToF32(half[i])) : Bits(-7.0f)) << #space;                            \
        }                                                                                                            \
      }                                                                                                              \
    }                                                                                                                \
  }
  SB_FOR_EACH_ISA(SB_ONE)
#undef SB_ONE
}

void ExpectLoads(const char* isa, void (*load)(const E4M3*, float*)) {
  for (int first = 0; first < 256; first += 16) {
    E4M3 bytes[16];
    for (int i = 0; i < 16; ++i) bytes[i].bits = static_cast<uint8_t>(first + i);
    float out[16];
    load(bytes, out);
    for (int i = 0; i < 16; ++i) {
      if ((bytes[i].bits & 0x7f) == 0x7f) continue;
      EXPECT_EQ(Bits(out[i]), Bits(ToF32(bytes[i]))) << isa << " " << first + i;
    }
  }
}

TEST(Simd, EveryE4M3ThatIsANumberLoads) {
#define SB_ONE(isa, space) \
  if (IsaAvailable(isa)) ExpectLoads(#space, space::FromE4M3Row);
  SB_FOR_EACH_ISA(SB_ONE)
#undef SB_ONE
}

void ExpectMax(const char* isa, float (*max16)(const float*)) {
  RandomInputs random(5);
  for (int t = 0; t < 200; ++t) {
    const std::vector<float> x = random.NormalF32(16);
    EXPECT_EQ(Bits(max16(x.data())), Bits(*std::max_element(x.begin(), x.end()))) << isa;
  }
}

TEST(Simd, MaxOfSixteen){
#define SB_ONE(isa, space) \
  if (IsaAvailable(isa)) ExpectMax(#space, space::RowMax16);
    SB_FOR_EACH_ISA(SB_ONE)
#undef SB_ONE
}

// Negative control: the comparison sees a product and sum with two roundings.
TEST(Simd, UnfusedFmaIsCaught) {
  const std::vector<uint32_t> a = Operands(6, 4096), b = Operands(7, 4096), c = Operands(8, 4096);
  int differ = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const float x = FromBits(a[i]), y = FromBits(b[i]), z = FromBits(c[i]);
    differ += Bits(Add(Mul(x, y), z)) != LaneOpScalar(LaneOp::kFma, a[i], b[i], c[i]);
  }
  EXPECT_GT(differ, 50);
}

}  // namespace
}  // namespace samebits
