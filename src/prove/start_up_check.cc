#include "prove/start_up_check.h"

#include <atomic>
#include <cstring>
#include <functional>
#include <numeric>

#include "base/strings.h"
#include "numerics/random_inputs.h"
#include "ops/attention/attention.h"
#include "ops/elementwise/elementwise.h"
#include "ops/embed/embed.h"
#include "ops/gemm/gemm.h"
#include "ops/hadamard/hadamard.h"
#include "ops/indexer/indexer.h"
#include "ops/moe/moe.h"
#include "ops/norm/norm.h"
#include "ops/quant/quant.h"
#include "ops/rope/rope.h"
#include "ops/route/route.h"
#include "ops/sample/sample.h"
#include "ops/topk/topk.h"
#include "prove/golden_digests.h"
#include "prove/start_up_hashes.h"

namespace samebits {
namespace {

// FNV-1a, 64 bit: the check needs no speed and no dependency.
struct Hash {
  uint64_t value = 0xcbf29ce484222325u;
  template <class T>
  void Add(const std::vector<T>& v) {
    const uint8_t* p = reinterpret_cast<const uint8_t*>(v.data());
    for (size_t i = 0; i < v.size() * sizeof(T); ++i) value = (value ^ p[i]) * 0x100000001b3u;
  }
};

struct Check {
  const char* op;
  const char* plan;
  const char* test;
  std::function<Status(const CpuContext&, Hash*)> run;
};

template <class T>
std::vector<T> Poisoned(int64_t n) {
  std::vector<T> v(static_cast<size_t>(n));
  std::memset(static_cast<void*>(v.data()), 0xff, v.size() * sizeof(T));
  return v;
}

std::vector<E4M3> RandomE4M3(RandomInputs* random, int64_t n) {
  std::vector<E4M3> v(static_cast<size_t>(n));
  for (E4M3& x : v) x = RoundToE4M3(random->Normal() * 64.0f);
  return v;
}

Status GemmCheck(const CpuContext& context, Hash* hash, DType a_type, DType b_type, bool f32_out) {
  constexpr int64_t kM = 5, kN = 33, kK = 1030;
  RandomInputs random(11);
  const std::vector<BF16> a16 = random.NormalBF16(kM * kK), b16 = random.NormalBF16(kN * kK);
  const std::vector<float> a32 = random.NormalF32(kM * kK), b32 = random.NormalF32(kN * kK);
  const std::vector<E4M3> a8 = RandomE4M3(&random, kM * kK), b8 = RandomE4M3(&random, kN * kK);
  const int64_t blocks = (kK + kScaleBlock - 1) / kScaleBlock;
  std::vector<float> sa(static_cast<size_t>(kM * blocks)), sb(static_cast<size_t>(blocks));
  for (float& s : sa) s = 0.5f + random.Uniform();
  for (float& s : sb) s = 0.5f + random.Uniform();
  const void* b = b_type == DType::kBF16  ? static_cast<const void*>(b16.data())
                  : b_type == DType::kF32 ? static_cast<const void*>(b32.data())
                                          : static_cast<const void*>(b8.data());
  SB_ASSIGN(const PackedWeight packed, PackedWeight::Pack("self-test", b_type, b, kN, kK, kK, sb.data()));
  GemmArgs args;
  if (a_type == DType::kBF16) args.a = View<const BF16>(a16.data(), kM, kK);
  if (a_type == DType::kF32) args.a = View<const float>(a32.data(), kM, kK);
  if (a_type == DType::kF8E4M3) {
    args.a = View<const E4M3>(a8.data(), kM, kK);
    args.a_scale = View<const float>(sa.data(), kM, blocks);
  }
  args.b = &packed;
  std::vector<BF16> out16 = Poisoned<BF16>(kM * kN);
  std::vector<float> out32 = Poisoned<float>(kM * kN);
  if (f32_out) {
    args.out = View<float>(out32.data(), kM, kN);
  } else {
    args.out = View<BF16>(out16.data(), kM, kN);
  }
  SB_RETURN_IF_ERROR(Gemm(context, args));
  hash->Add(out16);
  hash->Add(out32);
  return Ok();
}

Status NormCheck(const CpuContext& context, Hash* hash) {
  constexpr int64_t kTokens = 3, kN = 4163;
  RandomInputs random(12);
  const std::vector<BF16> x = random.NormalBF16(kTokens * kN), residual = random.NormalBF16(kTokens * kN);
  const std::vector<float> w = random.NormalF32(kN), b = random.NormalF32(kN);
  std::vector<BF16> sum = Poisoned<BF16>(kTokens * kN), out = Poisoned<BF16>(kTokens * kN);
  RmsNormArgs rms;
  rms.x = View<const BF16>(x.data(), kTokens, kN);
  rms.residual = View<const BF16>(residual.data(), kTokens, kN);
  rms.weight = w.data();
  rms.residual_out = View<BF16>(sum.data(), kTokens, kN);
  rms.out = View<BF16>(out.data(), kTokens, kN);
  SB_RETURN_IF_ERROR(RmsNorm(context, rms));
  hash->Add(sum), hash->Add(out);
  LayerNormArgs layer;
  layer.x = rms.x, layer.weight = w.data(), layer.bias = b.data(), layer.out = rms.out;
  SB_RETURN_IF_ERROR(LayerNorm(context, layer));
  hash->Add(out);
  return Ok();
}

Status ExpCheck(const CpuContext& context, Hash* hash) {
  // exp through SwiGLU, the op that carries it, over bit patterns a prime apart.
  constexpr int64_t kN = 1 << 16;
  std::vector<float> gate(kN), up(kN, 1.0f), out = Poisoned<float>(kN);
  for (int64_t i = 0; i < kN; ++i) {
    const uint32_t bits = static_cast<uint32_t>(i) * 65521u;
    gate[static_cast<size_t>(i)] = (bits & 0x7f800000u) == 0x7f800000u ? 0.0f : FromBits(bits);
  }
  SwigluArgs args;
  args.gate = View<const float>(gate.data(), 1, kN);
  args.up = View<const float>(up.data(), 1, kN);
  args.out = View<float>(out.data(), 1, kN);
  SB_RETURN_IF_ERROR(Swiglu(context, args));
  for (float& x : out)
    if (x != x) x = FromBits(kCanonicalNan);  // -inf * 0 at the ends: NaN payloads differ between machines
  hash->Add(out);
  return Ok();
}

Status QuantCheck(const CpuContext& context, Hash* hash) {
  constexpr int64_t kRows = 3, kN = 200;
  RandomInputs random(13);
  const std::vector<BF16> x = random.NormalBF16(kRows * kN, 3.0f);
  for (const bool power_of_two : {false, true}) {
    std::vector<E4M3> values = Poisoned<E4M3>(kRows * kN);
    std::vector<float> scales = Poisoned<float>(kRows * 2);
    std::vector<BF16> back = Poisoned<BF16>(kRows * kN);
    QuantArgs args;
    args.x = View<const BF16>(x.data(), kRows, kN);
    args.power_of_two = power_of_two;
    args.values = View<E4M3>(values.data(), kRows, kN);
    args.scales = View<float>(scales.data(), kRows, 2);
    args.round_trip = View<BF16>(back.data(), kRows, kN);
    SB_RETURN_IF_ERROR(Quant(context, args));
    hash->Add(values), hash->Add(scales), hash->Add(back);
  }
  return Ok();
}

Status RopeCheck(const CpuContext& context, Hash* hash) {
  YarnConfig yarn;
  yarn.factor = 40, yarn.mscale_all_dim = 1;
  const RopeTable table(yarn, 4097);
  RandomInputs random(14);
  const int32_t positions[4] = {0, 1, 4095, 4096};
  for (const RopeLayout layout : {RopeLayout::kInterleaved, RopeLayout::kHalfSplit}) {
    std::vector<BF16> x = random.NormalBF16(4 * 2 * 80);
    RopeArgs args;
    args.x = View<BF16>(x.data(), 4, 2 * 80);
    args.heads = 2, args.head_stride = 80, args.offset = 16;
    args.positions = positions, args.table = &table, args.layout = layout;
    SB_RETURN_IF_ERROR(Rope(context, args));
    hash->Add(x);
  }
  return Ok();
}

Status HadamardCheck(const CpuContext& context, Hash* hash) {
  RandomInputs random(15);
  std::vector<BF16> x = random.NormalBF16(3 * 256);
  for (const int64_t n : {32, 128}) {
    std::vector<BF16> out = Poisoned<BF16>(3 * 256);
    HadamardArgs args;
    args.x = View<const BF16>(x.data(), 3, 256), args.n = n, args.out = View<BF16>(out.data(), 3, 256);
    SB_RETURN_IF_ERROR(Hadamard(context, args));
    hash->Add(out);
  }
  return Ok();
}

Status TopkCheck(const CpuContext& context, Hash* hash) {
  constexpr int64_t kRows = 4, kN = 2590, kK = 2048;
  RandomInputs random(16);
  std::vector<float> scores(kRows * kN);
  for (float& s : scores) s = static_cast<float>(static_cast<int>(random.Normal() * 8)) * 0.5f;  // ties, both zeros
  const int32_t starts[kRows] = {0, 1, 300, 7}, lens[kRows] = {2590, 2048, 2290, 0};
  for (const TopkOutput output : {TopkOutput::kAscending, TopkOutput::kByRank}) {
    std::vector<int32_t> out = Poisoned<int32_t>(kRows * kK);
    TopkArgs args;
    args.scores = View<const float>(scores.data(), kRows, kN);
    args.row_starts = starts, args.row_lens = lens, args.output = output;
    args.indices = View<int32_t>(out.data(), kRows, kK);
    SB_RETURN_IF_ERROR(Topk(context, args));
    hash->Add(out);
  }
  return Ok();
}

Status IndexerCheck(const CpuContext& context, Hash* hash) {
  constexpr int64_t kTokens = 3, kHeads = 4, kDim = 128, kKeys = 130;
  RandomInputs random(17);
  const std::vector<E4M3> q = RandomE4M3(&random, kTokens * kHeads * kDim), keys = RandomE4M3(&random, kKeys * kDim);
  const std::vector<float> weights = random.NormalF32(kTokens * kHeads);
  std::vector<float> scales(kKeys), out(kTokens * kKeys, 0.0f);
  for (float& s : scales) s = 0.25f + random.Uniform();
  const int32_t lens[kTokens] = {128, 129, 130};
  IndexerArgs args;
  args.q = View<const E4M3>(q.data(), kTokens, kHeads * kDim);
  args.heads = kHeads, args.dim = kDim;
  args.weights = View<const float>(weights.data(), kTokens, kHeads);
  args.keys = PagedRows{keys.data(), DType::kF8E4M3, kDim, nullptr, 1};
  args.key_scales = PagedRows{scales.data(), DType::kF32, 1, nullptr, 1};
  args.row_lens = lens;
  args.scores = View<float>(out.data(), kTokens, kKeys);
  SB_RETURN_IF_ERROR(Indexer(context, args));
  hash->Add(out);
  return Ok();
}

Status AttentionCheck(const CpuContext& context, Hash* hash) {
  constexpr int64_t kTokens = 2, kHeads = 3, kDim = 160, kValue = 128, kKeys = 700;
  RandomInputs random(18);
  const std::vector<BF16> q = random.NormalBF16(kTokens * kHeads * kDim), kv = random.NormalBF16(kKeys * kDim);
  std::vector<int32_t> list(kTokens * 600);
  for (int32_t& i : list) i = static_cast<int32_t>(random.Below(kKeys + 8)) - 4;  // unsorted, repeated, out of range
  const int32_t lens[kTokens] = {699, 700};
  for (const bool dense : {false, true}) {
    std::vector<BF16> out = Poisoned<BF16>(kTokens * kHeads * kValue);
    std::vector<float> lse = Poisoned<float>(kTokens * kHeads);
    AttentionArgs args;
    args.q = View<const BF16>(q.data(), kTokens, kHeads * kDim);
    args.heads = kHeads, args.dim = kDim, args.value_dim = kValue;
    args.keys = args.values = PagedRows{kv.data(), DType::kBF16, kDim, nullptr, 1};
    args.kv_lens = lens;
    if (!dense) args.indices = View<const int32_t>(list.data(), kTokens, 600);
    args.scale = 0.08f;
    args.out = View<BF16>(out.data(), kTokens, kHeads * kValue);
    args.lse = lse.data();
    SB_RETURN_IF_ERROR(Attention(context, args));
    hash->Add(out), hash->Add(lse);
  }
  return Ok();
}

Status RouteCheck(const CpuContext& context, Hash* hash) {
  constexpr int64_t kTokens = 16, kExperts = 256, kK = 8;
  RandomInputs random(19);
  const std::vector<float> logits = random.NormalF32(kTokens * kExperts), bias = random.NormalF32(kExperts, 0.3f);
  for (const RouteScore scoring : {RouteScore::kSigmoid, RouteScore::kSqrtSoftplus}) {
    std::vector<int32_t> experts = Poisoned<int32_t>(kTokens * kK);
    std::vector<float> weights = Poisoned<float>(kTokens * kK);
    RouteArgs args;
    args.logits = View<const float>(logits.data(), kTokens, kExperts);
    args.bias = bias.data(), args.scoring = scoring, args.n_group = 8, args.topk_group = 4, args.k = kK;
    args.scaling = 2.5f;
    args.experts = View<int32_t>(experts.data(), kTokens, kK);
    args.weights = View<float>(weights.data(), kTokens, kK);
    SB_RETURN_IF_ERROR(Route(context, args));
    hash->Add(experts), hash->Add(weights);
  }
  return Ok();
}

Status MoeCheck(const CpuContext& context, Hash* hash) {
  constexpr int64_t kTokens = 5, kK = 4, kN = 100, kExperts = 9;
  RandomInputs random(20);
  std::vector<int32_t> experts;
  for (int64_t t = 0; t < kTokens; ++t)
    for (int32_t j = 0; j < kK; ++j) experts.push_back(static_cast<int32_t>((t + 2 * j) % kExperts));
  for (int64_t t = 0; t < kTokens; ++t) std::sort(experts.begin() + t * kK, experts.begin() + (t + 1) * kK);
  const MoeDispatch plan = PlanDispatch(View<const int32_t>(experts.data(), kTokens, kK), kExperts);
  const std::vector<BF16> y = random.NormalBF16(kTokens * kK * kN), shared = random.NormalBF16(kTokens * kN);
  const std::vector<float> weights = random.NormalF32(kTokens * kK);
  std::vector<BF16> out = Poisoned<BF16>(kTokens * kN);
  CombineArgs args;
  args.expert_out = View<const BF16>(y.data(), kTokens * kK, kN);
  args.row = plan.row.data();
  args.weights = View<const float>(weights.data(), kTokens, kK);
  args.shared = View<const BF16>(shared.data(), kTokens, kN);
  args.out = View<BF16>(out.data(), kTokens, kN);
  SB_RETURN_IF_ERROR(Combine(context, args));
  hash->Add(plan.row), hash->Add(plan.token), hash->Add(out);
  return Ok();
}

Status SampleCheck(const CpuContext&, Hash* hash) {
  RandomInputs random(21);
  const std::vector<float> logits = random.NormalF32(5000, 3.0f);
  std::vector<int32_t> tokens;
  for (uint64_t position = 0; position < 64; ++position) {
    SampleParams params;
    params.temperature = position % 4 == 0 ? 0.0f : 0.25f * static_cast<float>(position % 4);
    params.top_p = position % 2 ? 0.9f : 1.0f;
    params.seed = 7;
    tokens.push_back(Sample(logits.data(), 5000, 4990, params, position, 0).token);
  }
  hash->Add(tokens);
  hash->Add(std::vector<float>{LogSumExp(logits.data(), 5000)});
  return Ok();
}

Status EmbedCheck(const CpuContext& context, Hash* hash) {
  RandomInputs random(22);
  const std::vector<BF16> table = random.NormalBF16(50 * 40);
  const int32_t ids[4] = {49, 0, 7, 7};
  std::vector<BF16> out = Poisoned<BF16>(4 * 40);
  EmbedArgs args;
  args.ids = ids, args.table = View<const BF16>(table.data(), 50, 40), args.out = View<BF16>(out.data(), 4, 40);
  SB_RETURN_IF_ERROR(Embed(context, args));
  hash->Add(out);
  return Ok();
}

const std::vector<Check>& Checks() {
  const auto gemm = [](DType a, DType b, bool f32) {
    return [=](const CpuContext& c, Hash* h) { return GemmCheck(c, h, a, b, f32); };
  };
  static const std::vector<Check> kChecks = {
      {"embed", "copies rows", "embed_test", EmbedCheck},
      {"norm", "64 lanes, halving tree, chunks of 4096", "norm_test", NormCheck},
      {"gemm_bf16", "K blocks of 128, segments of 1024; bf16 out", "gemm_test",
       gemm(DType::kBF16, DType::kBF16, false)},
      {"gemm_bf16_f32", "K blocks of 128, segments of 1024; fp32 out", "gemm_test",
       gemm(DType::kBF16, DType::kBF16, true)},
      {"gemm_f32", "K blocks of 128, segments of 1024; fp32 in", "gemm_test", gemm(DType::kF32, DType::kBF16, true)},
      {"gemm_fp8", "exact 128-blocks, scales by fma, segments of 1024", "gemm_test",
       gemm(DType::kF8E4M3, DType::kF8E4M3, false)},
      {"quant", "exact max, E4M3 nearest even, UE8M0 or fp32 scale", "quant_test", QuantCheck},
      {"rope", "fp64 tables hashed on the host, two fma a pair", "rope_test", RopeCheck},
      {"hadamard", "butterflies of stride 1, 2, 4, ...", "hadamard_test", HadamardCheck},
      {"indexer", "exact 128-dot, heads by fma ascending", "indexer_test", IndexerCheck},
      {"topk", "score descending, index ascending", "topk_test", TopkCheck},
      {"attention", "blocks of 64, segments of 8, integer exponents", "attention_test", AttentionCheck},
      {"route", "fp32 scores, groups by best two, ties low", "route_test", RouteCheck},
      {"exp", "own polynomial, through SwiGLU", "elementwise_test", ExpCheck},
      {"moe", "experts ascending by fma, shared last", "moe_test", MoeCheck},
      {"sample", "Philox, integer weights and prefix sums", "sample_test", SampleCheck},
  };
  return kChecks;
}

uint64_t ExpectedHash(const std::string& op) {
  for (const SelfTestHash& row : kSelfTestHashes)
    if (op == row.op) return row.hash;
  return 0;
}

}  // namespace

std::vector<ManifestRow> RunSelfTest(const CpuContext& context) {
  std::vector<ManifestRow> rows;
  for (const Check& check : Checks()) {
    ManifestRow row;
    row.op = check.op;
    row.kernel = std::string("cpu/") + IsaName(context.isa);
    row.plan = check.plan;
    row.test = check.test;
    row.expected = ExpectedHash(check.op);
    Hash hash;
    const Status status = check.run(context, &hash);
    row.error = status.text();
    row.hash = hash.value;
    rows.push_back(std::move(row));
  }
  return rows;
}

Status RequireContract(const CpuContext& context) {
  std::atomic<bool> float_state_ok{FloatStateIsContract()};
  context.pool->Run(context.pool->threads(), 1, [&](int64_t, int64_t) {
    if (!FloatStateIsContract()) float_state_ok = false;
  });
  if (!float_state_ok)
    return Error(
        "a thread flushes denormals or does not round to nearest even, so portable-1 is refused; a library linked "
        "with fast-math switches that on");
  for (const ManifestRow& row : RunSelfTest(context))
    if (!row.proven())
      return Error(
          "self-test of " + row.op + " on " + row.kernel + " failed, so portable-1 is refused on this machine: " +
          (row.error.empty() ? Format("hash %016llx, expected %016llx", static_cast<unsigned long long>(row.hash),
                                      static_cast<unsigned long long>(row.expected))
                             : row.error));
  return Ok();
}

std::string NumericsStamp(const std::string& contract_id) {
  Hash hash;
  for (const SelfTestHash& row : kSelfTestHashes) hash.Add(std::vector<uint64_t>{row.hash});
  for (const GoldenDigest& row : kGoldenDigests) hash.Add(std::vector<char>(row.hex, row.hex + std::strlen(row.hex)));
  return Format("%s-%08x", contract_id.c_str(), static_cast<uint32_t>(hash.value ^ hash.value >> 32));
}

}  // namespace samebits
