// Reading tokenizer.json and tokenizer_config.json. Everything is checked: what this version does not do is refused by
// name, never ignored.
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/files.h"
#include "base/strings.h"
#include "tokenizer/byte_table.h"
#include "tokenizer/tokenizer.h"

namespace samebits {
namespace {

using Json = nlohmann::json;

// Ids stay far below what a vector of strings can hold; no vocabulary comes near.
constexpr int64_t kMaxId = 4'000'000;

// The member, or null where absent.
const Json& Member(const Json& object, const char* name) {
  static const Json kNull;
  if (!object.is_object()) return kNull;
  const auto it = object.find(name);
  return it == object.end() ? kNull : *it;
}

std::string TypeOf(const Json& object) {
  const Json& type = Member(object, "type");
  return type.is_string() ? type.get<std::string>() : object.is_null() ? "null" : "(no type)";
}

bool IsTrue(const Json& object, const char* name) {
  const Json& v = Member(object, name);
  return v.is_boolean() && v.get<bool>();
}

Result<int32_t> Id(const Json& value, const std::string& what) {
  if (!value.is_number_integer() || value.get<int64_t>() < 0 || value.get<int64_t>() > kMaxId ||
      (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(kMaxId)))
    return Error(
        Format("the id of \"%s\" is not an integer between 0 and %lld", what.c_str(), static_cast<long long>(kMaxId)));
  return static_cast<int32_t>(value.get<int64_t>());
}

// The steps of a Sequence, or the object itself as the only step.
std::vector<const Json*> Steps(const Json& object, const char* list) {
  std::vector<const Json*> steps;
  if (TypeOf(object) == "Sequence") {
    for (const Json& s : Member(object, list)) steps.push_back(&s);
  } else if (!object.is_null()) {
    steps.push_back(&object);
  }
  return steps;
}

Result<std::vector<std::string>> ReadPatterns(const Json& pre) {
  std::vector<std::string> patterns;
  bool byte_level = false;
  for (const Json* step : Steps(pre, "pretokenizers")) {
    const std::string type = TypeOf(*step);
    if (byte_level) return Error("pre_tokenizer: ByteLevel must be the last step");
    if (type == "ByteLevel") {
      if (IsTrue(*step, "add_prefix_space")) return Error("pre_tokenizer: add_prefix_space is not supported");
      byte_level = true;
      // Absent means on, as in the library that writes these files.
      if (!Member(*step, "use_regex").is_boolean() || IsTrue(*step, "use_regex")) patterns.push_back(kByteLevelPattern);
    } else if (type == "Split") {
      const Json& regex = Member(Member(*step, "pattern"), "Regex");
      if (!regex.is_string()) return Error("pre_tokenizer: Split needs a pattern of kind Regex");
      if (Member(*step, "behavior") != "Isolated" || IsTrue(*step, "invert"))
        return Error("pre_tokenizer: only Split with behavior Isolated and invert false is supported");
      patterns.push_back(regex.get<std::string>());
    } else {
      return Error("pre_tokenizer: step " + type + " is not supported (Split and ByteLevel are)");
    }
  }
  if (!byte_level) return Error("pre_tokenizer has no ByteLevel step; only byte-level BPE is supported");
  return patterns;
}

Status CheckRest(const Json& root) {
  if (!Steps(Member(root, "normalizer"), "normalizers").empty())
    return Error("normalizer " + TypeOf(*Steps(Member(root, "normalizer"), "normalizers")[0]) + " is not supported");
  for (const Json* step : Steps(Member(root, "post_processor"), "processors"))
    if (TypeOf(*step) != "ByteLevel") return Error("post_processor " + TypeOf(*step) + " is not supported");
  for (const Json* step : Steps(Member(root, "decoder"), "decoders"))
    if (TypeOf(*step) != "ByteLevel") return Error("decoder " + TypeOf(*step) + " is not supported");
  const Json& model = Member(root, "model");
  if (Member(model, "type") != "BPE") return Error("model type " + TypeOf(model) + " is not supported (BPE is)");
  if (const Json& dropout = Member(model, "dropout"); !dropout.is_null() && dropout != 0)
    return Error("model: dropout is random and not supported");
  for (const char* name : {"unk_token", "continuing_subword_prefix", "end_of_word_suffix"}) {
    const Json& v = Member(model, name);
    if (!v.is_null() && v != "") return Error(std::string("model: ") + name + " is not supported");
  }
  for (const char* name : {"byte_fallback", "ignore_merges"})
    if (IsTrue(model, name)) return Error(std::string("model: ") + name + " is not supported");
  return Ok();
}

// A merge is ["a", "b"] or, in older files, "a b".
bool ReadMerge(const Json& merge, std::string* left, std::string* right) {
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
    *left = merge[0].get<std::string>();
    *right = merge[1].get<std::string>();
    return true;
  }
  if (!merge.is_string()) return false;
  const std::string text = merge.get<std::string>();
  const size_t space = text.find(' ');
  if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) return false;
  *left = text.substr(0, space);
  *right = text.substr(space + 1);
  return true;
}

