// NumPy's .npy, versions 1 to 3: the header only; the data stays where it is.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "tensor/tensor.h"

namespace samebits {

struct NpyHeader {
  DType dtype = DType::kU8;
  Shape shape;
  bool fortran = false;     // column-major
  bool big_endian = false;  // of a type wider than a byte
  std::string note;         // how a type without a name was read; empty otherwise
  uint64_t data_offset = 0;
};

// Checks that exactly the array's bytes follow the header. `V2` (bfloat16 as NumPy stores it) reads as BF16, `V1` (8-bit
// floats) as U8, with a note. Structured and object arrays are refused.
Result<NpyHeader> ParseNpy(const uint8_t* data, uint64_t size, const std::string& label);

// The array as row-major little-endian; for headers with fortran or big_endian.
Tensor NpyToRowMajor(const NpyHeader& header, const uint8_t* file);

// Writes version 1.0, or 2.0 for long headers. BF16 and 8-bit floats are written as V2 and V1, which NumPy and ml_dtypes view.
Status WriteNpy(const std::string& path, const TensorRef& tensor);

}  // namespace samebits
