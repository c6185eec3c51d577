// DTYPE_DOWNGRADE: all values of one side lie on the grid of a narrower format, and the other side's do not.
// DOUBLE_ROUNDING: one side is round(x) to the output format, the other round(round(x)), by way of another format.
#include <cmath>
#include <cstring>

#include "base/strings.h"
#include "forensics/explain/gemm_case.h"

namespace samebits {
namespace {

float ValueAt(const TensorRef& t, int64_t i) { return static_cast<float>(ElementAsDouble(t, i)); }

// fp32 -> fp16, nearest even, widened again.
float ThroughF16(float x) {
  const uint32_t u = Bits(x), a = u & 0x7fffffffu;
  if (a >= 0x7f800000u) return x;
  if (a >= 0x477ff000u) return FromBits((u & 0x80000000u) | 0x7f800000u);
  if (a < 0x38800000u) {  // fp16 subnormals: steps of 2^-24, the ulp of 0.5 in fp32
    const float r = Sub(Add(FromBits(a), 0.5f), 0.5f);
    return FromBits(Bits(r) | (u & 0x80000000u));
  }
  return FromBits((u & 0x80000000u) | ((a + 0xfffu + ((a >> 13) & 1u)) & ~0x1fffu));
}
float ThroughBF16(float x) { return ToF32(RoundToBF16(x)); }
float ThroughE4M3(float x) { return ToF32(RoundToE4M3(x)); }

struct Grid {
  const char* name;
  float (*through)(float);
};
constexpr Grid kGrids[] = {{"fp8 E4M3", ThroughE4M3}, {"bf16", ThroughBF16}, {"fp16", ThroughF16}};

struct GridCount {
  int64_t on = 0, of = 0;
};
// Values on the grid among those that differ and are not 0.
GridCount OnGrid(const TensorRef& t, const TensorRef& other, const Grid& grid) {
  GridCount c;
  for (int64_t i = 0; i < t.elements(); ++i) {
    if (ElementBits(t, i) == ElementBits(other, i)) continue;
    const float x = ValueAt(t, i);
    if (x == 0 || !std::isfinite(x)) continue;
    ++c.of;
    c.on += Bits(grid.through(x)) == Bits(x);
  }
  return c;
}

bool RoundedFrom(const TensorRef& narrow, const TensorRef& wide, const Grid& grid) {
  for (int64_t i = 0; i < wide.elements(); ++i) {
    const float x = ValueAt(wide, i), y = ValueAt(narrow, i);
    if (IsNan(x) && IsNan(y)) continue;
    if (Bits(grid.through(x)) != Bits(y)) return false;
  }
  return true;
}

std::optional<Finding> TryGrid(const ExplainInput& in) {
  const TensorDiff& d = in.origin.diff;
  for (const Grid& grid : kGrids) {
    const GridCount a = OnGrid(in.a.tensor, in.b.tensor, grid), b = OnGrid(in.b.tensor, in.a.tensor, grid);
    const bool b_narrow = b.of >= 4 && b.on == b.of && a.on * 4 < a.of * 3,
               a_narrow = a.of >= 4 && a.on == a.of && b.on * 4 < b.of * 3;
    if (!a_narrow && !b_narrow) continue;
    const TensorRef &narrow = b_narrow ? in.b.tensor : in.a.tensor, &wide = b_narrow ? in.a.tensor : in.b.tensor;
    const char *name = b_narrow ? "B" : "A", *other = b_narrow ? "A" : "B";
    Finding f;
    f.verdict = "DTYPE_DOWNGRADE";
    f.at = d.item.name;
    f.sentence =
        Format("%s holds %s values in %s storage; %s does not", name, grid.name, DTypeName(d.item.dtype), other);
    f.evidence.push_back(Format("all %lld differing values of %s lie on the %s grid, %lld of %lld of %s",
                                static_cast<long long>(b_narrow ? b.of : a.of), name, grid.name,
                                static_cast<long long>(b_narrow ? a.on : b.on),
                                static_cast<long long>(b_narrow ? a.of : b.of), other));
    f.evidence.push_back(RoundedFrom(narrow, wide, grid)
                             ? Format("%s = round(%s) to %s, every element", name, other, grid.name)
                             : Format("%s is not simply round(%s): the narrow format was used earlier", name, other));
    if (grid.through == ThroughBF16)
      if (const std::optional<GemmCase> c = FindGemm(in)) {
        const std::optional<Tensor> again = RunGemm(*c, d.item.dtype, 1, false, true);
        if (again && SameBits(again->ref(), narrow))
          f.evidence.push_back(
              Format("re-run: our GEMM with its accumulator stored through bf16 gives the bits of %s; a second "
                     "rounding, fp32 to bf16 to fp32",
                     name));
      }
    f.refute = Format("one value of %s with bits below the %s mantissa", name, grid.name);
    return f;
  }
  return std::nullopt;
}

std::optional<Finding> TryDouble(const ExplainInput& in) {
  const DType dtype = in.origin.diff.item.dtype;
  const Grid* out = dtype == DType::kF8E4M3 ? &kGrids[0]
                    : dtype == DType::kBF16 ? &kGrids[1]
                    : dtype == DType::kF16  ? &kGrids[2]
                                            : nullptr;
  if (out == nullptr) return std::nullopt;
  for (const Companion& c : in.companions) {
    if (!c.same || c.item.dtype != DType::kF32 || c.item.shape != in.origin.diff.item.shape) continue;
    for (const Grid& middle : kGrids) {
      if (&middle == out) continue;
      const auto is = [&](const TensorRef& t, bool twice) {
        for (int64_t i = 0; i < t.elements(); ++i) {
          const float x = ValueAt(c.a.tensor, i), want = out->through(twice ? middle.through(x) : x);
          if (Bits(want) != Bits(ValueAt(t, i)) && !(IsNan(want) && IsNan(ValueAt(t, i)))) return false;
        }
        return true;
      };
      for (const bool b_twice : {true, false}) {
        if (!is(b_twice ? in.b.tensor : in.a.tensor, true) || !is(b_twice ? in.a.tensor : in.b.tensor, false)) continue;
        Finding f;
        f.verdict = "DOUBLE_ROUNDING";
        f.at = in.origin.diff.item.name;
        f.sentence =
            Format("%s was rounded twice, through %s; %s once", b_twice ? "B" : "A", middle.name, b_twice ? "A" : "B");
        f.evidence.push_back(
            Format("re-run: rounding %s once gives every bit of %s, rounding it to %s first gives every bit of %s",
                   c.item.site.c_str(), b_twice ? "A" : "B", middle.name, b_twice ? "B" : "A"));
        f.refute = "one element that the second rounding does not explain";
        return f;
      }
    }
  }
  return std::nullopt;
}

}  // namespace

Result<std::optional<Finding>> TryDowngrade(const ExplainInput& in) {
  const TensorDiff& d = in.origin.diff;
  if (in.a.tensor.data == nullptr || !IsFloat(d.item.dtype) || d.verdict != DiffVerdict::kDivergent)
    return std::optional<Finding>();
  if (d.item.dtype == DType::kF32)
    if (std::optional<Finding> f = TryGrid(in)) return f;
  return TryDouble(in);
}

}  // namespace samebits
