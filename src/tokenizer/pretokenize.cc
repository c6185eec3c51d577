#include "tokenizer/pretokenize.h"

#include <cstdint>

#include "tokenizer/unicode.h"

namespace samebits {

const char* const kV3Patterns[3] = {
    R"(\p{N}{1,3})", "[一-龥\xE3\x81\x80-ゟ゠-ヿ]+",
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
const char* const kByteLevelPattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

namespace {

bool IsCjk(uint32_t c) { return (c >= 0x4E00 && c <= 0x9FA5) || (c >= 0x3040 && c <= 0x30FF); }
bool IsAsciiLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsBreak(char c) { return c == '\r' || c == '\n'; }

class V3Scanner : public PreTokenizer {
 public:
  Status Cut(std::string_view text, std::vector<std::string_view>* pieces) const override {
    pieces->clear();
    // Stage 1: groups of up to three digits; what lies between goes on to stage 2.
    size_t begin = 0;
    for (size_t i = 0; i < text.size();) {
      size_t end = i;
      if (!(ClassAt(text, &end) & kNumber)) {
        i = end;
        continue;
      }
      CutCjk(text.substr(begin, i - begin), pieces);
      for (int digits = 1; digits < 3 && end < text.size(); ++digits) {
        size_t next = end;
        if (!(ClassAt(text, &next) & kNumber)) break;
        end = next;
      }
      pieces->push_back(text.substr(i, end - i));  // no alternative of stage 3 matches inside digits
      begin = i = end;
    }
    CutCjk(text.substr(begin), pieces);
    return Ok();
  }

 private:
  uint8_t ClassAt(std::string_view text, size_t* at) const { return classes_[NextCodePoint(text, at)]; }

  // Stage 2: maximal runs of Han, Hiragana and Katakana. Runs go on to stage 3 too: the ranges hold some punctuation.
  void CutCjk(std::string_view text, std::vector<std::string_view>* pieces) const {
    size_t begin = 0;
    bool inside = false;
    for (size_t i = 0; i < text.size();) {
      const size_t at = i;
      const bool cjk = IsCjk(NextCodePoint(text, &i));
      if (cjk == inside) continue;
      CutRest(text.substr(begin, at - begin), pieces);
      begin = at;
      inside = cjk;
    }
    CutRest(text.substr(begin), pieces);
  }

  // Stage 3: leftmost match, first alternative; what no alternative takes is joined into one piece.
  void CutRest(std::string_view text, std::vector<std::string_view>* pieces) const {
    size_t gap = 0;
    for (size_t i = 0; i < text.size();) {
      const size_t end = Match(text, i);
      if (end == i) {
        NextCodePoint(text, &i);
        continue;
      }
      if (gap < i) pieces->push_back(text.substr(gap, i - gap));
      pieces->push_back(text.substr(i, end - i));
      gap = i = end;
    }
    if (gap < text.size()) pieces->push_back(text.substr(gap));
  }

  // Moves past the run of characters with any of `bits`.
  size_t Run(std::string_view text, size_t i, uint8_t bits) const {
    while (i < text.size()) {
      size_t next = i;
      if (!(ClassAt(text, &next) & bits)) break;
      i = next;
    }
    return i;
  }

  // End of the match at i, or i.
  size_t Match(std::string_view text, size_t i) const {
    size_t second = i;
    const uint8_t first = ClassAt(text, &second);
    const char c = text[i];
    // a. one ASCII punctuation mark and the ASCII letters behind it
    if (static_cast<uint8_t>(c) < 0x80 && (first & (kPunctuation | kSymbol)) && second < text.size() &&
        IsAsciiLetter(text[second])) {
      size_t end = second;
      while (end < text.size() && IsAsciiLetter(text[end])) ++end;
      return end;
    }
    // b. letters and marks, with one leading character that is no break, letter, punctuation or symbol
    if (first & (kLetter | kMark)) return Run(text, i, kLetter | kMark);
    if (!IsBreak(c) && !(first & (kPunctuation | kSymbol))) {
      const size_t end = Run(text, second, kLetter | kMark);
      if (end > second) return end;
    }
    // c. punctuation and symbols, one space in front, line breaks behind
    const size_t marks = c == ' ' ? second : i;
    size_t end = Run(text, marks, kPunctuation | kSymbol);
    if (end > marks) {
      while (end < text.size() && IsBreak(text[end])) ++end;
      return end;
    }
    // d. white space up to its last line break
    const size_t space = Run(text, i, kSpace);
    for (size_t last = space; last > i; --last)
      if (IsBreak(text[last - 1])) return last;
    // e. white space not followed by anything else: all but the last character, if something follows
    if (space == text.size() || space == i) return space;
    size_t before_last = i;
    for (size_t j = i; j < space;) {
      before_last = j;
      NextCodePoint(text, &j);
    }
    // f. a single one
    return before_last > i ? before_last : space;
  }

  const uint8_t* classes_ = UnicodeClasses();
};

}  // namespace

std::unique_ptr<PreTokenizer> NewV3Scanner() { return std::make_unique<V3Scanner>(); }

bool IsV3Patterns(const std::vector<std::string>& patterns) {
  if (patterns.size() != std::size(kV3Patterns)) return false;
  for (size_t i = 0; i < patterns.size(); ++i) {
    std::string spelled;
    for (const char c : patterns[i]) {
      if (IsBreak(c))
        spelled += c == '\r' ? "\\r" : "\\n";
      else
        spelled += c;
    }
    if (spelled != kV3Patterns[i]) return false;
  }
  return true;
}

Result<std::unique_ptr<PreTokenizer>> NewPreTokenizer(const std::vector<std::string>& patterns) {
  if (IsV3Patterns(patterns)) return NewV3Scanner();
  return NewRegexPreTokenizer(patterns);
}

}  // namespace samebits
