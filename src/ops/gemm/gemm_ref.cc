// The meaning of GEMM, one output at a time. The rule is an argument so that forensics can ask what another would give.

#include "ops/gemm/gemm.h"

namespace samebits {
namespace {

// The plan over [begin, end) of K with any block and segment length.
float Chain(const GemmArgs& args, int64_t m, int64_t n, int64_t begin, int64_t end, const GemmRule& rule) {
  float total = 0.0f;
  for (int64_t s = begin; s < end; s += rule.segment) {
    const int64_t s_end = s + rule.segment < end ? s + rule.segment : end;
    float segment = 0.0f;
    for (int64_t b = s; b < s_end; b += rule.block) {
      const int64_t b_end = b + rule.block < s_end ? b + rule.block : s_end;
      float block = 0.0f;
      for (int64_t k = b; k < b_end; ++k) block = Fma(MatAt(args.a, m, k), args.b->At(n, k), block);
      segment = Add(segment, block);
    }
    total = Add(total, segment);
  }
  return total;
}

// fp8: exact dot of each 128-block, rounded once; scales by one fma per block.
float ScaledBlocks(const GemmArgs& args, int64_t m, int64_t n, int64_t begin, int64_t end, const GemmRule& rule) {
  const E4M3* a = args.a.As<E4M3>().Row(m);
  float total = 0.0f;
  for (int64_t s = begin; s < end; s += rule.segment) {
    const int64_t s_end = s + rule.segment < end ? s + rule.segment : end;
    float segment = 0.0f;
    for (int64_t b = s; b < s_end; b += kScaleBlock) {
      const int64_t b_end = b + kScaleBlock < s_end ? b + kScaleBlock : s_end;
      E4M3 weights[kScaleBlock];
      for (int64_t k = b; k < b_end; ++k) weights[k - b] = RoundToE4M3(args.b->At(n, k));
      const float dot = ExactDotE4M3(a + b, weights, static_cast<int>(b_end - b));
      segment = Fma(dot, Mul(args.a_scale.Row(m)[b / kScaleBlock], args.b->ScaleAt(n, b)), segment);
    }
    total = Add(total, segment);
  }
  return total;
}

}  // namespace

void GemmRef(const GemmArgs& args, const GemmRule& rule) {
  const int64_t k_size = args.a.cols;
  const bool fp8 = args.a.dtype == DType::kF8E4M3;
  // Equal pieces, whole blocks each, so that a split of 1 is the contract itself.
  const int64_t blocks = (k_size + rule.block - 1) / rule.block;
  for (int64_t m = 0; m < args.a.rows; ++m) {
    for (int64_t n = 0; n < args.b->n(); ++n) {
      float total = 0.0f;
      for (int64_t s = 0; s < rule.splits; ++s) {
        const int64_t begin = blocks * s / rule.splits * rule.block, stop = blocks * (s + 1) / rule.splits * rule.block;
        const int64_t end = stop < k_size ? stop : k_size;
        const float part = fp8 ? ScaledBlocks(args, m, n, begin, end, rule) : Chain(args, m, n, begin, end, rule);
        total = s == 0 ? part : Add(total, part);
      }
      if (args.bias != nullptr) total = Add(total, args.bias[n]);
      if (rule.bf16_accumulator_store) total = ToF32(RoundToBF16(total));
      if (args.out.dtype == DType::kBF16) {
        args.out.As<BF16>().Row(m)[n] = StoreOut<BF16>(total);
      } else {
        args.out.As<float>().Row(m)[n] = StoreOut<float>(total);
      }
    }
  }
}

}  // namespace samebits
