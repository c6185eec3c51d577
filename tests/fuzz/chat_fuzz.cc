// Chat JSON through every encoding. Nothing of a message may become a special part: the word INJECT, which the seeds
// hold in every field, must not turn up in one.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tokenizer/chat.h"

using namespace samebits;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto messages = ParseChat({reinterpret_cast<const char*>(data), size}, "input");
  if (!messages.ok()) return 0;
  for (const ChatStyle style : {ChatStyle::kV3, ChatStyle::kR1, ChatStyle::kV31, ChatStyle::kV32})
    for (const bool thinking : {false, true}) {
      ChatOptions options;
      options.thinking = thinking;
      options.tools_template = "{tool_schemas}";
      options.response_format_header = "#";
      auto parts = RenderChat(style, *messages, options);
      if (!parts.ok()) continue;
      for (const PromptPart& p : *parts)
        if (p.special && p.text.find("INJECT") != std::string::npos) std::abort();
    }
  return 0;
}
