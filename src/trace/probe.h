// The dump hook. The forward pass calls PROBE at every site of sites.inc; a sink copies or hashes what it wants at
// once, so that later reuse of the buffer cannot change it. Recording on or off changes no bit (tests/invariance).
#pragma once

#include <cstdint>

#include "tensor/tensor.h"
#include "trace/sites.h"

namespace samebits {

// Whose row it is: the request and the token's position in it. Traces and `prove` align by this, never by batch row.
struct RowOwner {
  int64_t request = 0;
  int32_t position = 0;
};

class ProbeSink {
 public:
  virtual ~ProbeSink() = default;
  virtual bool Wants(Site site, int layer) const = 0;
  // rows: data of [count, cols] elements of `dtype`, `stride` elements apart; row r belongs to owners[r]. For sites
  // whose rows have their own length (index_scores), lens[r] elements count; otherwise lens is null. layer -1: outside
  // layers.
  struct Rows {
    const void* data;
    DType dtype;
    int64_t count, cols, stride;
    const int32_t* lens;
    const RowOwner* owners;
  };
  virtual void OnRows(Site site, int layer, const Rows& rows) = 0;
};

// sink may be null. Evaluates its rows only when wanted.
#define PROBE(sink, site, layer, ...)                                           \
  do {                                                                          \
    if ((sink) != nullptr && (sink)->Wants((site), (layer))) [[unlikely]]       \
      (sink)->OnRows((site), (layer), ::samebits::ProbeSink::Rows __VA_ARGS__); \
  } while (false)

}  // namespace samebits
