// The rotary tables. fp64 exp, log, sin and cos from basic operations only, so that every machine makes the same table;
// each is good to a few ulp of fp64, far below the one rounding to fp32.

#include <bit>

#include "ops/rope/rope.h"

namespace samebits {
namespace {

constexpr double kLn2Hi64 = 0x1.62e42fefa3800p-1;  // 42 bits, so n * kLn2Hi64 is exact
constexpr double kLn2Lo64 = 0x1.ef35793c76730p-45;
constexpr double kPi = 0x1.921fb54442d18p+1;
constexpr double kHalfPiHi = 0x1.921fb54442d18p+0, kHalfPiLo = 0x1.1a62633145c07p-54;
constexpr double kMagic64 = 0x1.8p52;  // adding it rounds to an integer

double Round64(double x) { return (x + kMagic64) - kMagic64; }

double Exp64(double x) {
  const double n = Round64(x * 0x1.71547652b82fep+0);
  const double r = (x - n * kLn2Hi64) - n * kLn2Lo64;
  double p = 1.0;
  for (int i = 20; i >= 1; --i) p = 1.0 + p * r / i;  // Taylor; |r| < 0.35, the 21st term is below 2^-95
  return p * std::bit_cast<double>(static_cast<uint64_t>(static_cast<int64_t>(n) + 1023) << 52);
}

double Log64(double x) {
  uint64_t u = std::bit_cast<uint64_t>(x);
  int64_t e = static_cast<int64_t>(u >> 52) - 1023;
  double m = std::bit_cast<double>((u & ((uint64_t{1} << 52) - 1)) | (uint64_t{1023} << 52));
  if (m > 1.4142135623730951) m /= 2, ++e;
  const double s = (m - 1) / (m + 1), z = s * s;
  double p = 0.0;
  for (int k = 41; k >= 1; k -= 2) p = p * z + 1.0 / k;  // 2 atanh(s); |s| < 0.172
  return static_cast<double>(e) * kLn2Hi64 + (2 * s * p + static_cast<double>(e) * kLn2Lo64);
}

}  // namespace

void SinCos(float angle, float* sin_out, float* cos_out) {
  const double x = static_cast<double>(angle), q = Round64(x * (2 / kPi));
  const double r = __builtin_fma(-q, kHalfPiLo, __builtin_fma(-q, kHalfPiHi, x)), z = r * r;
  double s = 1.0, c = 1.0;  // Taylor; |r| < 0.79
  for (int k = 20; k >= 2; k -= 2) {
    s = 1.0 - s * z / static_cast<double>(k * (k + 1));
    c = 1.0 - c * z / static_cast<double>(k * (k - 1));
  }
  s *= r;
  switch (static_cast<int64_t>(q) & 3) {
    case 0:
      *sin_out = static_cast<float>(s), *cos_out = static_cast<float>(c);
      return;
    case 1:
      *sin_out = static_cast<float>(c), *cos_out = static_cast<float>(-s);
      return;
    case 2:
      *sin_out = static_cast<float>(-s), *cos_out = static_cast<float>(-c);
      return;
    default:
      *sin_out = static_cast<float>(-c), *cos_out = static_cast<float>(s);
      return;
  }
}

YarnRamp YarnRampOf(const YarnConfig& config) {
  auto correction = [&](float beta) {
    return config.dim * Log64(config.original_length / (2 * kPi * static_cast<double>(beta))) /
           (2 * Log64(static_cast<double>(config.theta)));
  };
  auto floor = [](double x) {
    const int64_t i = static_cast<int64_t>(x);
    return static_cast<int>(i - (static_cast<double>(i) > x ? 1 : 0));
  };
  const int low = floor(correction(config.beta_fast)), high = -floor(-correction(config.beta_slow));
  return {low < 0 ? 0 : low, high > config.dim - 1 ? config.dim - 1 : high};
}

std::vector<float> RopeInverseFrequencies(const YarnConfig& config) {
  std::vector<float> frequencies;
  const double log_theta = Log64(static_cast<double>(config.theta));
  const YarnRamp ramp = config.factor > 1.0f ? YarnRampOf(config) : YarnRamp{0, 0};
  for (int i = 0; i < config.dim / 2; ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(config.dim);
    const float power = i == 0 ? 1.0f : static_cast<float>(Exp64(static_cast<double>(exponent) * log_theta));
    const float f = 1.0f / power;
    if (config.factor <= 1.0f) {
      frequencies.push_back(f);
      continue;
    }
    const float low = static_cast<float>(ramp.low),
                high = ramp.high == ramp.low ? static_cast<float>(ramp.high) + 0.001f : static_cast<float>(ramp.high);
    float r = (static_cast<float>(i) - low) / (high - low);
    r = r < 0.0f ? 0.0f : r > 1.0f ? 1.0f : r;
    const float keep = 1.0f - r;
    frequencies.push_back(f / config.factor * (1.0f - keep) + f * keep);
  }
  return frequencies;
}

float YarnSoftmaxMultiplier(const YarnConfig& config) {
  if (config.factor <= 1.0f || config.mscale_all_dim == 0.0f) return 1.0f;
  const double m = 0.1 * static_cast<double>(config.mscale_all_dim) * Log64(static_cast<double>(config.factor)) + 1.0;
  return static_cast<float>(m * m);
}

RopeTable::RopeTable(const YarnConfig& config, int64_t positions) : dim_(config.dim), positions_(positions) {
  const std::vector<float> frequencies = RopeInverseFrequencies(config);
  cos_.reserve(static_cast<size_t>(positions) * frequencies.size());
  sin_.reserve(cos_.capacity());
  for (int64_t p = 0; p < positions; ++p)
    for (const float f : frequencies) {
      float s, c;
      SinCos(Mul(static_cast<float>(p), f), &s, &c);
      sin_.push_back(s);
      cos_.push_back(c);
    }
}

}  // namespace samebits
