// hopper-1's GEMM on the device: every tuning entry and every M give the rows of M = 1, wherever a row stands; exact on
// integers; within the stated bound of fp64; nothing written outside; a broken order shows. `--small`: a few shapes.

#include <cmath>

#include "gpu_testing.h"
#include "numerics/random_inputs.h"
#include "ops/gemm/gemm_hopper.h"

namespace samebits {
namespace {

constexpr int64_t kRowCounts[] = {1, 2, 7, 8, 16, 33, 64, 65, 127, 128, 129, 255, 257, 4096};
constexpr int64_t kShift = 5;  // a row's place in the batch moves by this many
constexpr uint8_t kPoison = 0xff;

struct Shape {
  int64_t k, n;
  DType out;
};

class GemmTest {
 public:
  GemmTest(GpuTest& test, const Shape& shape, int64_t most_rows) : test_(test), shape_(shape), most_(most_rows) {
    RandomInputs random(static_cast<uint64_t>(shape.k * 31 + shape.n));
    a_host_ = random.NormalBF16((most_ + kShift) * shape.k);
    b_host_ = random.NormalBF16(shape.n * shape.k);
    // Terms of one sum spread over binades, with neighbours that nearly cancel.
    for (size_t i = 0; i < b_host_.size(); ++i)
      b_host_[i] = RoundToBF16(ToF32(b_host_[i]) * (i % 7 == 0 ? 64.0f : i % 3 == 0 ? 0.03125f : 1.0f));
    for (size_t i = 1; i < a_host_.size(); i += 11) a_host_[i].bits = a_host_[i - 1].bits ^ 0x8000;
    a_ = test.Device(a_host_), b_ = test.Device(b_host_);
    element_ = shape.out == DType::kBF16 ? 2 : 4;
    out_bytes_ = (most_ + 1) * shape.n * element_;
    out_ = test.Device<uint8_t>(out_bytes_);
  }
  // Bytes of rows [0, m) computed from the rows of a from `first` on; checks that the row after them kept its poison.
  std::vector<uint8_t> Rows(int64_t first, int64_t m, int tuning, int64_t k_begin = 0, int64_t k_count = -1) {
    HopperGemmArgs args = Args(first, m, tuning);
    if (k_count >= 0) args.a = args.a.Cols(k_begin, k_count), args.b = args.b.Cols(k_begin, k_count);
    test_.Poison(out_, static_cast<uint64_t>((m + 1) * shape_.n * element_));
    test_.Run(test_.Kernel("gemm/wgmma"), args);
    std::vector<uint8_t> all = test_.Host(out_, (m + 1) * shape_.n * element_);
    bool kept = true;
    for (size_t i = static_cast<size_t>(m * shape_.n * element_); i < all.size(); ++i) kept &= all[i] == kPoison;
    test_.Expect(kept, Name(m, tuning) + ": wrote below the last row");
    all.resize(static_cast<size_t>(m * shape_.n * element_));
    return all;
  }
  HopperGemmArgs Args(int64_t first, int64_t m, int tuning) const {
    HopperGemmArgs args;
    args.a = View<const BF16>(a_ + first * shape_.k, m, shape_.k);
    args.b = View<const BF16>(b_, shape_.n, shape_.k);
    if (shape_.out == DType::kBF16)
      args.out = View<BF16>(reinterpret_cast<BF16*>(out_), m, shape_.n);
    else
      args.out = View<float>(reinterpret_cast<float*>(out_), m, shape_.n);
    args.tuning = tuning;
    return args;
  }
  bool Fits(int tuning, int64_t m) const {
    const HopperGemmTuning& t = kHopperGemmTunings[tuning];
    if (t.swap && m > int64_t{512} * t.n) return false;  // thousands of narrow tiles: minutes, and nothing new
    return LayoutOf(t, m, shape_.n, CeilDiv(shape_.k, kHopperGemmSegment), test_.plugin.device().sm_count).stages > 0;
  }
  std::string Name(int64_t m, int tuning) const {
    return "K " + std::to_string(shape_.k) + " N " + std::to_string(shape_.n) + " out " + DTypeName(shape_.out) +
           " M " + std::to_string(m) + " tuning " + std::to_string(tuning);
  }
  std::vector<uint8_t> Slice(const std::vector<uint8_t>& base, int64_t first, int64_t m) const {
    const int64_t row = shape_.n * element_;
    return {base.begin() + first * row, base.begin() + (first + m) * row};
  }

