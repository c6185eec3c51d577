// Seeded inputs for reproducers, the self-test and benchmarks: a pure function of the seed, the same on every machine.
#pragma once

#include <cstdint>
#include <vector>

#include "numerics/format.h"
#include "numerics/philox.h"

namespace samebits {

class RandomInputs {
 public:
  explicit RandomInputs(uint64_t seed) : seed_(seed) {}
  uint32_t Bits32() {
    if (used_ == 4) block_ = Philox4x32(seed_, counter_++, 0), used_ = 0;
    return block_.v[used_++];
  }
  uint64_t Below(uint64_t n) { return (uint64_t{Bits32()} * n) >> 32; }
  // Sum of four uniform values, variance 1: close to normal, no libm.
  float Normal() {
    int64_t sum = 0;
    for (int i = 0; i < 4; ++i) sum += static_cast<int32_t>(Bits32() >> 8) - (1 << 23);
    return static_cast<float>(sum) * 0x1.bb67aep-24f;  // sqrt(3) * 2^-24
  }
  float Uniform() { return static_cast<float>(Bits32() >> 8) * 0x1p-24f; }
  std::vector<BF16> NormalBF16(int64_t n, float scale = 1.0f) {
    std::vector<BF16> v(static_cast<size_t>(n));
    for (BF16& x : v) x = RoundToBF16(Normal() * scale);
    return v;
  }
  std::vector<float> NormalF32(int64_t n, float scale = 1.0f) {
    std::vector<float> v(static_cast<size_t>(n));
    for (float& x : v) x = Normal() * scale;
    return v;
  }
  // A random permutation of v (Fisher-Yates).
  template <class T>
  void Shuffle(std::vector<T>* v) {
    for (size_t i = v->size(); i > 1; --i) std::swap((*v)[i - 1], (*v)[Below(i)]);
  }

 private:
  uint64_t seed_, counter_ = 0;
  Philox4 block_{};
  int used_ = 4;
};

}  // namespace samebits