Result<std::vector<AddedToken>> ReadAdded(const Json& list) {
  std::vector<AddedToken> added;
  if (!list.is_null() && !list.is_array()) return Error("added_tokens is not a list");
  for (const Json& t : list) {
    const Json& content = Member(t, "content");
    if (!content.is_string()) return Error("added_tokens: an entry has no content");
    AddedToken token;
    token.text = content.get<std::string>();
    SB_ASSIGN(token.id, Id(Member(t, "id"), token.text));
    token.special = IsTrue(t, "special");
    for (const char* name : {"single_word", "lstrip", "rstrip"})
      if (IsTrue(t, name)) return Error("added token \"" + token.text + "\": " + name + " is not supported");
    added.push_back(std::move(token));
  }
  return added;
}

// Nesting is bounded before a recursive parser or destructor sees the text.
Result<Json> ParseJson(std::string_view text, const std::string& path) {
  constexpr int kDeepest = 64;
  bool deep = false;
  Json root = Json::parse(
      text.begin(), text.end(),
      [&](int depth, Json::parse_event_t, Json&) {
        deep |= depth > kDeepest;
        return depth <= kDeepest;
      },
      /*allow_exceptions=*/false);
  if (deep) return Error(Format("%s: nested deeper than %d levels", path.c_str(), kDeepest));
  if (root.is_discarded() || !root.is_object()) return Error(path + ": is not a JSON object; is the file whole?");
  return root;
}

}  // namespace

Result<Tokenizer> Tokenizer::Parse(std::string_view json, const std::string& path) {
  SB_ASSIGN(const Json root, ParseJson(json, path));
  Tokenizer made;
  const auto read = [&]() -> Status {
    SB_RETURN_IF_ERROR(CheckRest(root));
    SB_ASSIGN(const std::vector<std::string> patterns, ReadPatterns(Member(root, "pre_tokenizer")));
    SB_ASSIGN(std::unique_ptr<PreTokenizer> pre, NewPreTokenizer(patterns));
    made.pre_ = std::move(pre);
    made.own_scanner_ = IsV3Patterns(patterns);

    const Json& vocab = Member(Member(root, "model"), "vocab");
    const Json& merges = Member(Member(root, "model"), "merges");
    if (!vocab.is_object() || vocab.empty()) return Error("model.vocab is missing or empty");
    if (!merges.is_array()) return Error("model.merges is missing or not a list");
    std::unordered_map<std::string, int32_t> by_text;
    for (const auto& [text, value] : vocab.items()) {
      SB_ASSIGN(const int32_t id, Id(value, text));
      by_text.emplace(text, id);
      if (made.tokens_.size() <= static_cast<size_t>(id)) made.tokens_.resize(id + 1);
      if (!made.tokens_[id].empty()) return Error(Format("two tokens have the id %d", id));
      // Not written in byte characters: an added token; it stands for itself.
      if (!CharactersToBytes(text, &made.tokens_[id])) made.tokens_[id] = text;
    }
    std::vector<int32_t> byte_ids(256, -1);
    for (int b = 0; b < 256; ++b) {
      const auto it = by_text.find(BytesToCharacters(std::string(1, static_cast<char>(b))));
      if (it != by_text.end()) byte_ids[b] = it->second;
    }
    made.bpe_ = Bpe(byte_ids);
    for (size_t i = 0; i < merges.size(); ++i) {
      std::string left, right;
      if (!ReadMerge(merges[i], &left, &right)) return Error(Format("model.merges: entry %zu is not a pair", i));
      const auto l = by_text.find(left), r = by_text.find(right), m = by_text.find(left + right);
      if (l == by_text.end() || r == by_text.end() || m == by_text.end())
        return Error(Format("model.merges: entry %zu (\"%s\" \"%s\") uses a token that is not in the vocabulary", i,
                            left.c_str(), right.c_str()));
      if (!made.bpe_.AddMerge(l->second, r->second, m->second))
        return Error(Format("model.merges: entry %zu repeats an earlier one", i));
    }
    SB_ASSIGN(std::vector<AddedToken> added, ReadAdded(Member(root, "added_tokens")));
    return made.AddTokens(std::move(added));
  };
  SB_RETURN_IF_ERROR(read().At(path));
  return made;
}

Result<TokenizerFolder> LoadTokenizer(const std::string& folder) {
  constexpr uint64_t kMaxFile = 256u << 20;
  const std::string path = JoinPath(folder, "tokenizer.json");
  SB_ASSIGN(const std::string text, ReadFile(path, kMaxFile));
  SB_ASSIGN(Tokenizer tokenizer, Tokenizer::Parse(text, path));
  TokenizerFolder made = {std::move(tokenizer), false, {}};
  const std::string config_path = JoinPath(folder, "tokenizer_config.json");
  if (!FileExists(config_path)) return made;
  SB_ASSIGN(const std::string config_text, ReadFile(config_path, kMaxFile));
  SB_ASSIGN(const Json config, ParseJson(config_text, config_path));
  made.add_bos = IsTrue(config, "add_bos_token");
  if (const Json& t = Member(config, "chat_template"); t.is_string()) made.chat_template = t.get<std::string>();
  return made;
}

}  // namespace samebits
