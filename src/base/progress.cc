#include "base/progress.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

namespace samebits {

Progress::Progress(std::string label, std::string unit, int64_t total, bool enabled)
    : label_(std::move(label)), unit_(std::move(unit)), total_(total), enabled_(enabled && ::isatty(2)) {
  start_ = last_ = std::chrono::steady_clock::now();
}

Progress::~Progress() {
  if (printed_) std::fputs("\r\033[K", stderr);
}

void Progress::Add(int64_t done) {
  done_ += done;
  if (!enabled_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  Print();
}

void Progress::Print() {
  const double seconds = std::chrono::duration<double>(last_ - start_).count();
  const double rate = seconds > 0 ? static_cast<double>(done_) / seconds : 0;
  if (total_ > 0 && rate > 0) {
    std::fprintf(stderr, "\r\033[K%s  %lld/%lld %s  %.0f/s  %.0f s left", label_.c_str(), static_cast<long long>(done_),
                 static_cast<long long>(total_), unit_.c_str(), rate, static_cast<double>(total_ - done_) / rate);
  } else {
    std::fprintf(stderr, "\r\033[K%s  %lld %s  %.0f/s", label_.c_str(), static_cast<long long>(done_), unit_.c_str(),
                 rate);
  }
  printed_ = true;
}

bool UseColour(bool stdout_is_terminal, const char* no_color_env) {
  return stdout_is_terminal && (no_color_env == nullptr || no_color_env[0] == '\0');
}

}  // namespace samebits