  void Invariance() {
    const std::vector<uint8_t> base = Rows(0, most_, -1);
    for (int64_t r = 0; r < most_; r += r < 16 ? 1 : 131)
      test_.Same(Name(1, -1) + " row " + std::to_string(r), Rows(r, 1, -1), Slice(base, r, 1));
    for (int tuning = -1; tuning < kHopperGemmTuningCount; ++tuning)
      for (const int64_t m : kRowCounts) {
        if (m > most_ || (tuning >= 0 && !Fits(tuning, m))) continue;
        test_.Same(Name(m, tuning), Rows(0, m, tuning), Slice(base, 0, m));
        if (m <= 257 && m + kShift <= most_)
          test_.Same(Name(m, tuning) + " shifted", Rows(kShift, m, tuning), Slice(base, kShift, m));
      }
    for (int tuning = 0; tuning < kHopperGemmTuningCount; tuning += 4)
      for (int i = 0; i < 20; ++i)
        if (Fits(tuning, 65)) test_.Same(Name(65, tuning) + " again", Rows(0, 65, tuning), Slice(base, 0, 65));
  }

  // Prints the worst error over the bound.
  void Accuracy() {
    if (shape_.out != DType::kF32) return;
    const std::vector<uint8_t> bytes = Rows(0, 64, -1);
    const float* out = reinterpret_cast<const float*>(bytes.data());
    double worst = 0.0;
    for (int64_t i = 0; i < 2000; ++i) {
      const int64_t m = i * 7 % 64, n = i * 13 % shape_.n;
      double sum = 0.0, magnitude = 0.0;
      for (int64_t k = 0; k < shape_.k; ++k) {
        const double term = double{ToF32(a_host_[static_cast<size_t>(m * shape_.k + k)])} *
                            double{ToF32(b_host_[static_cast<size_t>(n * shape_.k + k)])};
        sum += term, magnitude += std::fabs(term);
      }
      const double error = std::fabs(double{out[m * shape_.n + n]} - sum);
      worst = std::fmax(worst, error / (magnitude * HopperGemmBound(shape_.k)));
    }
    std::printf("K %lld N %lld: worst error is %.4f of the bound\n", static_cast<long long>(shape_.k),
                static_cast<long long>(shape_.n), worst);
    test_.Expect(worst <= 1.0, Name(64, -1) + ": error beyond the bound");
  }

  // Two halves of K added afterwards: another order, which the comparison must see.
  void BrokenOrderShows() {
    if (shape_.out != DType::kF32 || shape_.k < 4096) return;
    const std::vector<uint8_t> whole = Rows(0, 64, -1);
    const std::vector<uint8_t> low = Rows(0, 64, -1, 0, shape_.k / 2),
                               high = Rows(0, 64, -1, shape_.k / 2, shape_.k / 2);
    int64_t differ = 0;
    for (int64_t i = 0; i < 64 * shape_.n; ++i) {
      const float sum = reinterpret_cast<const float*>(low.data())[i] + reinterpret_cast<const float*>(high.data())[i];
      differ += std::memcmp(&sum, whole.data() + 4 * i, 4) != 0;
    }
    std::printf("K %lld N %lld: halves of K added last differ in %lld of %lld outputs\n",
                static_cast<long long>(shape_.k), static_cast<long long>(shape_.n), static_cast<long long>(differ),
                static_cast<long long>(64 * shape_.n));
    test_.Expect(differ > 0, Name(64, -1) + ": a broken order went unseen");
  }

