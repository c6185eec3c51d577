#include <algorithm>
#include <cmath>

#include "base/strings.h"
#include "case.h"
#include "numerics/random_inputs.h"
#include "ops/gemm/gemm.h"
#include "ops/topk/topk.h"
#include "store/digest.h"

namespace samebits {
namespace {

PackedWeight Packed(DType dtype, const void* data, int64_t n, int64_t k, const float* scale = nullptr) {
  auto weight = PackedWeight::Pack("w", dtype, data, n, k, k, scale);
  ExpectOk(weight.status());
  return std::move(*weight);
}

// fp32 output, the same on every context and in the reference.
std::vector<float> Product(const ConstMat& a, const PackedWeight& b, const std::vector<float>* a_scale = nullptr) {
  GemmArgs args;
  args.a = a, args.b = &b;
  if (a_scale)
    args.a_scale = View<const float>(a_scale->data(), a.rows,
                                     static_cast<int64_t>(a_scale->size()) / std::max<int64_t>(a.rows, 1));
  std::vector<float> expected(static_cast<size_t>(a.rows * b.n()));
  args.out = View<float>(expected.data(), a.rows, b.n());
  ExpectOk(CheckGemm(args));
  GemmRef(args);
  for (const CpuContext& context : Contexts()) {
    std::vector<float> got(expected.size(), FromBits(0x7fc00000u));
    args.out = View<float>(got.data(), a.rows, b.n());
    ExpectOk(Gemm(context, args));
    Expect(SameBytesOf(got, expected),
           std::string("backend gives other bits than the reference: ") + IsaName(context.isa));
  }
  return expected;
}

void GemmRowInBatch(Members& in, Members& want) {
  const std::vector<BF16> x = Row<BF16>(in["x_bf16"]), w = Row<BF16>(in["w_bf16"]);
  const int64_t k = Count(in["K"], 1 << 24);
  if (static_cast<int64_t>(x.size()) != k || static_cast<int64_t>(w.size()) != k) Malformed("x and w need K values");
  in.Find("row_positions"), in.Find("other_rows");
  want.Flag("bit_identical_for_every_m_and_position");
  const PackedWeight weight = Packed(DType::kBF16, w.data(), 1, k);
  RandomInputs random(29);
  std::vector<float> seen;
  for (const int64_t m : Row<int64_t>(in["m_values"])) {
    if (m < 1 || m > 4096) Malformed("an M out of range");
    for (const int64_t at : {int64_t{0}, m / 2, m - 1}) {
      std::vector<BF16> rows = random.NormalBF16(m * k, 50.0f);
      std::copy(x.begin(), x.end(), rows.begin() + at * k);
      seen.push_back(Product(View<const BF16>(rows.data(), m, k), weight)[static_cast<size_t>(at)]);
      Expect(Bits(seen.back()) == Bits(seen.front()),
             Format("other bits in place %lld of %lld rows", (long long)at, (long long)m));
    }
  }
  Expect(!seen.empty(), "no m_values");
  ExpectNear("the dot product", double{seen[0]}, want["exact"], Value<double>(want["abs_err_bound"]));
}

template <class T>
std::vector<T> Narrow(const std::vector<float>& x);
template <>
std::vector<float> Narrow(const std::vector<float>& x) {
  return x;
}
template <>
std::vector<BF16> Narrow(const std::vector<float>& x) {
  std::vector<BF16> v;
  for (const float f : x) v.push_back(RoundToBF16(f));
  return v;
}
template <>
std::vector<E4M3> Narrow(const std::vector<float>& x) {
  std::vector<E4M3> v;
  for (const float f : x) v.push_back(RoundToE4M3(f));
  return v;
}

// Integers -8..7 are exact in every operand type.
template <class T>
void ExactIn(const std::vector<float>& x, const std::vector<float>& w, int64_t m_all, int64_t n, int64_t k, Members& in,
             Members& want) {
  const std::vector<T> a = Narrow<T>(x), b = Narrow<T>(w);
  const bool fp8 = std::is_same_v<T, E4M3>;
  const int64_t blocks = (k + kScaleBlock - 1) / kScaleBlock;
  const std::vector<float> b_scale(static_cast<size_t>((n + kScaleBlock - 1) / kScaleBlock * blocks), 1.0f);
  const PackedWeight weight = Packed(DTypeOf<T>::value, b.data(), n, k, fp8 ? b_scale.data() : nullptr);
  auto product = [&](int64_t m) {
    const std::vector<float> a_scale(static_cast<size_t>(m * blocks), 1.0f);
    return Product(View<const T>(a.data(), m, k), weight, fp8 ? &a_scale : nullptr);
  };
  const std::vector<float> all = product(m_all);
  auto row = [&](const char* name, int64_t r) {
    const Json* expected = want.Find(name);
    if (expected == nullptr) return;
    std::vector<int64_t> got;  // as many as the case lists, from the left
    for (int64_t j = 0; j < std::min<int64_t>(n, static_cast<int64_t>(List(*expected).size())); ++j)
      got.push_back(static_cast<int64_t>(all[static_cast<size_t>(r * n + j)]));
    ExpectInts(name, got, *expected);
  };
  row("first_row", 0);
  row("last_row", m_all - 1);
  if (const Json* sum = want.Find("sum_of_all")) {
    double total = 0;
    for (const float v : all) total += double{v};
    ExpectNear("sum_of_all", total, *sum, 0);
  }
  if (const Json* sha = want.Find("sha256_f32le")) ExpectText("sha256_f32le", Sha256Hex(BytesOf(all)), *sha);
  want.Flag("same_rows_for_every_m");
  for (const int64_t m : Row<int64_t>(in["m_values"])) {
    if (m < 1 || m > m_all) Malformed("an M out of range");
    Expect(SameBytesOf(product(m), std::vector<float>(all.begin(), all.begin() + m * n)),
           Format("the first %lld rows alone give other bits", (long long)m));
  }
}

void GemmExact(Members& in, Members& want) {
  const int64_t m = Count(in["M"], 1 << 14), n = Count(in["N"], 1 << 14), k = Count(in["K"], 1 << 20);
  if (m < 1 || n < 1 || k < 1 || m * k > (1 << 26) || n * k > (1 << 26)) Malformed("sizes out of range");
  auto ints = [](const Json& seed, int64_t count) {
    CaseGenerator lcg(static_cast<uint32_t>(Value<int64_t>(seed)));
    std::vector<float> v;
    for (int64_t i = 0; i < count; ++i) v.push_back(static_cast<float>(static_cast<int>(lcg.Next() >> 28) - 8));
    return v;
  };
  const std::vector<float> x = ints(in["x_seed"], m * k), w = ints(in["w_seed"], n * k);
  ExactIn<BF16>(x, w, m, n, k, in, want);
  ExactIn<float>(x, w, m, n, k, in, want);
  ExactIn<E4M3>(x, w, m, n, k, in, want);
}

void GemmOutDtype(Members& in, Members& want) {
  const std::vector<BF16> x = Row<BF16>(in["x_bf16"]);
  const Rows<BF16> w = Matrix<BF16>(in["w_bf16"]);
  if (static_cast<int64_t>(x.size()) != w.cols) Malformed("x and w differ in length");
  const std::vector<float> logits =
      Product(View<const BF16>(x.data(), 1, w.cols), Packed(DType::kBF16, w.data.data(), w.rows, w.cols));
  const Json& expected = List(want["logits_f32"]);
  Expect(expected.size() == logits.size(), "logits_f32 has another length");
  for (size_t i = 0; i < logits.size(); ++i) ExpectBits(Format("logit %zu", i), logits[i], expected[i]);
  std::vector<int32_t> top(static_cast<size_t>(Count(in["top"], w.rows)));
  TopkArgs args;
  args.scores = View<const float>(logits.data(), 1, w.rows), args.output = TopkOutput::kByRank;
  args.indices = View<int32_t>(top.data(), 1, static_cast<int64_t>(top.size()));
  ExpectOk(Topk(Contexts()[0], args));
  ExpectInts("top_indices", top, want["top_indices"]);
}

void Fp8BlockGemm(Members& in, Members& want) {
  Rows<E4M3> a, b;
  if (const Json* seed = in.Find("ab_seed")) {
    CaseGenerator lcg(static_cast<uint32_t>(Value<int64_t>(*seed)));
    const std::vector<E4M3> table = Row<E4M3>(in["table_e4m3"]);
    if (table.size() != 8) Malformed("table_e4m3 needs eight bytes");
    a.rows = Count(in["M"], 1 << 14), b.rows = Count(in["N"], 1 << 14), a.cols = b.cols = Count(in["K"], 1 << 20);
    for (int64_t i = 0; i < a.rows * a.cols; ++i) a.data.push_back(table[lcg.Next() >> 29]);
    for (int64_t i = 0; i < b.rows * b.cols; ++i) b.data.push_back(table[lcg.Next() >> 29]);
  } else {
    a = Matrix<E4M3>(in["a_e4m3"]), b = Matrix<E4M3>(in["b_e4m3"]);
  }
  const Rows<float> a_scale = Matrix<float>(in["a_scale"]), b_scale = Matrix<float>(in["b_scale"]);
  const int64_t m = Count(in["M"], 1 << 14), n = Count(in["N"], 1 << 14), k = Count(in["K"], 1 << 20);
  const int64_t blocks = (k + kScaleBlock - 1) / kScaleBlock;
  if (a.rows != m || b.rows != n || a.cols != k || b.cols != k || a_scale.rows != m || a_scale.cols != blocks ||
      b_scale.rows != (n + kScaleBlock - 1) / kScaleBlock || b_scale.cols != blocks)
    Malformed("operands and scales do not fit M, N and K");
  const std::vector<float> out =
      Product(View<const E4M3>(a.data.data(), m, k), Packed(DType::kF8E4M3, b.data.data(), n, k, b_scale.data.data()),
              &a_scale.data);
  auto each = [&](const Json& rows, const auto& check) {
    Expect(static_cast<int64_t>(List(rows).size()) == m, "out has another shape");
    for (int64_t r = 0; r < m; ++r)
      for (int64_t c = 0; c < n; ++c)
        check(Format("out[%lld][%lld]", (long long)r, (long long)c), out[static_cast<size_t>(r * n + c)],
              List(rows[static_cast<size_t>(r)]).at(static_cast<size_t>(c)));
  };
  if (const Json* x = want.Find("out_f32")) each(*x, ExpectBits);
  if (const Json* x = want.Find("out"))
    each(*x, [](const std::string& what, float got, const Json& j) { ExpectNear(what, double{got}, j, 0); });
  if (const Json* x = want.Find("sha256_f32le")) ExpectText("sha256_f32le", Sha256Hex(BytesOf(out)), *x);
}

void E8m0(Members& in, Members& want) {
  if (const Json* bytes = in.Find("decode_bytes")) {
    const Json& expected = List(want["decoded_f32"]);
    Expect(expected.size() == List(*bytes).size(), "decoded_f32 has another length");
    for (size_t i = 0; i < bytes->size(); ++i)
      ExpectBits("decoded " + (*bytes)[i].dump(), ToF32(E8M0{static_cast<uint8_t>(Count((*bytes)[i], 255))}),
                 expected[i]);
  }
  if (const Json* values = in.Find("encode_ceil_f32")) {
    std::vector<int32_t> got;
    for (const float x : Row<float>(*values)) got.push_back(CeilToE8M0(x).bits);
    ExpectInts("encoded_bytes", got, want["encoded_bytes"]);
  }
}

void E8m0Dot(Members& in, Members& want) {
  const size_t n = static_cast<size_t>(Count(in["n"], 1 << 24));
  const std::vector<float> a(n, ToF32(Value<BF16>(in["a_bf16"]))), b(n, ToF32(Value<E4M3>(in["b_e4m3"])));
  const int64_t k = static_cast<int64_t>(n);
  const float dot = Product(View<const float>(a.data(), 1, k), Packed(DType::kF32, b.data(), 1, k))[0];
  ExpectBits("out_f32", Mul(dot, ToF32(E8M0{static_cast<uint8_t>(Count(in["scale_byte"], 255))})), want["out_f32"]);
}

void F32ToE4m3(Members& in, Members& want) {
  const std::vector<float> x = Row<float>(in["x_f32"]);
  const std::vector<E4M3> expected = Row<E4M3>(want["saturating"]);
  want.Find("nan_on_overflow");  // the other rule, which this build does not use
  Expect(expected.size() == x.size(), "saturating has another length");
  for (size_t i = 0; i < x.size(); ++i) {
    const uint8_t got = RoundToE4M3(x[i]).bits;
    const bool same = IsNan(x[i]) ? (got & 0x7f) == 0x7f : got == expected[i].bits;
    Expect(same, Format("0x%08x becomes 0x%02x, expected 0x%02x", Bits(x[i]), got, expected[i].bits));
  }
}

constexpr CaseOp kOps[] = {{"gemm_row_in_batch", GemmRowInBatch},
                           {"gemm_exact", GemmExact},
                           {"gemm_out_dtype", GemmOutDtype},
                           {"fp8_block_gemm", Fp8BlockGemm},
                           {"e8m0", E8m0},
                           {"e8m0_dot", E8m0Dot},
                           {"f32_to_e4m3", F32ToE4m3}};

}  // namespace

std::span<const CaseOp> GemmCaseOps() { return kOps; }

}  // namespace samebits
