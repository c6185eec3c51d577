#include "tokenizer/chat.h"

#include <nlohmann/json.hpp>

#include "base/strings.h"

namespace samebits {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kBos[] = "<｜begin▁of▁sentence｜>", kEos[] = "<｜end▁of▁sentence｜>";
constexpr char kUser[] = "<｜User｜>", kAssistant[] = "<｜Assistant｜>";
constexpr char kThink[] = "<think>", kThinkEnd[] = "</think>";

// A prompt under construction.
class Prompt {
 public:
  void Marker(std::string_view text) { Add(text, true); }
  void Text(std::string_view text) { Add(text, false); }
  std::vector<PromptPart> Take() { return std::move(parts_); }

 private:
  void Add(std::string_view text, bool special) {
    if (text.empty()) return;
    if (parts_.empty() || parts_.back().special != special) parts_.push_back({"", special});
    parts_.back().text += text;
  }
  std::vector<PromptPart> parts_;
};

std::string_view AfterThinking(std::string_view answer) {
  const size_t at = answer.rfind(kThinkEnd);
  return at == std::string_view::npos ? answer : answer.substr(at + sizeof(kThinkEnd) - 1);
}

// JSON as Python's json.dumps writes it with ensure_ascii=False: ", " and ": " between.
void DumpPython(const Json& value, std::string* out) {
  if (value.is_object()) {
    *out += '{';
    bool first = true;
    for (const auto& [key, v] : value.items()) {
      if (!first) *out += ", ";
      first = false;
      *out += Json(key).dump(-1, ' ', false, Json::error_handler_t::replace);
      *out += ": ";
      DumpPython(v, out);
    }
    *out += '}';
  } else if (value.is_array()) {
    *out += '[';
    for (size_t i = 0; i < value.size(); ++i) {
      if (i > 0) *out += ", ";
      DumpPython(value[i], out);
    }
    *out += ']';
  } else {
    *out += value.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
}

std::string ReplaceAll(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

// Nesting is bounded before recursive code sees the value.
std::optional<Json> ParseBounded(std::string_view text) {
  constexpr int kDeepest = 100;
  Json value = Json::parse(
      text.begin(), text.end(), [](int depth, Json::parse_event_t, Json&) { return depth <= kDeepest; }, false);
  // A value cut off for its depth is missing from the result: refuse those texts by counting brackets outside strings.
  int depth = 0, deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  if (value.is_discarded() || deepest > kDeepest) return std::nullopt;
  return value;
}

bool IsQuestion(const ChatMessage& m) { return m.role == "user" || m.role == "developer"; }

// V3, R1, V3.1: system texts in front, then turns.
Status RenderTurns(ChatStyle style, const std::vector<ChatMessage>& messages, const ChatOptions& options, Prompt* p) {
  std::string system;
  for (const ChatMessage& m : messages) {
    if (!m.tools.empty() || !m.response_format.empty())
      return Error(
          Format("tools and response formats cannot be given to a model with the %s chat encoding here; put "
                 "their description into the system text",
                 ChatStyleName(style)));
    if (m.role != "system") continue;
    if (!system.empty()) system += "\n\n";
    system += m.content;
  }
  p->Text(system);
  bool after_tool = false;
  for (size_t i = 0; i < messages.size(); ++i) {
    const ChatMessage& m = messages[i];
    if (m.role == "system") continue;
    if (m.role == "user") {
      p->Marker(kUser);
      p->Text(m.content);
    } else if (m.role == "assistant") {
      if (!after_tool) {
        p->Marker(kAssistant);
        if (style == ChatStyle::kV31) p->Marker(kThinkEnd);
      }
      p->Text(style == ChatStyle::kV3 ? std::string_view(m.content) : AfterThinking(m.content));
      if (!m.tool_calls.empty()) {
        if (style != ChatStyle::kV31)
          return Error(Format("message %zu: tool calls are not part of the %s chat encoding", i, ChatStyleName(style)));
        p->Marker("<｜tool▁calls▁begin｜>");
        for (const ToolCall& call : m.tool_calls) {
          p->Marker("<｜tool▁call▁begin｜>");
          p->Text(call.name);
          p->Marker("<｜tool▁sep｜>");
          p->Text(call.arguments);
          p->Marker("<｜tool▁call▁end｜>");
        }
        p->Marker("<｜tool▁calls▁end｜>");
      }
      p->Marker(kEos);
    } else if (m.role == "tool" && style == ChatStyle::kV31) {
      p->Marker("<｜tool▁output▁begin｜>");
      p->Text(m.content);
      p->Marker("<｜tool▁output▁end｜>");
    } else {
      return Error(Format("message %zu: role \"%s\" is not part of the %s chat encoding", i, m.role.c_str(),
                          ChatStyleName(style)));
    }
    // After a tool's output the assistant goes on without a new marker.
    after_tool = m.role == "tool";
  }
  if (after_tool) return Ok();
  p->Marker(kAssistant);
  if (style == ChatStyle::kR1) {
    p->Marker(kThink);
    p->Text("\n");
  }
  if (style == ChatStyle::kV31) p->Marker(options.thinking ? kThink : kThinkEnd);
  return Ok();
}

class V32Renderer {
 public:
  V32Renderer(const std::vector<ChatMessage>& messages, const ChatOptions& options)
      : messages_(messages), options_(options) {
    for (size_t i = 0; i < messages.size(); ++i)
      if (IsQuestion(messages[i])) last_question_ = static_cast<ptrdiff_t>(i);
  }

  Status Render(Prompt* p) {
    for (size_t i = 0; i < messages_.size(); ++i) {
      const ChatMessage& m = messages_[i];
      const bool old = static_cast<ptrdiff_t>(i) < last_question_;
      if (m.role == "system") {
        p->Text(m.content);
        SB_RETURN_IF_ERROR(Extras(m, p));
      } else if (m.role == "developer") {
        if (options_.thinking && options_.drop_thinking && old) continue;
        if (m.content.empty()) return Error(Format("message %zu: a developer message must not be empty", i));
        p->Marker(kUser);
        SB_RETURN_IF_ERROR(Extras(m, p));
        p->Text("\n\n# The user's message is: ");
        p->Text(m.content);
        Open(i, p);
      } else if (m.role == "user") {
        p->Marker(kUser);
        p->Text(m.content);
        Open(i, p);
      } else if (m.role == "assistant") {
        SB_RETURN_IF_ERROR(Assistant(m, i, p));
      } else if (m.role == "tool") {
        SB_RETURN_IF_ERROR(Tool(i, p));
      } else {
        return Error(Format("message %zu: role \"%s\" is unknown", i, m.role.c_str()));
      }
    }
    return Ok();
  }

 private:
  bool KeepsThinking(size_t i) const {
    return options_.thinking && (!options_.drop_thinking || static_cast<ptrdiff_t>(i) > last_question_);
  }

  Status Extras(const ChatMessage& m, Prompt* p) {
    if (!m.tools.empty()) {
      if (options_.tools_template.empty())
        return Error(
            "the messages have tools, but no tools template was given; it comes with the checkpoint (folder "
            "encoding/)");
      const std::optional<Json> tools = ParseBounded(m.tools);
      if (!tools || !tools->is_array()) return Error("tools must be a JSON list");
      std::string schemas;
      for (const Json& t : *tools) {
        if (!schemas.empty()) schemas += '\n';
        DumpPython(t.is_object() && t.contains("function") ? t["function"] : t, &schemas);
      }
      p->Text("\n\n");
      p->Text(ReplaceAll(options_.tools_template, "{tool_schemas}", schemas));
    }
    if (!m.response_format.empty()) {
      if (options_.response_format_header.empty())
        return Error(
            "the messages have a response format, but no header for it was given; it comes with the checkpoint");
      const std::optional<Json> schema = ParseBounded(m.response_format);
      if (!schema) return Error("response_format must be JSON");
      std::string text;
      DumpPython(*schema, &text);
      p->Text("\n\n" + options_.response_format_header + text);
    }
    return Ok();
  }

  // Opens the assistant's turn behind question i.
  void Open(size_t i, Prompt* p) {
    p->Marker(kAssistant);
    const bool last = static_cast<ptrdiff_t>(i) == last_question_;
    p->Marker(options_.thinking && (last || !options_.drop_thinking) ? kThink : kThinkEnd);
  }

  Status Assistant(const ChatMessage& m, size_t i, Prompt* p) {
    if (KeepsThinking(i)) {
      p->Text(m.reasoning);
      p->Marker(kThinkEnd);
    }
    p->Text(m.content);
    if (!m.tool_calls.empty()) {
      p->Marker("\n\n<｜DSML｜function_calls>\n");
      for (const ToolCall& call : m.tool_calls) {
        const std::optional<Json> arguments = ParseBounded(call.arguments);
        if (!arguments || !arguments->is_object())
          return Error(
              Format("message %zu: the arguments of tool call \"%s\" are not a JSON object", i, call.name.c_str()));
        p->Marker("<｜DSML｜invoke name=\"");
        p->Text(call.name);
        p->Marker("\">\n");
        for (const auto& [key, value] : arguments->items()) {
          p->Marker("<｜DSML｜parameter name=\"");
          p->Text(key);
          p->Marker(value.is_string() ? "\" string=\"true\">" : "\" string=\"false\">");
          std::string text;
          if (value.is_string())
            text = value.get<std::string>();
          else
            DumpPython(value, &text);
          p->Text(text);
          p->Marker("</｜DSML｜parameter>\n");
        }
        p->Marker("</｜DSML｜invoke>\n");
      }
      p->Marker("</｜DSML｜function_calls>");
    }
    p->Marker(kEos);
    return Ok();
  }

  Status Tool(size_t i, Prompt* p) {
    size_t calls_at = i;
    while (calls_at > 0 && messages_[calls_at].role == "tool") --calls_at;
    const ChatMessage& asked = messages_[calls_at];
    const size_t number = i - calls_at;  // 1 for the first result
    if (asked.role != "assistant" || number > asked.tool_calls.size())
      return Error(Format("message %zu: a tool result without a tool call before it", i));
    if (number == 1) p->Text("\n\n<function_results>");
    p->Text("\n<result>");
    p->Text(messages_[i].content);
    p->Text("</result>");
    if (number == asked.tool_calls.size()) {
      p->Text("\n</function_results>\n\n");
      p->Marker(KeepsThinking(i) ? kThink : kThinkEnd);
    }
    return Ok();
  }

  const std::vector<ChatMessage>& messages_;
  const ChatOptions& options_;
  ptrdiff_t last_question_ = -1;
};

Status Read(const Json& j, size_t i, ChatMessage* m) {
  const auto text = [&](const char* name, std::string* out) -> Status {
    const auto it = j.find(name);
    if (it == j.end() || it->is_null()) return Ok();
    if (it->is_string()) {
      *out = it->get<std::string>();
      return Ok();
    }
    // [{"type": "text", "text": ...}]: parts of text are joined; nothing else can be read.
    if (it->is_array()) {
      for (const Json& part : *it) {
        if (!part.is_object() || part.value("type", Json()) != "text" || !part.contains("text") ||
            !part["text"].is_string())
          return Error(Format("message %zu: %s has a part that is not text", i, name));
        *out += part["text"].get<std::string>();
      }
      return Ok();
    }
    return Error(Format("message %zu: %s is not text", i, name));
  };
  if (!j.is_object()) return Error(Format("message %zu is not an object", i));
  SB_RETURN_IF_ERROR(text("role", &m->role));
  if (m->role.empty()) return Error(Format("message %zu has no role", i));
  SB_RETURN_IF_ERROR(text("content", &m->content));
  SB_RETURN_IF_ERROR(text("reasoning_content", &m->reasoning));
  if (j.contains("tools")) m->tools = j["tools"].dump(-1, ' ', false, Json::error_handler_t::replace);
  if (j.contains("response_format"))
    m->response_format = j["response_format"].dump(-1, ' ', false, Json::error_handler_t::replace);
  if (!j.contains("tool_calls") || j["tool_calls"].is_null()) return Ok();
  if (!j["tool_calls"].is_array()) return Error(Format("message %zu: tool_calls is not a list", i));
  for (const Json& call : j["tool_calls"]) {
    const Json* f = call.is_object() && call.contains("function") ? &call["function"] : &call;
    if (!f->is_object() || !f->contains("name") || !(*f)["name"].is_string() || !f->contains("arguments"))
      return Error(Format("message %zu: a tool call needs a name and arguments", i));
    const Json& arguments = (*f)["arguments"];
    m->tool_calls.push_back({(*f)["name"].get<std::string>(),
                             arguments.is_string() ? arguments.get<std::string>()
                                                   : arguments.dump(-1, ' ', false, Json::error_handler_t::replace)});
  }
  return Ok();
}

}  // namespace

const char* ChatStyleName(ChatStyle style) {
  switch (style) {
    case ChatStyle::kV3:
      return "V3";
    case ChatStyle::kR1:
      return "R1";
    case ChatStyle::kV31:
      return "V3.1";
    case ChatStyle::kV32:
      return "V3.2";
  }
  return "?";
}

Result<std::vector<ChatMessage>> ParseChat(std::string_view json, const std::string& what) {
  const std::optional<Json> root = ParseBounded(json);
  if (!root) return Error(what + ": is not JSON, or is nested too deeply");
  const Json* list = &*root;
  if (root->is_object() && root->contains("messages")) list = &(*root)["messages"];
  if (!list->is_array()) return Error(what + ": is neither a list of messages nor an object with one");
  std::vector<ChatMessage> messages(list->size());
  for (size_t i = 0; i < list->size(); ++i) SB_RETURN_IF_ERROR(Read((*list)[i], i, &messages[i]).At(what));
  if (root->is_object() && root->contains("tools") && !(*root)["tools"].is_null()) {
    auto system = messages.begin();
    while (system != messages.end() && system->role != "system") ++system;
    if (system == messages.end()) {
      messages.insert(messages.begin(), ChatMessage{.role = "system"});
      system = messages.begin();
    }
    system->tools = (*root)["tools"].dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  return messages;
}

Result<std::vector<PromptPart>> RenderChat(ChatStyle style, const std::vector<ChatMessage>& messages,
                                           const ChatOptions& options) {
  if (messages.empty()) return Error("the conversation has no messages");
  Prompt prompt;
  if (options.add_bos) prompt.Marker(kBos);
  if (style == ChatStyle::kV32)
    SB_RETURN_IF_ERROR(V32Renderer(messages, options).Render(&prompt));
  else
    SB_RETURN_IF_ERROR(RenderTurns(style, messages, options, &prompt));
  return prompt.Take();
}

ChatStyle GuessChatStyle(bool sparse_model, const std::string& chat_template) {
  if (chat_template.empty()) return sparse_model ? ChatStyle::kV32 : ChatStyle::kV3;
  if (chat_template.find("thinking") != std::string::npos) return ChatStyle::kV31;
  if (chat_template.find("<think>\\n") != std::string::npos) return ChatStyle::kR1;
  return ChatStyle::kV3;
}

}  // namespace samebits
