#include "store/digest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace samebits {
namespace {

std::vector<uint8_t> Bytes(size_t n, uint32_t seed) {
  std::vector<uint8_t> out(n);
  for (auto& b : out) seed = seed * 1664525u + 1013904223u, b = static_cast<uint8_t>(seed >> 24);
  return out;
}

TEST(Digest, KnownAnswers) {
  EXPECT_EQ(HashBytes("", 0).Hex(), "99aa06d3014798d86001c324468d497f");  // the published value of XXH3-128
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256Hex(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  Digest128 d;
  ASSERT_TRUE(Digest128::FromHex("99aa06d3014798d86001c324468d497f", &d));
  EXPECT_EQ(d, HashBytes("", 0));
  EXPECT_FALSE(Digest128::FromHex("99aa06d3014798d86001c324468d497", &d));
  EXPECT_FALSE(Digest128::FromHex("99aa06d3014798d86001c324468d497G", &d));
}

TEST(Digest, SameForEveryInstructionSetAndForPieces) {
  for (const size_t n : {0, 1, 3, 4, 8, 9, 16, 17, 63, 64, 65, 127, 128, 129, 239, 240, 241, 1023, 1024, 1025, 70001}) {
    const auto bytes = Bytes(n, static_cast<uint32_t>(n) + 7);
    const Digest128 want = HashBytes(bytes.data(), n);
    for (const Isa isa : AvailableIsas()) EXPECT_EQ(HashBytesWith(isa, bytes.data(), n), want) << n << IsaName(isa);
    HashStream stream;
    for (size_t at = 0, step = 1; at < n; at += step, step = step * 2 + 1)
      stream.Update(bytes.data() + at, std::min(step, n - at));
    EXPECT_EQ(stream.Digest(), want) << n;
  }
}

TEST(Digest, OrderedSeesWhatOrderFreeForgives) {
  std::vector<float> a(8 * 33);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i);
  std::vector<float> swapped = a;
  std::swap_ranges(swapped.begin(), swapped.begin() + 33, swapped.begin() + 33 * 5);
  const auto of = [](const std::vector<float>& v) { return DigestTensor({DType::kF32, {8, 33}, v.data()}, true); };
  const TensorDigests x = of(a), y = of(swapped);
  EXPECT_NE(x.ordered, y.ordered);
  EXPECT_EQ(x.order_free, y.order_free);
  EXPECT_EQ(x.element_set, y.element_set);
  std::vector<float> in_row = a;
  std::swap(in_row[3], in_row[4]);
  EXPECT_NE(of(in_row).order_free, x.order_free);
  EXPECT_EQ(of(in_row).element_set, x.element_set);
  std::vector<float> twice = a;  // a set would forgive this, a multiset does not
  twice[3] = twice[4];
  EXPECT_NE(of(twice).element_set, x.element_set);
  EXPECT_NE(DigestTensor({DType::kF32, {33, 8}, a.data()}, false).ordered, x.ordered);
  EXPECT_NE(DigestTensor({DType::kI32, {8, 33}, a.data()}, false).ordered, x.ordered);
}

TEST(Digest, SignOfZeroAndNanPayloadCountAndAreCounted) {
  const uint32_t bits[9] = {
      0, 0x80000000u, 0x7fc00000u, 0x7fc00001u, 0xffc00000u, 0x7f800000u, 0xff800000u, 0x7f7fffffu, 1};
  const TensorRef t{DType::kF32, {9}, bits};
  EXPECT_EQ(DigestTensor(t, false).specials, (SpecialCounts{3, 2, 1}));
  uint32_t other[9];
  std::memcpy(other, bits, sizeof bits);
  other[3] = 0x7fc00000u;
  EXPECT_NE(DigestTensor({DType::kF32, {9}, other}, false).ordered, DigestTensor(t, false).ordered);
  const uint8_t fp8[6] = {0x7f, 0xff, 0x80, 0x7e, 0x00, 0x7c};
  EXPECT_EQ(DigestTensor({DType::kF8E4M3, {6}, fp8}, false).specials, (SpecialCounts{2, 0, 1}));
  EXPECT_EQ(DigestTensor({DType::kF8E5M2, {6}, fp8}, false).specials, (SpecialCounts{3, 1, 1}));
  EXPECT_EQ(DigestTensor({DType::kF8E8M0, {6}, fp8}, false).specials, (SpecialCounts{1, 0, 0}));
  EXPECT_EQ(DigestTensor({DType::kF8E4M3FNUZ, {6}, fp8}, false).specials, (SpecialCounts{1, 0, 0}));
  std::vector<uint16_t> many(1000, 0x8000);
  many[999] = 0x7fc0, many[0] = 0xff80;
  EXPECT_EQ(DigestTensor({DType::kBF16, {1000}, many.data()}, false).specials, (SpecialCounts{1, 1, 998}));
  EXPECT_EQ(DigestTensor({DType::kI16, {1000}, many.data()}, false).specials, (SpecialCounts{0, 0, 0}));
}

TEST(Digest, RowsWithStrideAndLengths) {
  const auto bytes = Bytes(4 * 64 * 4, 5);
  const int32_t lens[4] = {0, 1, 63, 64};
  const DigestRows strided{bytes.data(), DType::kF32, 4, 40, 64, nullptr};
  std::vector<uint8_t> packed;
  for (int r = 0; r < 4; ++r) packed.insert(packed.end(), bytes.begin() + r * 256, bytes.begin() + r * 256 + 160);
  const RowDigests got = DigestOf(strided);
  EXPECT_EQ(got.ordered, DigestTensor({DType::kF32, {4, 40}, packed.data()}, false).ordered);
  EXPECT_EQ(got.rows[2], HashBytes(bytes.data() + 512, 160));
  const RowDigests ragged = DigestOf({bytes.data(), DType::kF32, 4, 64, 64, lens});
  EXPECT_EQ(ragged.rows[1], HashBytes(bytes.data() + 256, 4));
  EXPECT_EQ(ragged.rows[0], HashBytes("", 0));
  const int32_t list[2][4] = {{1, 5, 9, -1}, {9, 5, 1, -1}};
  const auto sets = RowElementSets({list, DType::kI32, 2, 4, 4, nullptr});
  EXPECT_EQ(sets[0], sets[1]);
  const int32_t other[2][4] = {{1, 5, 9, -1}, {9, 5, 2, -1}};
  EXPECT_NE(RowElementSets({other, DType::kI32, 2, 4, 4, nullptr})[1], sets[1]);
}

TEST(Digest, RowsByAnyNumberOfThreadsAreTheTensors) {
  for (const int64_t cols : {1, 63, 2048, 40000})
    for (const int64_t rows : {1, 7, 129}) {
      std::vector<uint16_t> data(static_cast<size_t>(rows * cols));
      for (size_t i = 0; i < data.size(); ++i)
        data[i] = static_cast<uint16_t>(i * 40503u);  // all codes, also NaN and -0
      const TensorDigests want = DigestTensor({DType::kBF16, {rows, cols}, data.data()}, false);
      for (const int threads : {1, 2, 5}) {
        ThreadPool pool(threads);
        const RowDigests got = DigestOf({data.data(), DType::kBF16, rows, cols, cols, nullptr}, &pool);
        EXPECT_EQ(got.ordered, want.ordered);
        EXPECT_EQ(got.order_free, want.order_free);
        EXPECT_EQ(got.specials, want.specials) << rows << " x " << cols;
      }
    }
}

TEST(Digest, SubByteAndEmpty) {
  const uint8_t f4[3] = {0x21, 0x43, 0x65}, shuffled[3] = {0x65, 0x21, 0x43};
  const auto a = DigestTensor({DType::kF4, {2, 3}, f4}, true), b = DigestTensor({DType::kF4, {2, 3}, shuffled}, true);
  EXPECT_NE(a.ordered, b.ordered);
  EXPECT_EQ(a.element_set, b.element_set);
  EXPECT_NE(DigestTensor({DType::kF32, {0, 3}, nullptr}, true).ordered,
            DigestTensor({DType::kF32, {0, 4}, nullptr}, true).ordered);
}

}  // namespace
}  // namespace samebits
