// Text up to the first stop string, streamed: what could still become a stop is held back, and nothing more.
//
// The first stop is the one that is complete first; of two that end at the same place, the longer. So the text does not
// depend on the portions it comes in.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace samebits {

class StopFilter {
 public:
  // Empty strings are ignored.
  explicit StopFilter(const std::vector<std::string>& stops);
  // What may be shown now. After the stop: nothing.
  std::string Push(std::string_view text);
  // End of the stream: what was held.
  std::string Flush();
  bool stopped() const { return stopped_; }

 private:
  struct Stop {
    std::string text;
    std::vector<uint32_t> failure;  // failure[i]: length of the longest border of the first i bytes
    uint32_t matched = 0;           // longest prefix that the text ends with
  };
  std::vector<Stop> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace samebits