 private:
  GpuTest& test_;
  Shape shape_;
  int64_t most_, element_ = 0, out_bytes_ = 0;
  std::vector<BF16> a_host_, b_host_;
  BF16 *a_ = nullptr, *b_ = nullptr;
  uint8_t* out_ = nullptr;
};

// Small integers: every order gives the exact sum, so each entry must give the bytes of the integer result plus bias.
void ExactOnIntegers(GpuTest& test, int64_t m, int64_t n, int64_t k) {
  RandomInputs random(static_cast<uint64_t>(m + n + k));
  std::vector<int> a(static_cast<size_t>(m * k)), b(static_cast<size_t>(n * k));
  std::vector<BF16> a16, b16;
  for (int& x : a) x = static_cast<int>(random.Below(9)) - 4, a16.push_back(RoundToBF16(static_cast<float>(x)));
  for (int& x : b) x = static_cast<int>(random.Below(9)) - 4, b16.push_back(RoundToBF16(static_cast<float>(x)));
  std::vector<float> bias, want(static_cast<size_t>(m * n));
  std::vector<BF16> want16(want.size());
  for (int64_t i = 0; i < n; ++i) bias.push_back(static_cast<float>(i % 17) - 8.0f);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      int sum = 0;
      for (int64_t x = 0; x < k; ++x) sum += a[static_cast<size_t>(i * k + x)] * b[static_cast<size_t>(j * k + x)];
      const size_t at = static_cast<size_t>(i * n + j);
      want[at] = static_cast<float>(sum) + bias[static_cast<size_t>(j)], want16[at] = RoundToBF16(want[at]);
    }
  const BF16 *a_device = test.Device(a16), *b_device = test.Device(b16);
  const float* bias_device = test.Device(bias);
  float* const out = test.Device<float>(m * n);
  for (int tuning = 0; tuning < kHopperGemmTuningCount; ++tuning) {
    if (LayoutOf(kHopperGemmTunings[tuning], m, n, CeilDiv(k, kHopperGemmSegment), test.plugin.device().sm_count)
            .stages == 0)
      continue;
    HopperGemmArgs args;
    args.a = View<const BF16>(a_device, m, k), args.b = View<const BF16>(b_device, n, k);
    args.bias = bias_device, args.tuning = tuning;
    const std::string name = "integers M " + std::to_string(m) + " N " + std::to_string(n) + " K " + std::to_string(k) +
                             " tuning " + std::to_string(tuning);
    test.Poison(out, static_cast<uint64_t>(m * n) * 4);
    args.out = View<float>(out, m, n);
    test.Run(test.Kernel("gemm/wgmma"), args);
    test.Same(name, test.Host(out, m * n), want);
    test.Poison(out, static_cast<uint64_t>(m * n) * 4);
    args.out = View<BF16>(reinterpret_cast<BF16*>(out), m, n);
    test.Run(test.Kernel("gemm/wgmma"), args);
    test.Same(name + " bf16", test.Host(reinterpret_cast<const BF16*>(out), m * n), want16);
  }
  test.FreeAll();
}

// Refused with a sentence; the next good call must work.
void BadArgumentsAreSentences(GpuTest& test) {
  GemmTest good(test, {64, 64, DType::kF32}, 16);
  const CudaKernel& kernel = test.Kernel("gemm/wgmma");
  const auto refused = [&](HopperGemmArgs args, const char* what) {
    test.Expect(!test.plugin.Run(kernel, args).ok(), std::string("not refused: ") + what);
  };
  HopperGemmArgs args = good.Args(0, 16, -1);
  args.a.data = static_cast<const uint8_t*>(args.a.data) + 2;
  refused(args, "unaligned a");
  args = good.Args(0, 16, -1), args.b.stride = 65;
  refused(args, "unaligned row stride");
  args = good.Args(0, 16, -1), args.a.dtype = DType::kF32;
  refused(args, "fp32 a");
  args = good.Args(0, 16, -1), args.out.rows = 15;
  refused(args, "shapes that do not fit");
  refused(good.Args(0, 16, kHopperGemmTuningCount), "an entry that does not exist");
  args = good.Args(0, 16, 7);
  refused(args, "a split beyond the segments");
  test.Expect(test.plugin.Run(kernel, good.Args(0, 16, -1)).ok(), "a good call after refused ones");
  test.FreeAll();
}

int Main(int argc, char** argv) {
  const bool small = argc > 1 && std::string(argv[argc - 1]) == "--small";
  GpuTest test(argc - small, argv);
  if (test.plugin.device().major != 9) {
    std::printf("skipped: hopper-1 needs compute capability 9.0\n");
    return 0;
  }
  BadArgumentsAreSentences(test);
  for (const int64_t m : {1, 17, 128, 257})
    if (!small || m == 17) ExactOnIntegers(test, m, 131, 1000), ExactOnIntegers(test, m, small ? 72 : 400, 3080);
  const std::vector<Shape> shapes =
      small ? std::vector<Shape>{{2048, 136, DType::kF32}}
            : std::vector<Shape>{{7168, 576, DType::kF32},  {7168, 576, DType::kBF16}, {1536, 1000, DType::kF32},
                                 {2048, 320, DType::kBF16}, {16384, 136, DType::kF32}, {1000, 131, DType::kF32},
                                 {1032, 264, DType::kBF16}, {8, 200, DType::kF32}};
  for (const Shape& shape : shapes) {
    GemmTest gemm(test, shape, small ? 65 : 4096);
    gemm.Accuracy();
    gemm.BrokenOrderShows();
    gemm.Invariance();
    std::printf("%s: %lld checks, %lld failures so far\n", gemm.Name(0, 0).c_str(), static_cast<long long>(test.checks),
                static_cast<long long>(test.failures));
    test.FreeAll();
  }
  return test.Finish("gpu_gemm_hopper_test");
}

}  // namespace
}  // namespace samebits

int main(int argc, char** argv) { return samebits::Main(argc, argv); }
