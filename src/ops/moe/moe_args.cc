#include "base/strings.h"
#include "ops/moe/moe.h"

namespace samebits {

Status CheckCombine(const CombineArgs& args) {
  auto activation = [](DType d) { return d == DType::kBF16 || d == DType::kF32; };
  if (!activation(args.expert_out.dtype) || !activation(args.out.dtype) ||
      (args.shared && !activation(args.shared.dtype)))
    return Error("combine: operands must be BF16 or F32");
  const int64_t tokens = args.weights.rows, k = args.weights.cols;
  if (args.expert_out.rows != tokens * k)
    return Error(Format("combine: %lld expert rows for %lld tokens of %lld experts",
                        static_cast<long long>(args.expert_out.rows), static_cast<long long>(tokens),
                        static_cast<long long>(k)));
  if (args.out.rows != tokens || args.out.cols != args.expert_out.cols ||
      (args.shared && (args.shared.rows != tokens || args.shared.cols != args.out.cols)))
    return Error("combine: out and shared must be [tokens, n]");
  return Ok();
}

MoeDispatch PlanDispatch(View<const int32_t> experts, int64_t expert_count) {
  MoeDispatch plan;
  plan.begin.assign(static_cast<size_t>(expert_count) + 1, 0);
  for (int64_t t = 0; t < experts.rows; ++t)
    for (int64_t j = 0; j < experts.cols; ++j) {
      SB_CHECK(experts.Row(t)[j] >= 0 && experts.Row(t)[j] < expert_count, "expert number out of range");
      ++plan.begin[static_cast<size_t>(experts.Row(t)[j]) + 1];
    }
  for (size_t e = 1; e < plan.begin.size(); ++e) plan.begin[e] += plan.begin[e - 1];
  std::vector<int64_t> next(plan.begin.begin(), plan.begin.end() - 1);
  plan.token.resize(static_cast<size_t>(experts.rows * experts.cols));
  plan.row.resize(plan.token.size());
  for (int64_t t = 0; t < experts.rows; ++t)
    for (int64_t j = 0; j < experts.cols; ++j) {
      const int64_t row = next[static_cast<size_t>(experts.Row(t)[j])]++;
      plan.token[static_cast<size_t>(row)] = static_cast<int32_t>(t);
      plan.row[static_cast<size_t>(t * experts.cols + j)] = static_cast<int32_t>(row);
    }
  return plan;
}

}  // namespace samebits
