// Brings another engine's dump (a file or a folder of tensor files) into a recording, and a recording's data back into
// plain files.
#pragma once

#include <string>

#include "forensics/tensor_source.h"
#include "trace/trace_writer.h"

namespace samebits {

struct ImportCounts {
  int64_t tensors = 0;
  int64_t skipped = 0;  // without data
  uint64_t bytes = 0;
};
// `folder` must not hold a recording yet. Shapes of more than two dimensions become rows of their last dimension.
Result<ImportCounts> ImportDump(TensorSource& source, const std::string& folder, TraceLevel level);
// debug_<site>_file_<layer>_tp<rank>.safetensors, the classic names; step and call follow where they are not 0.
Result<ImportCounts> ExportRecording(TensorSource& source, const std::string& folder);

}  // namespace samebits
