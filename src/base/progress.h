// Progress of long work on a terminal: one line, rewritten at most ten times a second, with rate and time left. Silent
// when stderr is not a terminal or quiet is asked; never touches stdout.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace samebits {

class Progress {
 public:
  // unit: "tokens", "bytes", ...; total <= 0: unknown.
  Progress(std::string label, std::string unit, int64_t total, bool enabled = true);
  ~Progress();
  void Add(int64_t done);

 private:
  void Print();
  std::string label_, unit_;
  int64_t total_, done_ = 0;
  bool enabled_, printed_ = false;
  std::chrono::steady_clock::time_point start_, last_;
};

// True if colour may be used on stdout: a terminal, and NO_COLOR unset.
bool UseColour(bool stdout_is_terminal, const char* no_color_env);

}  // namespace samebits
