#include "forensics/explain/topk_case.h"

#include <algorithm>
#include <map>

#include "base/strings.h"
#include "forensics/index_sets.h"

namespace samebits {
namespace {

bool IsOneOf(const std::string& name, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(), [&](const char* w) { return name == w; });
}

}  // namespace

Result<std::vector<TopkCase>> FindTopkCases(TensorSource& source) {
  std::map<std::tuple<int64_t, int, int, std::string>, TopkCase> found;
  for (size_t i = 0; i < source.size(); ++i) {
    SB_ASSIGN(const SourceItem item, source.Item(i));
    if (!item.has_data) continue;
    const bool topk = IsOneOf(item.site, {"topk", "topk_result", "topk_indices", "topk_index"});
    const bool logits = IsOneOf(item.site, {"index_scores", "scores"}) || (item.site == "logits" && !item.record);
    const bool starts = item.site == "row_starts", lens = item.site == "row_lens";
    if (!topk && !logits && !starts && !lens) continue;
    const size_t colon = item.record ? std::string::npos : item.name.rfind(':');
    const std::string file = colon == std::string::npos ? "" : item.name.substr(0, colon);
    TopkCase& c = found[{item.step, item.layer, item.rank, file}];
    c.step = item.step, c.layer = item.layer, c.rank = item.rank;
    c.scope = !file.empty() ? file
              : item.layer >= 0 && item.record
                  ? Format("step %lld layer %d", static_cast<long long>(item.step), item.layer)
                  : "";
    SB_ASSIGN(LoadedTensor loaded, source.Load(i));
    if (topk) c.topk = loaded, c.topk_index = i;
    if (logits) {
      c.logits = loaded;
      if (item.record) c.lens_of_record = item.record->lens;
    }
    if (starts) c.row_starts = loaded;
    if (lens) c.row_lens = loaded;
  }
  std::vector<TopkCase> out;
  for (auto& [key, c] : found)
    if (c.topk.tensor.data != nullptr && IsInteger(c.topk.tensor.dtype) && !c.topk.tensor.shape.empty())
      out.push_back(std::move(c));
  return out;
}

Result<TopkInputs> InputsOf(const TopkCase& c) {
  const TensorRef& logits = c.logits.tensor;
  if (logits.data == nullptr) return Error(c.scope + ": the scores (logits, index_scores) were not recorded");
  if (!IsFloat(logits.dtype) || logits.dtype == DType::kF64 || logits.shape.size() != 2)
    return Error(c.scope + ": the scores are " + DTypeName(logits.dtype) + " " + ShapeText(logits.shape) +
                 ", not a matrix of floats");
  TopkInputs in;
  in.rows = logits.shape[0], in.n = logits.shape[1], in.k = c.topk.tensor.shape.back();
  if (in.k <= 0 || c.topk.tensor.elements() / in.k != in.rows)
    return Error(c.scope + ": the top-k list " + ShapeText(c.topk.tensor.shape) + " has other rows than the scores " +
                 ShapeText(logits.shape));
  in.scores.resize(static_cast<size_t>(in.rows * in.n));
  for (int64_t i = 0; i < in.rows * in.n; ++i)
    in.scores[static_cast<size_t>(i)] = static_cast<float>(ElementAsDouble(logits, i));
  in.starts.assign(static_cast<size_t>(in.rows), 0);
  in.lens.assign(static_cast<size_t>(in.rows), static_cast<int32_t>(in.n));
  if (static_cast<int64_t>(c.lens_of_record.size()) == in.rows) in.lens = c.lens_of_record;
  const auto bounds = [&](const LoadedTensor& t, const char* name, std::vector<int32_t>* to) -> Status {
    if (t.tensor.data == nullptr) return Ok();
    if (!IsInteger(t.tensor.dtype) || t.tensor.elements() != in.rows)
      return Error(c.scope + ": " + name + " is " + DTypeName(t.tensor.dtype) + " " + ShapeText(t.tensor.shape) +
                   " for " + std::to_string(in.rows) + " rows");
    for (int64_t r = 0; r < in.rows; ++r) {
      const int64_t v = IntegerAt(t.tensor, r);
      if (v < 0 || v > in.n)
        return Error(
            c.scope + ": " + name +
            Format(" of row %lld is %lld, outside the row", static_cast<long long>(r), static_cast<long long>(v)));
      (*to)[static_cast<size_t>(r)] = static_cast<int32_t>(v);
    }
    return Ok();
  };
  SB_RETURN_IF_ERROR(bounds(c.row_starts, "row_starts", &in.starts));
  SB_RETURN_IF_ERROR(bounds(c.row_lens, "row_lens", &in.lens));
  for (int64_t r = 0; r < in.rows; ++r)
    if (in.starts[static_cast<size_t>(r)] + in.lens[static_cast<size_t>(r)] > in.n)
      in.lens[static_cast<size_t>(r)] = static_cast<int32_t>(in.n) - in.starts[static_cast<size_t>(r)];
  return in;
}

TopkArgs TopkInputs::Args(View<int32_t> out) const {
  TopkArgs args;
  args.scores = View<const float>(scores.data(), rows, n);
  args.row_starts = starts.data(), args.row_lens = lens.data();
  args.indices = out;
  return args;
}

Result<Tensor> ReferenceTopk(const TopkCase& c, const TopkRule& rule) {
  SB_ASSIGN(const TopkInputs in, InputsOf(c));
  Tensor out(DType::kI32, c.topk.tensor.shape);
  const TopkArgs args = in.Args(View<int32_t>(out.As<int32_t>(), in.rows, in.k));
  SB_RETURN_IF_ERROR(CheckTopk(args));
  TopkRef(args, rule);
  return out;
}

}  // namespace samebits
