#include "tokenizer/tokenizer.h"

#include <algorithm>

#include "base/strings.h"
#include "tokenizer/unicode.h"

namespace samebits {

Result<Tokenizer> Tokenizer::FromBytes(const std::vector<int32_t>& byte_ids, std::vector<AddedToken> added) {
  Tokenizer made;
  made.bpe_ = Bpe(byte_ids);
  made.pre_ = NewV3Scanner();
  made.own_scanner_ = true;
  for (int b = 0; b < 256; ++b) {
    if (byte_ids[b] < 0) continue;
    if (made.tokens_.size() <= static_cast<size_t>(byte_ids[b])) made.tokens_.resize(byte_ids[b] + 1);
    made.tokens_[byte_ids[b]] = std::string(1, static_cast<char>(b));
  }
  SB_RETURN_IF_ERROR(made.AddTokens(std::move(added)));
  return made;
}

Status Tokenizer::AddTokens(std::vector<AddedToken> added) {
  for (const AddedToken& t : added) {
    if (t.text.empty()) return Error(Format("added token %d is empty; remove it", t.id));
    if (tokens_.size() <= static_cast<size_t>(t.id)) tokens_.resize(t.id + 1);
    tokens_[t.id] = t.text;
    added_begins_[static_cast<uint8_t>(t.text[0])] = true;
  }
  special_.resize(tokens_.size());
  for (const AddedToken& t : added) special_[t.id] = t.special;
  added_ = std::move(added);
  std::sort(added_.begin(), added_.end(), [](const AddedToken& a, const AddedToken& b) { return a.text < b.text; });
  for (size_t i = 1; i < added_.size(); ++i)
    if (added_[i].text == added_[i - 1].text)
      return Error(Format("added token \"%s\" is there twice, as %d and %d", added_[i].text.c_str(), added_[i - 1].id,
                          added_[i].id));
  return Ok();
}

const AddedToken* Tokenizer::MatchAdded(std::string_view text, size_t at, size_t limit) const {
  if (!added_begins_[static_cast<uint8_t>(text[at])]) return nullptr;
  // Narrow the sorted list byte by byte to the tokens that agree so far.
  const AddedToken* best = nullptr;
  auto low = added_.begin(), high = added_.end();
  for (size_t depth = 0; at + depth < limit && low != high; ++depth) {
    const auto byte = [depth](const AddedToken& t) {
      return depth < t.text.size() ? static_cast<int>(static_cast<uint8_t>(t.text[depth])) : -1;
    };
    const int want = static_cast<uint8_t>(text[at + depth]);
    low = std::lower_bound(low, high, want, [&](const AddedToken& t, int w) { return byte(t) < w; });
    high = std::upper_bound(low, high, want, [&](int w, const AddedToken& t) { return w < byte(t); });
    // The one that ends here, if any, sorts first.
    if (low != high && low->text.size() == depth + 1) best = &*low;
  }
  return best;
}

Result<std::vector<int32_t>> Tokenizer::Encode(std::string_view text, bool parse_special) const {
  const PromptPart part = {std::string(text), parse_special};
  return Encode(std::span(&part, 1));
}

Result<std::vector<int32_t>> Tokenizer::Encode(std::span<const PromptPart> parts) const {
  std::string text;
  for (const PromptPart& p : parts) text += p.text;
  SB_RETURN_IF_ERROR(CheckUtf8(text));

  std::vector<int32_t> ids;
  size_t done = 0, part_begin = 0;
  for (size_t p = 0; p < parts.size();) {
    // Neighbouring parts of one kind count as one: a special token may run across them.
    size_t part_end = part_begin;
    const bool special = parts[p].special;
    for (; p < parts.size() && parts[p].special == special; ++p) part_end += parts[p].text.size();
    for (size_t i = part_begin; special && i < part_end;) {
      const AddedToken* token = MatchAdded(text, i, part_end);
      if (token == nullptr) {
        ++i;
        continue;
      }
      SB_RETURN_IF_ERROR(EncodePlain(std::string_view(text).substr(done, i - done), &ids));
      ids.push_back(token->id);
      done = i += token->text.size();
    }
    part_begin = part_end;
  }
  SB_RETURN_IF_ERROR(EncodePlain(std::string_view(text).substr(done), &ids));
  return ids;
}

Status Tokenizer::EncodePlain(std::string_view text, std::vector<int32_t>* ids) const {
  if (text.empty()) return Ok();
  std::vector<std::string_view> pieces;
  SB_RETURN_IF_ERROR(pre_->Cut(text, &pieces));
  for (const std::string_view piece : pieces) SB_RETURN_IF_ERROR(bpe_.Encode(piece, ids));
  return Ok();
}

std::string Tokenizer::Decode(std::span<const int32_t> ids, bool skip_special) const {
  Utf8Stream stream;
  std::string out;
  for (const int32_t id : ids)
    if (!skip_special || !IsSpecial(id)) out += stream.Push(TokenBytes(id));
  return out + stream.Flush();
}

const std::string& Tokenizer::TokenBytes(int32_t id) const {
  static const std::string kNone;
  return id < 0 || id >= vocab_size() ? kNone : tokens_[id];
}

bool Tokenizer::IsSpecial(int32_t id) const { return id >= 0 && id < vocab_size() && special_[id]; }

int32_t Tokenizer::AddedId(std::string_view text) const {
  for (const AddedToken& t : added_)
    if (t.text == text) return t.id;
  return -1;
}

}  // namespace samebits
