// GEMM: every allowed dtype combination x instruction set x threads against the reference in bytes; rows independent of
// the batch; fp64 error bound; each broken rule caught.

#include "ops/gemm/gemm.h"

#include <cmath>

#include "ops/op_testing.h"

namespace samebits {
namespace {

struct Problem {
  int64_t m, n, k;
  GemmOutput types;
  std::vector<BF16> a16, b16;
  std::vector<float> a32, b32, sa, sb, bias;
  std::vector<E4M3> a8, b8;
  PackedWeight packed;

  Problem(int64_t m_, int64_t n_, int64_t k_, const GemmOutput& t, uint64_t seed) : m(m_), n(n_), k(k_), types(t) {
    RandomInputs random(seed);
    // Rows over several binades, so that an order of additions shows.
    a32 = random.NormalF32(m * k), b32 = random.NormalF32(n * k);
    for (size_t i = 0; i < a32.size(); i += 7) a32[i] *= 256.0f;
    bias = random.NormalF32(n);
    for (const float x : a32) a16.push_back(RoundToBF16(x)), a8.push_back(RoundToE4M3(x * 4.0f));
    for (const float x : b32) b16.push_back(RoundToBF16(x)), b8.push_back(RoundToE4M3(x * 40.0f));
    const int64_t blocks = (k + 127) / 128, scale_rows = (n + 127) / 128;
    for (int64_t i = 0; i < m * blocks; ++i) sa.push_back(0.3f + random.Uniform());
    for (int64_t i = 0; i < scale_rows * blocks; ++i) sb.push_back(0.3f + random.Uniform());
    const void* b = types.b == DType::kBF16  ? static_cast<const void*>(b16.data())
                    : types.b == DType::kF32 ? static_cast<const void*>(b32.data())
                                             : static_cast<const void*>(b8.data());
    Result<PackedWeight> p = PackedWeight::Pack("w", types.b, b, n, k, k, sb.data());
    EXPECT_TRUE(p.ok()) << p.status().text();
    packed = *p;
  }
  // Output stride n + 3: the padding must stay poisoned.
  template <class T>
  GemmArgs Args(std::vector<T>* out, bool with_bias = true) const {
    *out = Poisoned<T>(m * (n + 3));
    GemmArgs args;
    if (types.a == DType::kBF16) args.a = View<const BF16>(a16.data(), m, k);
    if (types.a == DType::kF32) args.a = View<const float>(a32.data(), m, k);
    if (types.a == DType::kF8E4M3) {
      args.a = View<const E4M3>(a8.data(), m, k);
      args.a_scale = View<const float>(sa.data(), m, (k + 127) / 128);
    }
    args.b = &packed;
    if (with_bias) args.bias = bias.data();
    args.out = View<T>(out->data(), m, n, n + 3);
    return args;
  }
};

template <class T>
void CompareAll(const Problem& p) {
  std::vector<T> expected;
  GemmRef(p.Args(&expected));
  ForEachCpu([&](const CpuContext& context) {
    std::vector<T> out;
    const GemmArgs args = p.Args(&out);
    ASSERT_TRUE(Gemm(context, args).ok());
    EXPECT_TRUE(SameBytes(out, expected)) << "M " << p.m << " N " << p.n << " K " << p.k << " " << DTypeName(p.types.a)
                                          << " x " << DTypeName(p.types.b) << " -> " << DTypeName(p.types.out);
  });
}

TEST(Gemm, EveryBackendEqualsTheReference) {
  const int64_t ms[] = {1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 15, 16, 17, 31, 33, 64, 96, 97, 100};
  const int64_t ns[] = {1, 15, 16, 17, 33, 48};
  const int64_t ks[] = {1, 63, 64, 65, 127, 128, 129, 200, 255, 256, 257, 1023, 1024, 1025, 2049};
  uint64_t seed = 1;
  for (const GemmOutput& types : kGemmOutputs) {
    // A walk that meets every value of each list, short enough for the scalar reference.
    for (size_t i = 0; i < std::size(ks); ++i) {
      ++seed;
      const Problem p(ms[(i * 3 + seed) % std::size(ms)], ns[(i + seed) % std::size(ns)], ks[i], types, seed);
      if (types.out == DType::kBF16) {
        CompareAll<BF16>(p);
      } else {
        CompareAll<float>(p);
      }
    }
  }
}

TEST(Gemm, RowsDoNotDependOnTheBatch) {
  for (const GemmOutput& types : kGemmOutputs) {
    if (types.out != DType::kF32) continue;
    const Problem p(130, 40, 1100, types, 77);
    ForEachCpu([&](const CpuContext& context) {
      std::vector<float> all;
      ASSERT_TRUE(Gemm(context, p.Args(&all)).ok());
      for (const int64_t row : {int64_t{0}, int64_t{5}, int64_t{95}, int64_t{96}, int64_t{129}}) {
        std::vector<float> one;
        GemmArgs args = p.Args(&one);
        args.a = args.a.Rows(row, 1), args.out = args.out.Rows(0, 1);
        if (args.a_scale.data) args.a_scale = args.a_scale.Rows(row, 1);
        ASSERT_TRUE(Gemm(context, args).ok());
        EXPECT_EQ(std::memcmp(one.data(), all.data() + row * (p.n + 3), static_cast<size_t>(p.n) * 4), 0)
            << "row " << row;
      }
    });
  }
}

TEST(Gemm, BatchEqualsSingleCalls) {
  const GemmOutput types = {DType::kBF16, DType::kBF16, DType::kBF16};
  std::vector<std::unique_ptr<Problem>> problems;
  uint64_t seed = 500;
  for (const int64_t m : {1, 0, 17, 3, 1, 120})
    for (const int64_t n : {48, 33}) problems.push_back(std::make_unique<Problem>(m, n, 192, types, ++seed));
  ForEachCpu([&](const CpuContext& context) {
    std::vector<std::vector<BF16>> outs(problems.size());
    std::vector<GemmArgs> batch;
    for (size_t i = 0; i < problems.size(); ++i) batch.push_back(problems[i]->Args(&outs[i]));
    ASSERT_TRUE(GemmBatch(context, batch).ok());
    for (size_t i = 0; i < problems.size(); ++i) {
      std::vector<BF16> expected;
      GemmRef(problems[i]->Args(&expected));
      EXPECT_TRUE(SameBytes(outs[i], expected)) << "item " << i;
    }
  });
}

// Bound: each chain of n additions loses at most n ulp of the sum of magnitudes; 128 + 8 + segments additions deep.
TEST(Gemm, ErrorAgainstFp64IsWithinTheBound) {
  const GemmOutput types = {DType::kF32, DType::kF32, DType::kF32};
  const Problem p(7, 33, 5000, types, 9);
  std::vector<float> out;
  ThreadPool pool(1);
  ASSERT_TRUE(Gemm(CpuContext{&pool, BestIsa()}, p.Args(&out, false)).ok());
  const double depth = 128 + 8 + 5;
  for (int64_t m = 0; m < p.m; ++m)
    for (int64_t n = 0; n < p.n; ++n) {
      double exact = 0, magnitude = 0;
      for (int64_t k = 0; k < p.k; ++k) {
        const double x =
            double{p.a32[static_cast<size_t>(m * p.k + k)]} * double{p.b32[static_cast<size_t>(n * p.k + k)]};
        exact += x, magnitude += std::fabs(x);
      }
      EXPECT_LE(std::fabs(double{out[static_cast<size_t>(m * (p.n + 3) + n)]} - exact), depth * 0x1p-24 * magnitude);
    }
}

TEST(Gemm, Fp8BlocksAreExact) {
  // All-maximum operands: 128 * 448^2 needs 43 bits. And a large product that cancels, leaving a small one.
  E4M3 a[128], b[128];
  for (int i = 0; i < 128; ++i) a[i] = b[i] = E4M3{0x7e};
  EXPECT_EQ(ExactDotE4M3(a, b, 128), 128.0f * 448.0f * 448.0f);
  for (int i = 0; i < 128; ++i) a[i] = E4M3{static_cast<uint8_t>(i % 2 ? 0xfe : 0x7e)};
  a[127] = a[126] = E4M3{0x01};  // 2^-9
  b[127] = b[126] = E4M3{0x01};
  EXPECT_EQ(ExactDotE4M3(a, b, 128), 2 * 0x1p-18f);
}

TEST(Gemm, BrokenRulesAreCaught) {
  const GemmOutput types = {DType::kBF16, DType::kBF16, DType::kF32};
  const Problem p(3, 17, 2500, types, 4);
  std::vector<float> contract, broken;
  GemmRef(p.Args(&contract));
  for (const GemmRule& rule : {GemmRule{.block = 64}, GemmRule{.segment = 512}, GemmRule{.splits = 2},
                               GemmRule{.bf16_accumulator_store = true}}) {
    GemmRef(p.Args(&broken), rule);
    EXPECT_FALSE(SameBytes(contract, broken));
  }
}

TEST(Gemm, WhatIsNotInTheTableIsRefusedByName) {
  const Problem p(2, 3, 5, {DType::kF32, DType::kF32, DType::kF32}, 5);
  std::vector<BF16> out16;
  GemmArgs args = p.Args(&out16);
  const Status status = CheckGemm(args);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.text().find("F32 activations with F32 weights cannot be stored as BF16"), std::string::npos)
      << status.text();
  std::vector<float> out;
  args = p.Args(&out);
  args.a = args.a.Cols(0, 4);
  EXPECT_NE(CheckGemm(args).text().find("K = 5"), std::string::npos);
}

// Extremes through every kernel: all-maximum blocks, and blocks whose maximum terms cancel to leave 2^-17.
TEST(Gemm, Fp8ExtremesEqualTheReference) {
  for (const bool cancel : {false, true}) {
    Problem p(6, 20, 1153, {DType::kF8E4M3, DType::kF8E4M3, DType::kF32}, 41);
    for (size_t i = 0; i < p.a8.size(); ++i) {
      const size_t k = i % 1153, in_block = k % 128;
      p.a8[i] = E4M3{static_cast<uint8_t>(cancel && in_block % 2 ? 0xfe : 0x7e)};
      if (cancel && in_block >= 126) p.a8[i] = E4M3{0x01};
    }
    for (size_t i = 0; i < p.b8.size(); ++i)
      p.b8[i] = E4M3{static_cast<uint8_t>(cancel && i % 1153 % 128 >= 126 ? 0x01 : 0x7e)};
    p.packed = *PackedWeight::Pack("w", DType::kF8E4M3, p.b8.data(), 20, 1153, 1153, p.sb.data());
    CompareAll<float>(p);
  }
}

TEST(Gemm, StridedActivationsEqualDenseOnes) {
  for (const GemmOutput& types : kGemmOutputs) {
    if (types.out != DType::kF32) continue;
    const Problem p(13, 33, 300, types, 43);
    std::vector<float> dense;
    GemmRef(p.Args(&dense));
    const int64_t stride = 300 + 5, size = DTypeBits(types.a) / 8;
    std::vector<uint8_t> wide = Poisoned<uint8_t>(13 * stride * size);
    const GemmArgs from = p.Args(&dense);
    for (int64_t r = 0; r < 13; ++r)
      std::memcpy(wide.data() + r * stride * size, static_cast<const uint8_t*>(from.a.data) + r * 300 * size,
                  static_cast<size_t>(300 * size));
    GemmRef(from);
    ForEachCpu([&](const CpuContext& context) {
      std::vector<float> out;
      GemmArgs args = p.Args(&out);
      args.a.data = wide.data(), args.a.stride = stride;
      ASSERT_TRUE(Gemm(context, args).ok());
      EXPECT_TRUE(SameBytes(out, dense)) << DTypeName(types.a);
    });
  }
}

TEST(Gemm, NanActivationsOfFp8AreRefused) {
  Problem p(3, 17, 130, {DType::kF8E4M3, DType::kF8E4M3, DType::kF32}, 44);
  for (const uint8_t nan : {0x7f, 0xff}) {
    p.a8[130 + 129] = E4M3{nan};
    std::vector<float> out;
    const Status status = CheckGemm(p.Args(&out));
    EXPECT_NE(status.text().find("row 1 of the F8_E4M3 activations holds 1 NaN"), std::string::npos) << status.text();
  }
}

TEST(Gemm, NanWeightsOfEveryTypeAreRefusedByName) {
  const std::vector<float> w32 = {1, 2, 3, 4, FromBits(0xffc00001u), 6};
  EXPECT_NE(PackedWeight::Pack("w32", DType::kF32, w32.data(), 2, 3, 3).status().text().find("w32: NaN at [1, 1]"),
            std::string::npos);
  const float scale = 1;
  for (const uint8_t nan : {0x7f, 0xff}) {
    const uint8_t w8[6] = {0, 1, 2, 3, 4, nan};
    EXPECT_NE(PackedWeight::Pack("w8", DType::kF8E4M3, w8, 2, 3, 3, &scale).status().text().find("w8: NaN at [1, 2]"),
              std::string::npos);
  }
}

TEST(Gemm, NanWeightsAreRefusedWithTheirPlace) {
  std::vector<BF16> w(6, BF16{0x3f80});
  w[4] = BF16{0x7fc0};
  const Result<PackedWeight> p = PackedWeight::Pack("layer.weight", DType::kBF16, w.data(), 2, 3, 3);
  ASSERT_FALSE(p.ok());
  EXPECT_NE(p.status().text().find("layer.weight: NaN at [1, 1]"), std::string::npos) << p.status().text();
}

}  // namespace
}  // namespace samebits
