// The meaning of top-k: sort the candidates by Before() and keep the first k.

#include <algorithm>
#include <vector>

#include "numerics/philox.h"
#include "ops/topk/topk.h"

namespace samebits {

void TopkRef(const TopkArgs& args, const TopkRule& rule) {
  const int64_t k = args.indices.cols;
  for (int64_t r = 0; r < args.scores.rows; ++r) {
    const int64_t start = args.row_starts ? args.row_starts[r] : 0;
    const int64_t len = args.row_lens ? args.row_lens[r] : args.scores.cols - start;
    std::vector<Candidate> candidates;
    int32_t nans = 0;
    for (int64_t i = 0; i < len; ++i) {
      const float score = args.scores.Row(r)[start + i];
      if (IsNan(score)) {
        ++nans;
      } else {
        candidates.push_back({score, static_cast<int32_t>(i)});
      }
    }
    const auto arbitrary = [&](int32_t i) {
      return Philox4x32(rule.shuffle_ties_seed, static_cast<uint64_t>(r), static_cast<uint64_t>(i)).v[0];
    };
    std::sort(candidates.begin(), candidates.end(), [&](Candidate a, Candidate b) {
      if (OrderKey(a.score) == OrderKey(b.score)) {
        if (rule.high_index_wins_ties) return a.index > b.index;
        if (rule.shuffle_ties_seed != 0) return arbitrary(a.index) < arbitrary(b.index);
      }
      return Before(a, b);
    });
    const size_t chosen = std::min(candidates.size(), static_cast<size_t>(k));
    int32_t* out = args.indices.Row(r);
    for (size_t j = 0; j < chosen; ++j) out[j] = candidates[j].index;
    std::fill(out + chosen, out + k, -1);
    if (args.output == TopkOutput::kAscending) std::sort(out, out + chosen);
    if (args.nan_counts) args.nan_counts[r] = nans;
  }
}

void PageTransformRef(const PageTransformArgs& args) {
  for (int64_t r = 0; r < args.indices.rows; ++r) {
    const int32_t* table = args.page_table.Row(args.request ? args.request[r] : r);
    for (int64_t j = 0; j < args.indices.cols; ++j) {
      const int32_t i = args.indices.Row(r)[j];
      args.slots.Row(r)[j] = i < 0 ? -1 : table[i / args.page_size] * args.page_size + i % args.page_size;
    }
  }
}

}  // namespace samebits
