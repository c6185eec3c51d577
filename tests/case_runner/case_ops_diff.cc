#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>

#include "base/strings.h"
#include "case.h"
#include "forensics/compare.h"
#include "forensics/run_diff.h"
#include "store/safetensors.h"

namespace samebits {
namespace {

// "data" is the bits of each element.
Tensor TensorOf(const Json& j) {
  Members tensor(j, "tensor");
  const auto dtype = DTypeFromName(Value<std::string>(tensor["dtype"]));
  if (!dtype) Malformed("an unknown dtype");
  const Shape shape = Row<int64_t>(tensor["shape"]);
  int64_t count = 1;
  for (const int64_t d : shape) {
    if (d < 0 || d > (1 << 24)) Malformed("a dimension out of range");
    if ((count *= d) > (1 << 24)) Malformed("a tensor too large");
  }
  const Json& data = List(tensor["data"]);
  const int bits = DTypeBits(*dtype);
  if (static_cast<int64_t>(data.size()) != count || bits % 8 != 0) Malformed("data does not fill the shape");
  Tensor t(*dtype, shape);
  for (size_t i = 0; i < data.size(); ++i) {
    const uint64_t value = HexBits(data[i], bits / 4);
    std::memcpy(static_cast<uint8_t*>(t.raw()) + i * static_cast<size_t>(bits / 8), &value,
                static_cast<size_t>(bits / 8));
  }
  return t;
}

void DiffTensors(Members& in, Members& want) {
  const Tensor a = TensorOf(in["a"]), b = TensorOf(in["b"]);
  const Comparison c = CompareTensors(a.ref(), b.ref());
  const CompareStats& s = c.stats;
  ExpectText("status", CompareStatusName(c.status), want["status"]);
  auto integer = [&](const char* name, int64_t got) {
    if (const Json* x = want.Find(name)) ExpectInts(name, std::vector{got}, Json::array({*x}));
  };
  integer("elements", s.elements);
  integer("bit_mismatches", s.bit_mismatches);
  integer("first_bit_mismatch", s.first_bit);
  integer("value_mismatches", s.value_mismatches);
  integer("first_value_mismatch", s.first_value);
  integer("nan_on_one_side", s.nan_one_side);
  integer("number_pairs", s.number_pairs);
  integer("max_ulp_of_number_pairs", static_cast<int64_t>(s.max_ulp));
  integer("max_abs_index", s.max_abs_at);
  if (const Json* x = want.Find("max_abs_of_number_pairs")) {
    if (IsInteger(a.dtype())) {
      // Kept as an integer: above 2^53 a double would not do.
      Expect(std::to_string(s.max_abs_integer) == (x->is_string() ? x->get<std::string>() : x->dump()),
             "max_abs is " + std::to_string(s.max_abs_integer) + ", expected " + x->dump());
    } else {
      ExpectNear("max_abs", s.max_abs, *x, 0, 1e-15);
    }
  }
  if (const Json* x = want.Find("exact_values_equal"))
    Expect(c.exact_values_equal == x->get<bool>(), "exact_values_equal");
  if (const Json* x = want.Find("tolerance_applies")) {
    // Under a tolerance that lets anything pass, integers and booleans must still differ.
    const auto policy = ParsePredicate("rtol=1e30,atol=1e30");
    ExpectOk(policy.status());
    const bool applies = OutsideTolerance(*policy, a.ref(), b.ref(), c) == 0;
    Expect(applies == x->get<bool>(), applies ? "a tolerance was applied" : "no tolerance was applied");
  }
}

void RelativeL2(Members& in, Members& want) {
  const std::vector<float> a = Row<float>(in["a_f32"]), b = Row<float>(in["b_f32"]);
  if (a.size() != b.size()) Malformed("a and b differ in length");
  const Shape shape = {static_cast<int64_t>(a.size())};
  const Comparison c = CompareTensors({DType::kF32, shape, a.data()}, {DType::kF32, shape, b.data()});
  ExpectNear("relative_l2", c.stats.RelativeL2(), want["relative_l2"], Value<double>(want["abs_tol"]));
  if (const Json* x = want.Find("passes_le_zero"))
    Expect((c.stats.RelativeL2() <= 0) == x->get<bool>(), "passes_le_zero");
}

// Both sides as files, through the comparison the command line runs.
void DiffFiles(Members& in, Members& want) {
  char folder[] = "/tmp/samebits_case_XXXXXX";
  Expect(::mkdtemp(folder) != nullptr, "cannot make a folder in /tmp");
  struct Remove {
    std::string path;
    ~Remove() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
  } remove{folder};
  std::unique_ptr<TensorSource> sides[2];
  for (int side = 0; side < 2; ++side) {
    std::vector<Tensor> tensors;
    std::vector<NamedTensor> named;
    const Json& given = in[side == 0 ? "a" : "b"];
    if (!given.is_object()) Malformed("a side is not an object of tensors");
    for (const auto& [name, tensor] : given.items()) tensors.push_back(TensorOf(tensor));
    size_t i = 0;
    for (const auto& [name, tensor] : given.items()) named.push_back({name, tensors[i++].ref()});
    const std::string path = std::string(folder) + (side == 0 ? "/a.safetensors" : "/b.safetensors");
    ExpectOk(WriteSafetensors(path, named));
    auto source = TensorSource::Open(path);
    ExpectOk(source.status());
    sides[side] = std::move(*source);
  }
  std::map<std::string, std::vector<std::string>> lists;
  DiffOptions options;
  options.quiet = true;
  bool different = false, values = false;
  const auto sums = DiffSources(*sides[0], *sides[1], options, [&](const TensorDiff& d, TensorSource&, TensorSource&) {
    const char* list = "value_different";
    switch (d.verdict) {
      case DiffVerdict::kIdentical:
        list = "equal";
        break;
      case DiffVerdict::kEqualValues:
        list = "equal_values", values = true;
        break;
      case DiffVerdict::kOnlyLeft:
        list = "only_in_a";
        break;
      case DiffVerdict::kOnlyRight:
        list = "only_in_b";
        break;
      case DiffVerdict::kShapeMismatch:
        list = "shape_mismatch";
        break;
      case DiffVerdict::kDtypeMismatch:
        list = "dtype_mismatch";
        break;
      default:
        break;
    }
    different |= d.verdict != DiffVerdict::kIdentical && d.verdict != DiffVerdict::kEqualValues;
    lists[list].push_back(d.item.name);
    return Ok();
  });
  ExpectOk(sums.status());
  const std::string status = different ? "different" : values ? "equal_values" : "equal_bits";
  if (const Json* x = want.Find("status")) ExpectText("status", status, *x);
  if (const Json* x = want.Find("status_one_of")) {
    const std::vector<std::string> allowed = Row<std::string>(*x);
    Expect(std::find(allowed.begin(), allowed.end(), status) != allowed.end(), "status is " + status);
  }
  for (const char* name :
       {"only_in_a", "only_in_b", "equal", "equal_values", "value_different", "shape_mismatch", "dtype_mismatch"}) {
    const Json* x = want.Find(name);
    if (x == nullptr) continue;
    std::vector<std::string> got = lists[name], expected = Row<std::string>(*x);
    std::sort(got.begin(), got.end());
    std::sort(expected.begin(), expected.end());
    Expect(got == expected, std::string(name) + " is " + Json(got).dump());
  }
}

constexpr CaseOp kOps[] = {{"diff_tensors", DiffTensors}, {"relative_l2", RelativeL2}, {"diff_files", DiffFiles}};

}  // namespace

std::span<const CaseOp> DiffCaseOps() { return kOps; }

}  // namespace samebits
