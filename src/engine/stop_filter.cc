#include "engine/stop_filter.h"

#include <algorithm>

namespace samebits {

StopFilter::StopFilter(const std::vector<std::string>& stops) {
  for (const std::string& text : stops) {
    if (text.empty()) continue;
    Stop s;
    s.text = text;
    s.failure.assign(text.size() + 1, 0);
    for (size_t i = 1, border = 0; i < text.size(); ++i) {
      while (border > 0 && text[i] != text[border]) border = s.failure[border];
      if (text[i] == text[border]) ++border;
      s.failure[i + 1] = static_cast<uint32_t>(border);
    }
    stops_.push_back(std::move(s));
  }
}

std::string StopFilter::Push(std::string_view text) {
  if (stopped_) return {};
  for (const char c : text) {
    held_ += c;
    size_t longest = 0;
    for (Stop& s : stops_) {
      while (s.matched > 0 && s.text[s.matched] != c) s.matched = s.failure[s.matched];
      if (s.text[s.matched] == c) ++s.matched;
      if (s.matched == s.text.size()) longest = std::max(longest, s.text.size());
    }
    if (longest > 0) {
      stopped_ = true;
      held_.resize(held_.size() - longest);
      return std::move(held_);
    }
  }
  size_t keep = 0;
  for (const Stop& s : stops_) keep = std::max<size_t>(keep, s.matched);
  std::string out = held_.substr(0, held_.size() - keep);
  held_.erase(0, out.size());
  return out;
}

std::string StopFilter::Flush() {
  if (stopped_) return {};
  return std::move(held_);
}

}  // namespace samebits
