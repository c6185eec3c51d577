#include <map>

#include "base/strings.h"
#include "case.h"
#include "engine/stop_filter.h"
#include "store/digest.h"
#include "tokenizer/bpe.h"
#include "tokenizer/byte_table.h"
#include "tokenizer/chat.h"
#include "tokenizer/pretokenize.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/unicode.h"

namespace samebits {
namespace {

std::string Shown(const std::vector<std::string>& pieces) {
  return Json(pieces).dump(-1, ' ', true, Json::error_handler_t::replace);
}

void ExpectPieces(const std::string& what, const std::vector<std::string>& got, const Json& want) {
  Expect(got == Row<std::string>(want), what + " is " + Shown(got) + ", expected " + want.dump(-1, ' ', true));
}

// By the scanner and by the regular expressions it stands for.
void Pretokenize(Members& in, Members& want) {
  const std::vector<std::string> texts = Row<std::string>(in["texts"]);
  const Json& expected = List(want["pieces"]);
  Expect(expected.size() == texts.size(), "pieces has another length");
  auto regex = NewRegexPreTokenizer({kV3Patterns[0], kV3Patterns[1], kV3Patterns[2]});
  ExpectOk(regex.status());
  const std::unique_ptr<PreTokenizer> scanner = NewV3Scanner();
  for (size_t t = 0; t < texts.size(); ++t)
    for (const PreTokenizer* cutter : {scanner.get(), regex->get()}) {
      std::vector<std::string_view> pieces;
      ExpectOk(cutter->Cut(texts[t], &pieces));
      ExpectPieces(Format("text %zu, %s", t, cutter == scanner.get() ? "scanner" : "PCRE2"),
                   std::vector<std::string>(pieces.begin(), pieces.end()), expected[t]);
    }
}

// Letters are mapped to single bytes, so that a letter is one symbol whatever its UTF-8.
class Alphabet {
 public:
  std::string Bytes(const std::string& text) {
    std::string out;
    for (size_t at = 0; at < text.size();) {
      const size_t begin = at;
      NextCodePoint(text, &at);
      const std::string letter = text.substr(begin, at - begin);
      if (codes_.count(letter) == 0) {
        if (letters_.size() == 256) Unsupported("more than 256 different letters");
        codes_[letter] = static_cast<uint8_t>(letters_.size());
        letters_.push_back(letter);
      }
      out += static_cast<char>(codes_[letter]);
    }
    return out;
  }
  std::string Text(std::string_view bytes) const {
    std::string out;
    for (const char c : bytes) out += letters_[static_cast<uint8_t>(c)];
    return out;
  }

