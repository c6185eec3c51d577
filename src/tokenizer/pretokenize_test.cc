#include "tokenizer/pretokenize.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <random>

#include "tokenizer/unicode.h"

namespace samebits {
namespace {

std::vector<std::string> Cut(const PreTokenizer& pre, const std::string& text) {
  std::vector<std::string_view> pieces;
  const Status s = pre.Cut(text, &pieces);
  SB_CHECK(s.ok(), s.text());
  return {pieces.begin(), pieces.end()};
}

std::unique_ptr<PreTokenizer> Pcre() {
  auto made = NewRegexPreTokenizer({kV3Patterns[0], kV3Patterns[1], kV3Patterns[2]});
  SB_CHECK(made.ok(), made.status().text());
  return std::move(*made);
}

using Pieces = std::vector<std::string>;

TEST(PreTokenize, KnownTexts) {
  const auto scanner = NewV3Scanner();
  EXPECT_EQ(Cut(*scanner, ""), Pieces{});
  EXPECT_EQ(Cut(*scanner, "rfid501.go 1234567"), (Pieces{"rfid", "501", ".go", " ", "123", "456", "7"}));
  EXPECT_EQ(Cut(*scanner, "Hello世界 カタカナ한국어!\r\n\r\n  next"),
            (Pieces{"Hello", "世界", " ", "カタカナ", "한국어", "!\r\n\r\n", " ", " next"}));
  EXPECT_EQ(Cut(*scanner, "f(x)=y; //note\n"), (Pieces{"f", "(x", ")=", "y", ";", " //", "note", "\n"}));
  EXPECT_EQ(Cut(*scanner, "   lead"), (Pieces{"  ", " lead"}));
  EXPECT_EQ(Cut(*scanner, "a \n \n x"), (Pieces{"a", " \n \n", " x"}));
}

// The scanner is the regular expressions: random texts from classes that meet in every order. Code points whose class
// the installed PCRE2 sees otherwise (its tables are older) are left out.
TEST(PreTokenize, ScannerEqualsPcre2) {
  const char* env = std::getenv("SAMEBITS_TEST_ROUNDS");
  const int rounds = env != nullptr ? std::atoi(env) : 20000;
  const uint32_t seed = 20240607;
  std::printf("seed %u, %d rounds\n", seed, rounds);
  const auto scanner = NewV3Scanner();
  const auto pcre = Pcre();
  // A character is of a class if the class's pattern cuts it off from a control character, which is of none.
  const struct {
    const char* pattern;
    uint8_t bit;
  } kClasses[] = {{R"(\p{L}+)", kLetter},      {R"(\p{M}+)", kMark},   {R"(\p{N}+)", kNumber},
                  {R"(\p{P}+)", kPunctuation}, {R"(\p{S}+)", kSymbol}, {R"(\s+)", kSpace}};
  std::vector<std::unique_ptr<PreTokenizer>> tests;
  for (const auto& c : kClasses) {
    auto made = NewRegexPreTokenizer({c.pattern});
    ASSERT_TRUE(made.ok());
    tests.push_back(std::move(*made));
  }
  std::vector<std::vector<uint32_t>> pools(64);
  int64_t differ = 0;
  for (uint32_t c = 0; c < 0x30000; c += c < 0x3400 ? 1 : 7) {
    if (c >= 0xD800 && c < 0xE000) continue;
    const uint8_t bits = UnicodeClasses()[c];
    bool same = true;
    for (size_t k = 0; k < tests.size() && same; ++k) {
      std::string text = "\x01";
      AppendUtf8(c, &text);
      same = (Cut(*tests[k], text).size() == 2) == ((bits & kClasses[k].bit) != 0);
    }
    if (same)
      pools[bits].push_back(c);
    else
      ++differ;
  }
  std::printf("%lld code points left out\n", static_cast<long long>(differ));
  EXPECT_LT(differ, 2000);
  std::erase_if(pools, [](const auto& p) { return p.empty(); });
  ASSERT_GE(pools.size(), 7u);
  const std::string common = "aZ09 \n\r\t.!'<|_#中かカ・゛ー";
  std::vector<uint32_t> frequent;
  for (size_t i = 0; i < common.size();) frequent.push_back(NextCodePoint(common, &i));
  std::mt19937 rng(seed);
  for (int round = 0; round < rounds; ++round) {
    std::string text;
    for (int n = rng() % 24; n >= 0; --n) {
      const auto& pool = rng() % 2 ? frequent : pools[rng() % pools.size()];
      AppendUtf8(pool[rng() % pool.size()], &text);
    }
    ASSERT_EQ(Cut(*scanner, text), Cut(*pcre, text)) << "seed " << seed << " round " << round << ": " << text;
  }
}

TEST(PreTokenize, PcreSurvivesLongRunsAndHostilePatterns) {
  const auto pcre = Pcre();
  const std::string letters(200000, 'a'), spaces(20000, ' ');
  EXPECT_EQ(Cut(*pcre, letters).size(), 1u);
  EXPECT_EQ(Cut(*pcre, spaces).size(), 1u);
  auto hostile = NewRegexPreTokenizer({"(a+)+$"});
  ASSERT_TRUE(hostile.ok());
  std::vector<std::string_view> pieces;
  const std::string trap = std::string(60, 'a') + "!";
  const Status s = (*hostile)->Cut(trap, &pieces);
  EXPECT_FALSE(s.ok());
  EXPECT_NE(s.text().find("gave up"), std::string::npos);
  auto empty = NewRegexPreTokenizer({"x*"});
  EXPECT_EQ(Cut(**empty, "axxb"), (Pieces{"a", "xx", "b"}));
}

}  // namespace
}  // namespace samebits
