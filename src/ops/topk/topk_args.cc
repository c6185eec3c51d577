#include "base/strings.h"
#include "ops/topk/topk.h"

namespace samebits {

Status CheckTopk(const TopkArgs& args) {
  const int64_t rows = args.scores.rows, n = args.scores.cols, k = args.indices.cols;
  if (n >= (int64_t{1} << 31))
    return Error(Format("top-k: %lld columns; up to 2^31 - 1 are supported", static_cast<long long>(n)));
  if (k < 1 || k > 4096) return Error(Format("top-k: k = %lld; 1 to 4096 are supported", static_cast<long long>(k)));
  if (args.indices.rows != rows)
    return Error(Format("top-k: %lld rows of scores, %lld of output", static_cast<long long>(rows),
                        static_cast<long long>(args.indices.rows)));
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t start = args.row_starts ? args.row_starts[r] : 0, len = args.row_lens ? args.row_lens[r] : n - start;
    if (len > 0 && (start < 0 || start + len > n))
      return Error(Format("top-k: row %lld covers columns [%lld, %lld) of %lld", static_cast<long long>(r),
                          static_cast<long long>(start), static_cast<long long>(start + len),
                          static_cast<long long>(n)));
  }
  return Ok();
}

Status CheckPageTransform(const PageTransformArgs& args) {
  if (args.page_size < 1) return Error(Format("page transform: page size %d", args.page_size));
  if (args.slots.rows != args.indices.rows || args.slots.cols != args.indices.cols)
    return Error("page transform: slots must be shaped like indices");
  for (int64_t r = 0; r < args.indices.rows; ++r) {
    const int64_t request = args.request ? args.request[r] : r;
    if (request < 0 || request >= args.page_table.rows)
      return Error(Format("page transform: row %lld names request %lld of %lld", static_cast<long long>(r),
                          static_cast<long long>(request), static_cast<long long>(args.page_table.rows)));
    for (int64_t j = 0; j < args.indices.cols; ++j) {
      const int64_t page = args.indices.Row(r)[j] / args.page_size;
      if (args.indices.Row(r)[j] >= 0 && (page >= args.page_table.cols || args.page_table.Row(request)[page] < 0))
        return Error(Format("page transform: row %lld needs page %lld, which its table lacks",
                            static_cast<long long>(r), static_cast<long long>(page)));
    }
  }
  return Ok();
}

}  // namespace samebits
