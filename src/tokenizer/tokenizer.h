// tokenizer.json of Hugging Face, byte-level BPE: text to token ids and back.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tokenizer/bpe.h"
#include "tokenizer/pretokenize.h"

namespace samebits {

// A stretch of a prompt. Only where `special` holds may text become an added token: what a user wrote can never inject
// an end-of-sentence or a role marker. The pieces that BPE sees run across parts.
struct PromptPart {
  std::string text;
  bool special = false;
};

struct AddedToken {
  std::string text;
  int32_t id = 0;
  bool special = false;  // left out by Decode(skip_special)
};

class Tokenizer {
 public:
  // `path` is named in errors: not JSON, a missing or mistyped field, a merge that is not in the vocabulary, a feature
  // this version lacks (by name).
  static Result<Tokenizer> Parse(std::string_view json, const std::string& path);
  // From its parts: ids of the 256 bytes and the added tokens, no merges (tests, case files).
  static Result<Tokenizer> FromBytes(const std::vector<int32_t>& byte_ids, std::vector<AddedToken> added);

  // An error names the byte offset of what is not UTF-8.
  Result<std::vector<int32_t>> Encode(std::string_view text, bool parse_special) const;
  Result<std::vector<int32_t>> Encode(std::span<const PromptPart> parts) const;
  // Valid UTF-8; wrong bytes become U+FFFD. Ids that are no token give nothing.
  std::string Decode(std::span<const int32_t> ids, bool skip_special = false) const;
  // The bytes that token `id` stands for; empty for an id that is no token.
  const std::string& TokenBytes(int32_t id) const;
  bool IsSpecial(int32_t id) const;
  // Id of an added token, or -1.
  int32_t AddedId(std::string_view text) const;

  // One more than the largest id: ids from here on must never be produced.
  int32_t vocab_size() const { return static_cast<int32_t>(tokens_.size()); }
  // Whether the patterns are those of the V3 family (own scanner) or run by PCRE2.
  bool own_scanner() const { return own_scanner_; }
  const PreTokenizer& pre_tokenizer() const { return *pre_; }

 private:
  Tokenizer() : bpe_(std::vector<int32_t>(256, -1)) {}
  Status AddTokens(std::vector<AddedToken> added);
  Status EncodePlain(std::string_view text, std::vector<int32_t>* ids) const;
  // The longest added token at text[at] that ends before `limit`, or null.
  const AddedToken* MatchAdded(std::string_view text, size_t at, size_t limit) const;

  std::vector<std::string> tokens_;  // id -> bytes
  std::vector<uint8_t> special_;     // id -> flag
  std::vector<AddedToken> added_;    // sorted by text
  bool added_begins_[256] = {};
  Bpe bpe_;
  std::shared_ptr<const PreTokenizer> pre_;
  bool own_scanner_ = false;
};

// What a checkpoint folder says about text: tokenizer.json, and tokenizer_config.json if there.
struct TokenizerFolder {
  Tokenizer tokenizer;
  bool add_bos = false;
  std::string chat_template;  // Jinja text; empty: none. Only looked at to tell the chat encodings apart.
};
Result<TokenizerFolder> LoadTokenizer(const std::string& folder);

}  // namespace samebits
