// tokenizer.json, and text through whatever tokenizer came out. The input is JSON, a zero byte, then text; without a
// zero byte all of it is text for the tiny tokenizer's pipeline.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tokenizer/tokenizer.h"
#include "tokenizer/unicode.h"

using namespace samebits;

static void TryText(const Tokenizer& tokenizer, std::string_view text) {
  for (const bool special : {false, true}) {
    auto ids = tokenizer.Encode(text, special);
    if (ids.ok() && tokenizer.Decode(*ids) != text) std::abort();
    if (!CheckUtf8(text).ok() && ids.ok()) std::abort();
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t zero = input.find('\0');
  if (zero == std::string_view::npos) {
    static const Tokenizer kBytes = [] {
      std::vector<int32_t> ids(256);
      for (int i = 0; i < 256; ++i) ids[i] = i;
      return *Tokenizer::FromBytes(ids, {{"<|x|>", 300, true}, {"<|x|>y", 301, false}, {"</s>", 302, true}});
    }();
    TryText(kBytes, input);
    // Streams give valid text whatever the bytes, and the same in one piece or byte by byte.
    Utf8Stream whole, single;
    std::string a = whole.Push(input), b;
    for (const char c : input) b += single.Push(std::string_view(&c, 1));
    if (a + whole.Flush() != b + single.Flush() || !CheckUtf8(a).ok()) std::abort();
    return 0;
  }
  auto tokenizer = Tokenizer::Parse(input.substr(0, zero), "input");
  if (!tokenizer.ok()) return 0;
  auto ids = tokenizer->Encode(input.substr(zero + 1), true);
  if (ids.ok()) tokenizer->Decode(*ids);
  return 0;
}
