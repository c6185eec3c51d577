#pragma once

#include "forensics/explain/explain.h"

namespace samebits {

// INDEX_ORDER or ORDER_ONLY_HARMLESS: the list differs, the sets of all rows are equal.
Finding OrderFinding(const ExplainInput& in, int64_t rows);

}  // namespace samebits
