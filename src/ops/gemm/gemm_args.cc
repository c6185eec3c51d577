#include <cstring>

#include "base/strings.h"
#include "ops/gemm/gemm.h"

namespace samebits {

Status CheckGemm(const GemmArgs& args) {
  if (args.b == nullptr) return Error("gemm: no weight given");
  if (!args.a.data && args.a.rows > 0) return Error("gemm: no activations given");
  if (!args.out.data && args.out.rows > 0) return Error("gemm: no output given");
  bool allowed = false;
  for (const GemmOutput& row : kGemmOutputs)
    allowed |= row.a == args.a.dtype && row.b == args.b->dtype() && row.out == args.out.dtype;
  if (!allowed)
    return Error(Format("gemm: %s activations with %s weights cannot be stored as %s; see kGemmOutputs",
                        DTypeName(args.a.dtype), DTypeName(args.b->dtype()), DTypeName(args.out.dtype)));
  if (args.a.cols != args.b->k())
    return Error(Format("gemm: activations have %lld columns, the weight has K = %lld",
                        static_cast<long long>(args.a.cols), static_cast<long long>(args.b->k())));
  if (args.out.rows != args.a.rows || args.out.cols != args.b->n())
    return Error(Format("gemm: output is [%lld, %lld], expected [%lld, %lld]", static_cast<long long>(args.out.rows),
                        static_cast<long long>(args.out.cols), static_cast<long long>(args.a.rows),
                        static_cast<long long>(args.b->n())));
  if (args.a.stride < args.a.cols || args.out.stride < args.out.cols)
    return Error("gemm: a row stride is shorter than its row");
  if (args.a.dtype == DType::kF8E4M3) {
    const int64_t blocks = (args.a.cols + kScaleBlock - 1) / kScaleBlock;
    if (args.a_scale.rows != args.a.rows || args.a_scale.cols != blocks)
      return Error(Format("gemm: activation scales are [%lld, %lld], expected [%lld, %lld]",
                          static_cast<long long>(args.a_scale.rows), static_cast<long long>(args.a_scale.cols),
                          static_cast<long long>(args.a.rows), static_cast<long long>(blocks)));
    // The exact dot product has no NaN: it must be stopped here, not turned into a number.
    for (int64_t r = 0; r < args.a.rows; ++r) {
      const uint8_t* row = static_cast<const uint8_t*>(args.a.data) + r * args.a.stride;
      int nans = 0;
      for (int64_t k = 0; k < args.a.cols; ++k) nans += (row[k] & 0x7f) == 0x7f;
      if (nans != 0)
        return Error(Format("gemm: row %lld of the F8_E4M3 activations holds %d NaN", static_cast<long long>(r), nans));
    }
  }
  return Ok();
}

namespace {

bool IsNanElement(DType dtype, const uint8_t* p) {
  if (dtype == DType::kF8E4M3) return (*p & 0x7f) == 0x7f;
  if (dtype == DType::kBF16) {
    uint16_t u;
    std::memcpy(&u, p, 2);
    return (u & 0x7fff) > 0x7f80;
  }
  float f;
  std::memcpy(&f, p, 4);
  return f != f;
}

}  // namespace

Result<PackedWeight> PackedWeight::Pack(const std::string& name, DType dtype, const void* b, int64_t n, int64_t k,
                                        int64_t stride, const float* scale, const CpuContext* context) {
  if (dtype != DType::kBF16 && dtype != DType::kF32 && dtype != DType::kF8E4M3)
    return Error(Format("tensor %s: dtype %s cannot be a GEMM weight; BF16, F32 and F8_E4M3 can", name.c_str(),
                        DTypeName(dtype)));
  if (dtype == DType::kF8E4M3 && scale == nullptr)
    return Error("tensor " + name + ": F8_E4M3 weights need block scales (weight_scale_inv)");
  PackedWeight w;
  w.dtype_ = dtype;
  w.n_ = n;
  w.k_ = k;
  const int64_t size = DTypeBits(dtype) / 8, panels = (n + kPackLanes - 1) / kPackLanes;
  w.data_.resize(static_cast<size_t>(panels * k * kPackLanes * size));
  std::vector<int64_t> nan_at(static_cast<size_t>(panels), -1);
  auto pack = [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      for (int64_t j = 0; j < kPackLanes && p * kPackLanes + j < n; ++j) {
        const uint8_t* row = static_cast<const uint8_t*>(b) + (p * kPackLanes + j) * stride * size;
        uint8_t* to = w.data_.data() + (p * k * kPackLanes + j) * size;
        for (int64_t i = 0; i < k; ++i) {
          std::memcpy(to + i * kPackLanes * size, row + i * size, static_cast<size_t>(size));
          if (nan_at[static_cast<size_t>(p)] < 0 && IsNanElement(dtype, row + i * size))
            nan_at[static_cast<size_t>(p)] = (p * kPackLanes + j) * k + i;
        }
      }
    }
  };
  if (context != nullptr && context->pool != nullptr) {
    context->pool->Run(panels, 8, pack);
  } else {
    pack(0, panels);
  }
  for (const int64_t at : nan_at)
    if (at >= 0)
      return Error(Format("tensor %s: NaN at [%lld, %lld]; a checkpoint with NaN weights is refused", name.c_str(),
                          static_cast<long long>(at / k), static_cast<long long>(at % k)));
  if (dtype == DType::kF8E4M3) {
    const int64_t count = (n + kScaleBlock - 1) / kScaleBlock * ((k + kScaleBlock - 1) / kScaleBlock);
    w.scales_.assign(scale, scale + count);
    for (int64_t i = 0; i < count; ++i)
      if (!(scale[i] == scale[i]) || scale[i] - scale[i] != 0.0f)
        return Error(Format("tensor %s: block scale %lld is not finite", name.c_str(), static_cast<long long>(i)));
  }
  return w;
}

float PackedWeight::At(int64_t n, int64_t k) const {
  const int64_t i = (n / kPackLanes * k_ + k) * kPackLanes + n % kPackLanes;
  if (dtype_ == DType::kBF16) return ToF32(reinterpret_cast<const BF16*>(data())[i]);
  if (dtype_ == DType::kF32) return reinterpret_cast<const float*>(data())[i];
  return ToF32(reinterpret_cast<const E4M3*>(data())[i]);
}

float PackedWeight::ScaleAt(int64_t n, int64_t k) const {
  if (dtype_ != DType::kF8E4M3) return 1.0f;
  return scales_[static_cast<size_t>(n / kScaleBlock * ((k_ + kScaleBlock - 1) / kScaleBlock) + k / kScaleBlock)];
}

}  // namespace samebits
