#include "forensics/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/strings.h"
#include "numerics/random_inputs.h"

namespace samebits {
namespace {

using nlohmann::json;

Tensor FromJson(const json& j) {
  Shape shape;
  for (const json& d : j["shape"]) shape.push_back(d.get<int64_t>());
  Tensor t(*DTypeFromName(j["dtype"].get<std::string>()), shape);
  const size_t width = static_cast<size_t>(DTypeBits(t.dtype())) / 8;
  for (size_t i = 0; i < j["data"].size(); ++i) {
    const uint64_t bits = std::stoull(j["data"][i].get<std::string>(), nullptr, 16);
    std::memcpy(static_cast<char*>(t.raw()) + i * width, &bits, width);
  }
  return t;
}

json Case(int number) {
  const auto text = ReadFile(Format("%s/tests/cases/C%03d.json", SB_SOURCE_DIR, number));
  EXPECT_TRUE(text.ok()) << text.status().text();
  return json::parse(*text);
}

TEST(Compare, CasesFromReports) {
  for (const int number : {124, 125, 126, 127, 128, 129, 130, 131, 132, 133, 139, 140, 141}) {
    SCOPED_TRACE(number);
    const json c = Case(number), &want = c["expected"];
    const Tensor a = FromJson(c["input"]["a"]), b = FromJson(c["input"]["b"]);
    for (const Isa isa : AvailableIsas()) {
      const Comparison got = CompareTensorsWith(isa, a.ref(), b.ref());
      const CompareStats& s = got.stats;
      EXPECT_EQ(CompareStatusName(got.status), want["status"].get<std::string>());
      const auto same = [&](const char* name, int64_t value) { EXPECT_EQ(value, want.value(name, value)) << name; };
      same("elements", s.elements);
      same("bit_mismatches", s.bit_mismatches);
      same("first_bit_mismatch", s.first_bit);
      same("value_mismatches", s.value_mismatches);
      same("first_value_mismatch", s.first_value);
      same("nan_on_one_side", s.nan_one_side);
      same("max_ulp_of_number_pairs", static_cast<int64_t>(s.max_ulp));
      same("max_abs_index", s.max_abs_at);
      EXPECT_EQ(got.exact_values_equal, want.value("exact_values_equal", got.exact_values_equal));
      if (want.contains("max_abs_of_number_pairs")) {
        const json& m = want["max_abs_of_number_pairs"];
        if (m.is_string()) {
          EXPECT_EQ(std::to_string(s.max_abs_integer), m.get<std::string>());
        } else {
          EXPECT_DOUBLE_EQ(s.max_abs, m.get<double>());
        }
      }
    }
  }
}

TEST(Compare, RelativeL2Cases) {
  for (const int number : {134, 135, 136}) {
    const json c = Case(number);
    const auto tensor = [&](const char* name) {
      return FromJson({{"dtype", "F32"}, {"shape", {c["input"][name].size()}}, {"data", c["input"][name]}});
    };
    const double got = CompareTensors(tensor("a_f32").ref(), tensor("b_f32").ref()).stats.RelativeL2();
    EXPECT_NEAR(got, c["expected"]["relative_l2"].get<double>(), 1e-9) << number;
    EXPECT_EQ(got <= 0, c["expected"]["passes_le_zero"].get<bool>());
  }
}

// What compare.h says, in the plainest form: the vector kernels are held against it.
CompareStats Plain(const TensorRef& a, const TensorRef& b) {
  CompareStats s;
  s.elements = a.elements();
  double aa[16] = {}, bb[16] = {}, ab[16] = {}, dd[16] = {}, abs[16] = {}, same[16] = {};
  for (int64_t i = 0; i < s.elements; ++i) {
    const double x = ElementAsDouble(a, i), y = ElementAsDouble(b, i);
    const bool bits = ElementBits(a, i) == ElementBits(b, i);
    if (!bits) s.last_bit = i, s.first_bit = s.bit_mismatches++ ? s.first_bit : i;
    const auto side = [](double v, SideCounts* c) {
      c->nan += std::isnan(v), c->inf += std::isinf(v), c->neg_zero += v == 0 && std::signbit(v);
    };
    side(x, &s.a), side(y, &s.b);
    if (!(x == y || (std::isnan(x) && std::isnan(y))))
      s.last_value = i, s.first_value = s.value_mismatches++ ? s.first_value : i;
    if (std::isnan(x) != std::isnan(y)) ++s.nan_one_side;
    if (std::isnan(x) || std::isnan(y)) continue;
    ++s.number_pairs;
    const int64_t block = i / 64 * 64, end = std::min(block + 64, s.elements);
    const bool in_equal_block =
        end - block == 64 && std::memcmp(static_cast<const char*>(a.data) + block * DTypeBits(a.dtype) / 8,
                                         static_cast<const char*>(b.data) + block * DTypeBits(a.dtype) / 8,
                                         static_cast<size_t>(64 * DTypeBits(a.dtype) / 8)) == 0;
    const int lane = static_cast<int>(i % 16);
    if (std::isfinite(x) && std::isfinite(y)) {
      if (in_equal_block)
        same[lane] += x * x;
      else
        aa[lane] += x * x, bb[lane] += y * y, ab[lane] += x * y;
    }
    if (x == y) continue;
    const double m = std::fabs(x - y);
    dd[lane] += m * m, abs[lane] += m;
    (x > y ? s.a_larger : s.b_larger) += 1;
    if (m > s.max_abs) s.max_abs = m, s.max_abs_at = i;
    if (y != 0 && m / std::fabs(y) > s.max_rel) s.max_rel = m / std::fabs(y), s.max_rel_at = i;
    const uint64_t ulp = UlpDistance(a, b, i);
    s.max_ulp = std::max(s.max_ulp, ulp);
    int k = 0;
    while (k < kUlpBuckets - 1 && ulp >> (k + 1)) ++k;
    ++s.ulp_histogram[k];
  }
  for (int j = 0; j < 16; ++j) {
    s.sum_a2 += same[j] + aa[j], s.sum_b2 += same[j] + bb[j], s.sum_ab += same[j] + ab[j];
    s.sum_diff2 += dd[j], s.sum_abs += abs[j];
  }
  return s;
}

void ExpectSame(const CompareStats& got, const CompareStats& want) {
  EXPECT_EQ(std::memcmp(&got, &want, sizeof got), 0)
      << "bits " << got.bit_mismatches << " " << want.bit_mismatches << " values " << got.value_mismatches << " "
      << want.value_mismatches << " a2 " << got.sum_a2 << " " << want.sum_a2 << " abs " << got.max_abs << "@"
      << got.max_abs_at << " " << want.max_abs << "@" << want.max_abs_at << " rel " << got.max_rel << "@"
      << got.max_rel_at << " " << want.max_rel << "@" << want.max_rel_at << " ulp " << got.max_ulp << " "
      << want.max_ulp << " hist0 " << got.ulp_histogram[0] << " " << want.ulp_histogram[0];
}

TEST(Compare, EveryInstructionSetGivesThePlainMeaning) {
  uint64_t state = 20261201;
  const auto next = [&] { return state = state * 6364136223846793005u + 1442695040888963407u, state >> 33; };
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const size_t width = static_cast<size_t>(DTypeBits(dtype)) / 8;
    for (const int64_t n : {1, 15, 16, 17, 63, 64, 65, 127, 128, 129, 1000, 4099}) {
      for (const int mode : {0, 1, 2, 3, 4}) {  // equal, one ulp here and there, all differ, random bits, rare values
        Tensor a(dtype, {n}), b(dtype, {n});
        for (int64_t i = 0; i < n; ++i) {
          uint32_t u = 0x3f800000u + static_cast<uint32_t>(next() & 0x03ffffff) + (next() % 2 ? 0x80000000u : 0);
          if (mode >= 3) u = static_cast<uint32_t>(next() << 1);
          const uint32_t special[] = {0x7fc00000u, 0xffc10000u, 0x7f800000u, 0xff800000u,
                                      0x80000000u, 0,           1u << 16,    0x7f810000u};
          if (mode == 4 && next() % 3 == 0) u = special[next() % 8];
          uint32_t v = u;
          if (mode == 1 && next() % 40 == 0) v += 0x10000u;
          if (mode == 2) v += static_cast<uint32_t>(1 + next() % 9) << 16;
          if (mode == 3) v = static_cast<uint32_t>(next() << 1);
          if (mode == 4 && next() % 3 == 0) v = special[next() % 8];
          if (dtype == DType::kBF16) u >>= 16, v >>= 16;
          std::memcpy(static_cast<char*>(a.raw()) + static_cast<size_t>(i) * width, &u, width);
          std::memcpy(static_cast<char*>(b.raw()) + static_cast<size_t>(i) * width, &v, width);
        }
        const CompareStats want = Plain(a.ref(), b.ref());
        for (const Isa isa : AvailableIsas()) {
          SCOPED_TRACE(Format("%s n %d mode %d isa %s", DTypeName(dtype), static_cast<int>(n), mode, IsaName(isa)));
          ExpectSame(CompareTensorsWith(isa, a.ref(), b.ref()).stats, want);
        }
      }
    }
  }
}

TEST(Compare, UnalignedData) {
  std::string bytes(4 * 300 + 3, '\1');
  TensorRef a{DType::kF32, {300}, bytes.data() + 1}, b{DType::kF32, {300}, bytes.data() + 3};
  EXPECT_EQ(CompareTensors(a, b).status, CompareStatus::kEqualBits);
}

TEST(Compare, SlotIdsAboveTwoToThe24AreNotCastToFloat) {
  const int64_t x = (1 << 24), y = x + 1;
  const Comparison c = CompareTensors(TensorRef{DType::kI64, {1}, &x}, TensorRef{DType::kI64, {1}, &y});
  EXPECT_EQ(c.status, CompareStatus::kDifferent);
  EXPECT_EQ(c.stats.max_abs_integer, 1u);
}

TEST(Compare, ScalarsAndNarrowTypes) {
  const uint8_t x = 0x38, y = 0x39;
  Comparison c = CompareTensors(TensorRef{DType::kF8E4M3, {}, &x}, TensorRef{DType::kF8E4M3, {}, &y});
  EXPECT_EQ(c.stats.max_ulp, 1u);
  EXPECT_EQ(c.stats.elements, 1);
  const uint8_t p = 0x21, q = 0x31;  // F4 pairs: the second element differs
  c = CompareTensors(TensorRef{DType::kF4, {2}, &p}, TensorRef{DType::kF4, {2}, &q});
  EXPECT_EQ(c.stats.first_bit, 1);
  EXPECT_EQ(c.stats.bit_mismatches, 1);
}

}  // namespace
}  // namespace samebits
