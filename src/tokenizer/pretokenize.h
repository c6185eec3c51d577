// Cutting text into the pieces that BPE merges inside. The pieces, joined, are the text.
//
// The three patterns of the V3 family (V3, V3.1, R1, V3.2, V4) are run by a scanner of our own: one pass, tables of one
// Unicode version, no stack, linear in the text. Any other pattern goes to PCRE2.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace samebits {

// The patterns of tokenizer.json: digit groups, CJK runs, the rest. Files spell line breaks in them as \r\n or as the
// characters themselves; IsV3Patterns knows both.
extern const char* const kV3Patterns[3];
// The split of GPT-2, which ByteLevel applies by itself when use_regex is on.
extern const char* const kByteLevelPattern;

bool IsV3Patterns(const std::vector<std::string>& patterns);

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  // Replaces *pieces with the pieces of `text` (valid UTF-8), as views into it.
  virtual Status Cut(std::string_view text, std::vector<std::string_view>* pieces) const = 0;
};

// The scanner for exactly kV3Patterns.
std::unique_ptr<PreTokenizer> NewV3Scanner();
// Patterns one after the other, each inside the pieces left by the one before, matches isolated. An error quotes the
// pattern. `\s` also matches U+180E and classes are those of the installed PCRE2.
Result<std::unique_ptr<PreTokenizer>> NewRegexPreTokenizer(const std::vector<std::string>& patterns);
// The scanner if IsV3Patterns, else PCRE2.
Result<std::unique_ptr<PreTokenizer>> NewPreTokenizer(const std::vector<std::string>& patterns);

}  // namespace samebits