 private:
  std::map<std::string, uint8_t> codes_;
  std::vector<std::string> letters_;
};

void BpeMerge(Members& in, Members& want) {
  Alphabet alphabet;
  std::vector<int32_t> byte_ids(256);
  std::map<std::string, int32_t> ids;
  std::vector<std::string> tokens;
  for (int b = 0; b < 256; ++b) {
    byte_ids[static_cast<size_t>(b)] = b;
    tokens.push_back(std::string(1, static_cast<char>(b)));
    ids[tokens.back()] = b;
  }
  Bpe bpe(byte_ids);
  auto id = [&](const std::string& bytes) {
    const auto [it, added] = ids.try_emplace(bytes, static_cast<int32_t>(tokens.size()));
    if (added) tokens.push_back(bytes);
    return it->second;
  };
  for (const Json& merge : List(in["merges"])) {
    const std::vector<std::string> pair = Row<std::string>(merge);
    if (pair.size() != 2) Malformed("a merge is a pair");
    const std::string left = alphabet.Bytes(pair[0]), right = alphabet.Bytes(pair[1]);
    bpe.AddMerge(id(left), id(right), id(left + right));
  }
  const std::vector<std::string> texts = Row<std::string>(in["texts"]);
  Expect(List(want["pieces"]).size() == texts.size(), "pieces has another length");
  for (size_t t = 0; t < texts.size(); ++t) {
    std::vector<int32_t> out;
    ExpectOk(bpe.Encode(alphabet.Bytes(texts[t]), &out));
    std::vector<std::string> pieces;
    for (const int32_t token : out) pieces.push_back(alphabet.Text(tokens[static_cast<size_t>(token)]));
    ExpectPieces(Format("text %zu", t), pieces, want["pieces"][t]);
  }
}

Tokenizer ByteTokenizer(Members& in, const char* added_name) {
  if (Value<std::string>(in["byte_vocab"]) != "ids 0..255 are the bytes, no merges") Unsupported("this vocabulary");
  std::vector<int32_t> byte_ids;
  for (int b = 0; b < 256; ++b) byte_ids.push_back(b);
  std::vector<AddedToken> added;
  if (!in[added_name].is_object()) Malformed("the added tokens are not an object");
  for (const auto& [text, id] : in[added_name].items()) added.push_back({text, Value<int32_t>(id), true});
  auto tokenizer = Tokenizer::FromBytes(byte_ids, std::move(added));
  ExpectOk(tokenizer.status());
  return std::move(*tokenizer);
}

void EncodeSegments(Members& in, Members& want) {
  const Tokenizer tokenizer = ByteTokenizer(in, "specials");
  std::vector<PromptPart> parts;
  for (const Json& j : List(in["segments"])) {
    Members segment(j, "segment");
    parts.push_back({Value<std::string>(segment["text"]), segment.Flag("parse_special")});
  }
  const auto ids = tokenizer.Encode(parts);
  ExpectOk(ids.status());
  ExpectInts("ids", *ids, want["ids"]);
}

void AddedTokens(Members& in, Members& want) {
  const Tokenizer tokenizer = ByteTokenizer(in, "added");
  const std::vector<std::string> texts = Row<std::string>(in["texts"]);
  Expect(List(want["ids"]).size() == texts.size(), "ids has another length");
  for (size_t t = 0; t < texts.size(); ++t) {
    const auto ids = tokenizer.Encode(texts[t], true);
    ExpectOk(ids.status());
    ExpectInts(Format("ids of text %zu", t), *ids, want["ids"][t]);
  }
}

void ByteTable(Members& in, Members& want) {
  std::vector<std::string> names;
  for (const int64_t b : Row<int64_t>(in["bytes"])) {
    if (b < 0 || b > 255) Malformed("a byte out of range");
    names.push_back(Format("U+%04X", CharacterOfByte(static_cast<uint8_t>(b))));
  }
  ExpectPieces("code_points", names, want["code_points"]);
  if (const Json* sha = want.Find("sha256_of_all_256_characters_utf8")) {
    std::string bytes;
    for (int b = 0; b < 256; ++b) bytes += static_cast<char>(b);
    ExpectText("sha256 of the table", Sha256Hex(BytesToCharacters(bytes)), *sha);
  }
}

void ByteTableDecode(Members& in, Members& want) {
  const std::vector<std::string> tokens = Row<std::string>(in["token_strings"]);
  Expect(List(want["bytes_hex"]).size() == tokens.size(), "bytes_hex has another length");
  for (size_t t = 0; t < tokens.size(); ++t) {
    std::string bytes;
    Expect(CharactersToBytes(tokens[t], &bytes), Format("token %zu holds a character that stands for no byte", t));
    ExpectText(Format("token %zu", t), HexOf(bytes), want["bytes_hex"][t]);
  }
}

void StreamUtf8(Members& in, Members& want) {
  Utf8Stream stream;
  std::vector<std::string> deltas;
  std::string text;
  for (const Json& chunk : List(in["chunks_hex"])) {
    deltas.push_back(stream.Push(HexBytes(chunk)));
    text += deltas.back();
  }
  const std::string flush = stream.Flush();
  ExpectPieces("deltas", deltas, want["deltas"]);
  ExpectText("flush", flush, want["flush"]);
  ExpectText("text", text + flush, want["text"]);
}

void StopFilterCase(Members& in, Members& want) {
  StopFilter filter(Row<std::string>(in["stop"]));
  std::vector<std::string> deltas;
  std::string text;
  for (const std::string& chunk : Row<std::string>(in["chunks"])) {
    deltas.push_back(filter.Push(chunk));
    text += deltas.back();
    if (filter.stopped()) break;
  }
  const std::string flush = filter.Flush();
  want.Find("or_http_status");  // refusing the request is also right; this filter ignores empty stops
  ExpectPieces("deltas", deltas, want["deltas"]);
  ExpectText("flush", flush, want["flush"]);
  ExpectText("text", text + flush, want["text"]);
  if (const Json* reason = want.Find("finish_reason"))
    ExpectText("finish_reason", filter.stopped() ? "stop" : "length", *reason);
}

// As the content of a chat message, which is where such strings arrive.
void JsonStringDecode(Members& in, Members& want) {
  const std::vector<std::string> strings = Row<std::string>(in["json_strings"]);
  const Json& expected = List(want["utf8_hex"]);
  Expect(expected.size() == strings.size(), "utf8_hex has another length");
  for (size_t i = 0; i < strings.size(); ++i) {
    const auto chat = ParseChat("[{\"role\":\"user\",\"content\":" + strings[i] + "}]", "case");
    if (expected[i].is_null()) {
      Expect(!chat.ok(), Format("string %zu was accepted", i));
      continue;
    }
    ExpectOk(chat.status());
    ExpectText(Format("string %zu", i), HexOf((*chat)[0].content), expected[i]);
  }
}

constexpr CaseOp kOps[] = {
    {"pretokenize", Pretokenize},  {"bpe_merge", BpeMerge},         {"encode_segments", EncodeSegments},
    {"added_tokens", AddedTokens}, {"byte_table", ByteTable},       {"byte_table_decode", ByteTableDecode},
    {"stream_utf8", StreamUtf8},   {"stop_filter", StopFilterCase}, {"json_string_decode", JsonStringDecode}};

}  // namespace

std::span<const CaseOp> TextCaseOps() { return kOps; }

}  // namespace samebits
