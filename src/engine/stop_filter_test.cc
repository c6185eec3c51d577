#include "engine/stop_filter.h"

#include <gtest/gtest.h>

#include <random>

namespace samebits {
namespace {

using Strings = std::vector<std::string>;

Strings Deltas(const Strings& stops, const Strings& chunks, bool* stopped) {
  StopFilter filter(stops);
  Strings out;
  for (const std::string& c : chunks) {
    out.push_back(filter.Push(c));
    if (filter.stopped()) break;
  }
  out.push_back(filter.Flush());
  *stopped = filter.stopped();
  return out;
}

TEST(StopFilter, HoldsExactlyWhatMayBecomeAStop) {
  bool stopped;
  EXPECT_EQ(Deltas({"\nUser:"}, {"Hi\nUs", "er: x", "never"}, &stopped), (Strings{"Hi", "", ""}));
  EXPECT_TRUE(stopped);
  EXPECT_EQ(Deltas({"<|end|>", "|>!"}, {"a<|", "b|", "> ok"}, &stopped), (Strings{"a", "<|b", "|> ok", ""}));
  EXPECT_FALSE(stopped);
  EXPECT_EQ(Deltas({"###!", "##b#"}, {"a##", "#b##", "."}, &stopped), (Strings{"a", "#", ""}));
  EXPECT_TRUE(stopped);
  EXPECT_EQ(Deltas({""}, {"Hel", "lo"}, &stopped), (Strings{"Hel", "lo", ""}));
  EXPECT_FALSE(stopped);
  EXPECT_EQ(Deltas({"stop"}, {"abc st"}, &stopped), (Strings{"abc ", "st"}));
  EXPECT_EQ(Deltas({"bc", "abc"}, {"xabc"}, &stopped), (Strings{"x", ""}));
}

// Against the definition, over every cut of the text.
TEST(StopFilter, PortionsDoNotMatter) {
  const uint32_t seed = 17;
  std::mt19937 rng(seed);
  for (int round = 0; round < 3000; ++round) {
    Strings stops;
    for (int n = rng() % 3; n >= 0; --n) {
      std::string s;
      for (int i = 1 + rng() % 4; i > 0; --i) s += "ab"[rng() % 2];
      stops.push_back(s);
    }
    std::string text;
    for (int i = rng() % 14; i > 0; --i) text += "aabc"[rng() % 4];
    std::string want = text;
    for (size_t end = 1; end <= text.size() && want.size() == text.size(); ++end) {
      size_t longest = 0;
      for (const std::string& s : stops)
        if (end >= s.size() && text.compare(end - s.size(), s.size(), s) == 0) longest = std::max(longest, s.size());
      if (longest > 0) want = text.substr(0, end - longest);
    }
    StopFilter filter(stops);
    std::string got;
    for (size_t i = 0; i < text.size();) {
      const size_t n = std::min<size_t>(1 + rng() % 4, text.size() - i);
      got += filter.Push(text.substr(i, n));
      i += n;
      if (filter.stopped()) break;
      // Exactly the longest tail that begins a stop is held.
      size_t held = 0;
      for (const std::string& s : stops)
        for (size_t k = 1; k < s.size() && k <= i; ++k)
          if (text.compare(i - k, k, s, 0, k) == 0) held = std::max(held, k);
      ASSERT_EQ(got.size(), i - held) << "seed " << seed << " round " << round;
    }
    got += filter.Flush();
    ASSERT_EQ(got, want) << "seed " << seed << " round " << round << " text " << text;
  }
}

}  // namespace
}  // namespace samebits
