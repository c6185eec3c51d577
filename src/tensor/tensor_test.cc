#include "tensor/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace samebits {
namespace {

template <class T>
TensorRef Ref(const std::vector<T>& v, Shape shape) {
  return TensorRef{DTypeOf<T>::value, std::move(shape), v.data()};
}

TEST(DType, NamesComeBack) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const DType d = static_cast<DType>(i);
    EXPECT_EQ(DTypeFromName(DTypeName(d)), d);
    EXPECT_GT(DTypeBits(d), 0);
    EXPECT_FALSE(IsInteger(d) && IsFloat(d));
  }
  for (const char* bad : {"", "F99", "f32", "F32 ", "BFLOAT16"}) EXPECT_FALSE(DTypeFromName(bad).has_value()) << bad;
  EXPECT_FALSE(IsFloat(DType::kC64) || IsInteger(DType::kC64));
}

TEST(Tensor, ShapesAndBytes) {
  EXPECT_EQ(ElementCount({}), 1);
  EXPECT_EQ(ElementCount({3, 0, 2}), 0);
  EXPECT_EQ(ShapeText({2, 3}), "[2, 3]");
  EXPECT_EQ(ShapeText({}), "[]");
  EXPECT_EQ(Tensor(DType::kF4, {3}).bytes(), 2u);
  EXPECT_EQ(Tensor(DType::kF6E2M3, {4}).bytes(), 3u);
  Tensor t = Tensor::Of<float>({2, 3, 4});
  EXPECT_EQ(t.Matrix<float>().rows, 6);
  EXPECT_EQ(t.Matrix<float>().cols, 4);
  EXPECT_EQ(Tensor::Of<float>({}).Matrix<float>().rows, 1);
  EXPECT_EQ(Tensor::Of<float>({5, 0}).Matrix<float>().rows, 0);
  for (int64_t i = 0; i < t.elements(); ++i) EXPECT_EQ(t.As<float>()[i], 0.0f);
}

TEST(Tensor, SubmatricesKeepTheStride) {
  std::vector<BF16> data(12);
  for (size_t i = 0; i < data.size(); ++i) data[i] = RoundToBF16(static_cast<float>(i));
  const ConstMat m = View<const BF16>(data.data(), 3, 4);
  EXPECT_EQ(MatAt(m.Cols(1, 2).Rows(2, 1), 0, 1), 10.0f);
  const Mat w = View<BF16>(data.data(), 3, 4);
  MatPut(w.Rows(1, 2).Cols(3, 1), 1, 0, 1.00390625f);  // a tie: to even
  EXPECT_EQ(data[11].bits, 0x3f80);
}

TEST(SameBits, MeansTypeShapeAndBytes) {
  const std::vector<float> zero = {0.0f, 1.0f}, negative = {-0.0f, 1.0f};
  EXPECT_TRUE(SameBits(Ref(zero, {2}), Ref(zero, {2})));
  EXPECT_FALSE(SameBits(Ref(zero, {2}), Ref(negative, {2})));
  EXPECT_FALSE(SameBits(Ref(zero, {2}), Ref(zero, {2, 1})));
  const std::vector<int32_t> same_bytes = {0, 0x3f800000};
  EXPECT_FALSE(SameBits(Ref(zero, {2}), Ref(same_bytes, {2})));
  const std::vector<float> nan1 = {FromBits(0x7fc00000u)}, nan2 = {FromBits(0x7fc00001u)};
  EXPECT_TRUE(SameBits(Ref(nan1, {1}), Ref(nan1, {1})));
  EXPECT_FALSE(SameBits(Ref(nan1, {1}), Ref(nan2, {1})));
  EXPECT_TRUE(SameBits(TensorRef{DType::kF32, {0}, nullptr}, TensorRef{DType::kF32, {0}, nullptr}));
}

TEST(DescribeDifference, NamesTheFirstElementAndTheUlps) {
  std::vector<float> a(12, 1.0f), b = a;
  EXPECT_EQ(DescribeDifference(Ref(a, {3, 4}), Ref(b, {3, 4})), "");
  b[6] = FromBits(Bits(1.0f) + 3);
  b[7] = 2.0f;
  const std::string text = DescribeDifference(Ref(a, {3, 4}), Ref(b, {3, 4}));
  for (const char* part : {"2 of 12", "[1, 2]", "0x3f800000", "0x3f800003", "3 ulp"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
  EXPECT_NE(DescribeDifference(Ref(a, {12}), Ref(b, {3, 4})).find("shapes differ"), std::string::npos);
  const std::vector<int32_t> c(12);
  EXPECT_NE(DescribeDifference(Ref(a, {12}), Ref(c, {12})).find("dtypes differ"), std::string::npos);
}

TEST(ElementAsDouble, EveryTypeWidensToItsDefinition) {
  auto at = [](DType d, uint64_t bits) {
    uint8_t bytes[8];
    std::memcpy(bytes, &bits, 8);
    return ElementAsDouble(TensorRef{d, {1}, bytes}, 0);
  };
  const struct {
    DType dtype;
    uint64_t bits;
    double value;
  } known[] = {
      {DType::kF16, 0x3c00, 1},
      {DType::kF16, 0x0001, 0x1p-24},
      {DType::kF16, 0xfbff, -65504},
      {DType::kF16, 0x7c00, std::numeric_limits<double>::infinity()},
      {DType::kF8E5M2, 0x3c, 1},
      {DType::kF8E5M2, 0x7b, 57344},
      {DType::kF8E5M2, 0x01, 0x1p-16},
      {DType::kF8E4M3, 0x7e, 448},
      {DType::kF8E4M3FNUZ, 0x7f, 240},
      {DType::kF8E4M3FNUZ, 0x01, 0x1p-10},
      {DType::kF8E5M2FNUZ, 0x7f, 57344},
      {DType::kF8E5M2FNUZ, 0x01, 0x1p-17},
      {DType::kF8E8M0, 0, 0x1p-127},
      {DType::kF4, 0x7, 6},
      {DType::kF4, 0x1, 0.5},
      {DType::kF4, 0xf, -6},
      {DType::kF6E2M3, 0x1f, 7.5},
      {DType::kF6E2M3, 0x01, 0.125},
      {DType::kF6E3M2, 0x1f, 28},
      {DType::kF6E3M2, 0x01, 0.0625},
      {DType::kI8, 0xff, -1},
      {DType::kU16, 0xffff, 65535},
      {DType::kI64, ~0ull, -1},
      {DType::kF64, 0x3ff0000000000000, 1},
      {DType::kBool, 1, 1},
  };
  for (const auto& k : known) EXPECT_DOUBLE_EQ(at(k.dtype, k.bits), k.value) << DTypeName(k.dtype) << " " << k.bits;
  for (const DType d : {DType::kF8E4M3FNUZ, DType::kF8E5M2FNUZ}) EXPECT_TRUE(std::isnan(at(d, 0x80)));
  EXPECT_TRUE(std::isnan(at(DType::kF8E8M0, 0xff)));
  const uint8_t packed[] = {0x21, 0x43};  // F4: low half first
  const double expected[] = {0.5, 1, 1.5, 2};
  for (int64_t i = 0; i < 4; ++i) EXPECT_DOUBLE_EQ(ElementAsDouble(TensorRef{DType::kF4, {4}, packed}, i), expected[i]);
}

}  // namespace
}  // namespace samebits
