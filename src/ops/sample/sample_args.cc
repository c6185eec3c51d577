#include "base/strings.h"
#include "ops/sample/sample.h"

namespace samebits {

Status CheckSample(const SampleParams& params) {
  if (!(params.temperature >= 0.0f) || params.temperature > 1e6f)
    return Error(Format("temperature %g is out of range; 0 (greedy) to 1e6 are allowed",
                        static_cast<double>(params.temperature)));
  if (!(params.top_p > 0.0) || params.top_p > 1.0)
    return Error(Format("top_p %g is out of range; above 0 up to 1 are allowed", params.top_p));
  if (params.top_k < 0) return Error(Format("top_k %d is negative; 0 means no limit", params.top_k));
  return Ok();
}

}  // namespace samebits
