// NOT_COMPARABLE: the captures are not of the same thing: other tokens or positions, warm-up zeros, padding, a residual
// added on one side only, a reduction before or after, another model, an alias overwritten after the capture.
#include <algorithm>
#include <cmath>

#include "base/strings.h"
#include "forensics/explain/explain.h"

namespace samebits {
namespace {

Finding Say(const std::string& at, const std::string& sentence, std::vector<std::string> evidence,
            const std::string& refute) {
  return {"NOT_COMPARABLE", at, sentence, std::move(evidence), refute};
}

bool AllZero(const TensorRef& t) {
  for (int64_t i = 0; i < t.elements(); ++i)
    if (ElementAsDouble(t, i) != 0) return false;
  return t.elements() > 0;
}

std::optional<Finding> OtherInput(const ExplainInput& in) {
  for (const TensorDiff& d : in.located.differing)
    for (const char* name : {"input_ids", "token_ids", "tokens", "positions", "position_ids"})
      if (d.item.site == name)
        return Say(d.item.name, std::string("the two runs did not get the same ") + name,
                   {"every later difference follows from it"}, std::string("a pair of captures with equal ") + name);
  const TraceReader *a = in.left.recording(), *b = in.right.recording();
  if (a == nullptr || b == nullptr) return std::nullopt;
  for (const char* key : {"model", "model_hash", "model_sha256", "prompt", "prompt_hash"}) {
    const auto x = a->manifest().about.find(key), y = b->manifest().about.find(key);
    if (x != a->manifest().about.end() && y != b->manifest().about.end() && x->second != y->second)
      return Say(in.left.path(),
                 std::string("the recordings are of another ") + key + ": " + x->second + " and " + y->second, {},
                 "two recordings of one model and prompt");
  }
  const TensorDiff& d = in.origin.diff;
  if (d.item.record && d.right.record && !d.item.record->owners.empty() &&
      d.item.record->owners != d.right.record->owners)
    return Say(d.item.name, "the rows belong to other requests or positions on the two sides",
               {"owners of the rows differ in the index lines"}, "recordings of the same requests in the same batches");
  return std::nullopt;
}

std::optional<Finding> Zeros(const ExplainInput& in) {
  if (in.a.tensor.data == nullptr || !IsFloat(in.origin.diff.item.dtype) || in.a.tensor.elements() < 8)
    return std::nullopt;
  const bool a = AllZero(in.a.tensor), b = AllZero(in.b.tensor);
  if (a == b) return std::nullopt;
  for (const Companion& c : in.companions)  // a partial sum of zero is another story
    if (c.item.site.find("partial") != std::string::npos) return std::nullopt;
  return Say(in.origin.diff.item.name,
             std::string(a ? "A" : "B") +
                 " is all zero: the capture is of a warm-up or profiling pass, or ran before the kernel",
             {"not one element differs from 0 on that side"}, "a capture of the real request that is zero as well");
}

std::optional<Finding> Padding(const ExplainInput& in) {
  const TensorDiff& d = in.origin.diff;
  if (d.verdict != DiffVerdict::kShapeMismatch) return std::nullopt;
  const Shape &x = d.item.shape, &y = d.right.shape;
  if (x.size() != y.size() || x.empty() || d.item.dtype != d.right.dtype ||
      !std::equal(x.begin() + 1, x.end(), y.begin() + 1))
    return Say(d.item.name, "the shapes " + ShapeText(x) + " and " + ShapeText(y) + " are not of the same thing", {},
               "captures of one shape");
  const int64_t common = std::min(x[0], y[0]), more = std::max(x[0], y[0]);
  std::vector<std::string> evidence;
  if ((more & (more - 1)) == 0)
    evidence.push_back(Format("%lld rows is a power of two: the side is padded", static_cast<long long>(more)));
  if (in.a.tensor.data != nullptr) {
    TensorRef p = in.a.tensor, q = in.b.tensor;
    p.shape[0] = q.shape[0] = common;
    const Comparison c = CompareTensors(p, q);
    evidence.push_back(
        c.stats.bit_mismatches == 0
            ? Format("the first %lld rows are equal bit for bit: trim the longer side", static_cast<long long>(common))
            : Format("%lld elements of the first %lld rows differ", static_cast<long long>(c.stats.bit_mismatches),
                     static_cast<long long>(common)));
  }
  return Say(
      d.item.name,
      Format("one side has %lld rows, the other %lld", static_cast<long long>(x[0]), static_cast<long long>(y[0])),
      evidence, "captures trimmed to the true number of tokens");
}

// a = b + r, rounded once: r was added on one side only.
std::optional<Finding> Residual(const ExplainInput& in) {
  const TensorDiff& d = in.origin.diff;
  if (in.a.tensor.data == nullptr || !IsFloat(d.item.dtype) || d.verdict != DiffVerdict::kDivergent ||
      in.a.tensor.elements() < 8)
    return std::nullopt;
  const double epsilon = d.item.dtype == DType::kBF16 ? 0x1p-8 : d.item.dtype == DType::kF16 ? 0x1p-11 : 0x1p-22;
  for (const Companion& c : in.companions) {
    const bool residual = c.item.site.find("resid") != std::string::npos || c.item.site == "hidden_in";
    if (!residual || !c.same || c.item.shape != d.item.shape || AllZero(c.a.tensor)) continue;
    for (const bool right : {true, false}) {
      const TensorRef &less = right ? in.b.tensor : in.a.tensor, &more = right ? in.a.tensor : in.b.tensor;
      int64_t good = 0;
      for (int64_t i = 0; i < less.elements(); ++i) {
        const double x = ElementAsDouble(less, i), r = ElementAsDouble(c.a.tensor, i), t = ElementAsDouble(more, i);
        good += std::fabs(x + r - t) <= epsilon * (std::fabs(x) + std::fabs(r) + std::fabs(t));
      }
      if (good * 100 >= less.elements() * 99)
        return Say(
            d.item.name,
            std::string(right ? "A" : "B") + " has the residual " + c.item.site + " added, the other side has not",
            {"adding it to the other side gives the same values within one rounding"},
            "captures taken on the same side of the residual addition");
    }
  }
  return std::nullopt;
}

// Within one side, what leaves layer i must be what enters layer i + 1.
std::optional<Finding> Alias(const ExplainInput& in) {
  const SourceItem& item = in.origin.diff.item;
  const bool output = item.site == "hidden" || item.site == "output";
  if (!output || in.a.tensor.data == nullptr || item.layer < 0) return std::nullopt;
  for (const bool right : {true, false}) {
    TensorSource &side = right ? in.right : in.left, &other = right ? in.left : in.right;
    const TensorRef &mine = right ? in.b.tensor : in.a.tensor, &theirs = right ? in.a.tensor : in.b.tensor;
    const auto next = [&](TensorSource& s) -> LoadedTensor {
      for (size_t i = 0; i < s.size(); ++i) {
        const Result<SourceItem> at = s.Item(i);
        if (!at.ok() || (*at).layer != item.layer + 1 || (*at).step != item.step || (*at).rank != item.rank ||
            !(*at).has_data)
          continue;
        if ((*at).site != "hidden_in" && (*at).site != "input") continue;
        const Result<LoadedTensor> loaded = s.Load(i);
        if (loaded.ok()) return *loaded;
      }
      return {};
    };
    const LoadedTensor x = next(side), y = next(other);
    if (x.tensor.data == nullptr || y.tensor.data == nullptr) continue;
    if (!SameBits(mine, x.tensor) && SameBits(theirs, y.tensor) && SameBits(x.tensor, y.tensor))
      return Say(item.name,
                 std::string(right ? "B" : "A") +
                     " was overwritten after the capture (saved by reference): it is not what the next layer received",
                 {Format("the input of layer %d is equal on both sides, and only the other side's output of layer %d "
                         "is that input",
                         item.layer + 1, item.layer)},
                 "a capture that copies at once");
  }
  return std::nullopt;
}

// Rank outputs of one side are equal (after the reduction), of the other they add up to them (before it).
std::optional<Finding> Collective(const ExplainInput& in) {
  const SourceItem& item = in.origin.diff.item;
  if (in.a.tensor.data == nullptr || !IsFloat(item.dtype)) return std::nullopt;
  std::vector<LoadedTensor> a, b;
  for (TensorSource* s : {&in.left, &in.right})
    for (size_t i = 0; i < s->size(); ++i) {
      const Result<SourceItem> at = s->Item(i);
      if (!at.ok() || (*at).site != item.site || (*at).layer != item.layer || (*at).step != item.step ||
          !(*at).has_data || (*at).shape != item.shape || (*at).dtype != item.dtype)
        continue;
      const Result<LoadedTensor> loaded = s->Load(i);
      if (loaded.ok()) (s == &in.left ? a : b).push_back(*loaded);
    }
  if (a.size() < 2 || a.size() != b.size()) return std::nullopt;
  for (const bool right_before : {true, false}) {
    const auto &before = right_before ? b : a, &after = right_before ? a : b;
    bool shown = !SameBits(before[0].tensor, before[1].tensor);
    for (size_t r = 1; r < after.size() && shown; ++r) shown = SameBits(after[0].tensor, after[r].tensor);
    for (int64_t i = 0; i < after[0].tensor.elements() && shown; ++i) {
      double sum = 0, size = 0;
      for (const LoadedTensor& t : before)
        sum += ElementAsDouble(t.tensor, i), size += std::fabs(ElementAsDouble(t.tensor, i));
      shown = std::fabs(sum - ElementAsDouble(after[0].tensor, i)) <= 0x1p-6 * size;
    }
    if (shown)
      return Say(item.name,
                 std::string(right_before ? "B" : "A") + " was captured before the all-reduce, the other side after it",
                 {Format("the %zu ranks of one side are equal, those of the other add up to them", a.size())},
                 "captures on the same side of the collective");
  }
  return std::nullopt;
}

}  // namespace

Result<std::optional<Finding>> TryNotComparable(const ExplainInput& in) {
  for (const auto test : {OtherInput, Padding, Collective, Alias, Residual, Zeros})
    if (std::optional<Finding> f = test(in)) return f;
  return std::optional<Finding>();
}

}  // namespace samebits
