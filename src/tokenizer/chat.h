// Chat messages to prompts, natively: the encodings of DeepSeek V3, R1, V3.1 (also V3.1-Terminus, V3.2-Exp) and V3.2.
// Markers are special parts; what people and tools wrote is plain, so nobody can forge a turn.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tokenizer/tokenizer.h"

namespace samebits {

enum class ChatStyle { kV3, kR1, kV31, kV32 };
const char* ChatStyleName(ChatStyle style);

struct ToolCall {
  std::string name = {};
  std::string arguments = {};  // a JSON object
};

struct ChatMessage {
  std::string role = {};  // system, developer, user, assistant, tool
  std::string content = {};
  std::string reasoning = {};  // assistant only
  std::vector<ToolCall> tool_calls = {};
  std::string tools = {};            // JSON list of tool descriptions (system or developer; V3.2)
  std::string response_format = {};  // JSON schema (system or developer; V3.2)
};

struct ChatOptions {
  bool thinking = false;
  bool drop_thinking = true;  // forget the reasoning of answers before the last question
  bool add_bos = true;
  // What introduces tools, with {tool_schemas} where one schema a line goes. It belongs to the checkpoint and is not in
  // this program: messages with tools and an empty template are refused.
  std::string tools_template = {};
  std::string response_format_header = {};  // likewise, before the schema
};

// From OpenAI-style JSON: a list of messages, or an object with "messages" and optionally "tools" (given to the first
// system message, which is added if there is none). Errors name the message and field.
Result<std::vector<ChatMessage>> ParseChat(std::string_view json, const std::string& what);
// The prompt, ready for the assistant to go on. Errors: an unknown role, an empty conversation, a message the style
// cannot express.
Result<std::vector<PromptPart>> RenderChat(ChatStyle style, const std::vector<ChatMessage>& messages,
                                           const ChatOptions& options);
// V3.2 models without a template, and V3.2-Exp, V3.1, R1, V3 by what their template says.
ChatStyle GuessChatStyle(bool sparse_model, const std::string& chat_template);

}  // namespace samebits
