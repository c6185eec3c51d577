// A restricted reader of Python pickles as torch.save writes them. It builds plain values and runs nothing: the only
// "calls" it knows are the few constructors listed in pickle.cc, each of which makes one of the node kinds below. A
// pickle that names anything else is refused by that name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "tensor/tensor.h"

namespace samebits {

struct PickleNode {
  enum class Kind {
    kNone,
    kBool,      // integer
    kInt,       // integer
    kFloat,     // number
    kText,      // text; also integers too large for 64 bits, in hex
    kBytes,     // text
    kSequence,  // children: list, tuple, set, torch.Size
    kDict,      // children: key, value, key, value, ...
    kGlobal,    // text: "module name", always one of the allowed
    kStorage,   // text: key; dtype; integer: number of elements
    kTensor,    // children[0]: storage; dtype; offset, shape, strides in elements
    kMark,
  };
  Kind kind = Kind::kNone;
  int64_t integer = 0;
  double number = 0;
  std::string text;
  std::vector<uint32_t> children;
  DType dtype = DType::kU8;
  bool untyped = false;  // a storage measured in bytes, whose dtype the tensor gives
  Shape shape, strides;
};

// All values of a pickle; children are indices into nodes.
struct Pickle {
  std::vector<PickleNode> nodes;
  uint32_t root = 0;
};

Result<Pickle> ParsePickle(const uint8_t* data, uint64_t size, const std::string& label);

}  // namespace samebits
