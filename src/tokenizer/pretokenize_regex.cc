#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/strings.h"
#include "tokenizer/pretokenize.h"

namespace samebits {
namespace {

struct CodeFree {
  void operator()(pcre2_code* p) const { pcre2_code_free(p); }
};
struct DataFree {
  void operator()(pcre2_match_data* p) const { pcre2_match_data_free(p); }
};
struct ContextFree {
  void operator()(pcre2_match_context* p) const { pcre2_match_context_free(p); }
};
struct StackFree {
  void operator()(pcre2_jit_stack* p) const { pcre2_jit_stack_free(p); }
};
using Code = std::unique_ptr<pcre2_code, CodeFree>;

std::string Message(int code) {
  PCRE2_UCHAR text[256] = {};
  pcre2_get_error_message(code, text, sizeof(text));
  return reinterpret_cast<const char*>(text);
}

// Bounds what a hostile pattern may cost: backtracking steps, and the heap and stack they use.
constexpr uint32_t kMatchLimit = 10'000'000, kHeapLimitKiB = 64 * 1024;
constexpr size_t kJitStackFirst = 64 << 10, kJitStackMost = 8 << 20;

class RegexPreTokenizer : public PreTokenizer {
 public:
  Status Add(const std::string& pattern) {
    int code = 0;
    PCRE2_SIZE offset = 0;
    Code compiled(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), PCRE2_UTF | PCRE2_UCP,
                                &code, &offset, nullptr));
    if (!compiled)
      return Error(Format("pattern \"%s\" does not compile: %s at offset %zu", pattern.c_str(), Message(code).c_str(),
                          static_cast<size_t>(offset)));
    pcre2_jit_compile(compiled.get(), PCRE2_JIT_COMPLETE);  // without JIT it only runs slower
    codes_.push_back(std::move(compiled));
    patterns_.push_back(pattern);
    return Ok();
  }

  Status Cut(std::string_view text, std::vector<std::string_view>* pieces) const override {
    std::unique_ptr<pcre2_match_context, ContextFree> context(pcre2_match_context_create(nullptr));
    std::unique_ptr<pcre2_jit_stack, StackFree> stack(pcre2_jit_stack_create(kJitStackFirst, kJitStackMost, nullptr));
    pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
    pcre2_set_match_limit(context.get(), kMatchLimit);
    pcre2_set_heap_limit(context.get(), kHeapLimitKiB);
    pieces->clear();
    if (text.empty()) return Ok();
    std::vector<std::string_view> in = {text};
    for (size_t p = 0; p < codes_.size(); ++p) {
      pieces->clear();
      std::unique_ptr<pcre2_match_data, DataFree> data(pcre2_match_data_create_from_pattern(codes_[p].get(), nullptr));
      for (const std::string_view piece : in) {
        const int code = CutOne(codes_[p].get(), data.get(), context.get(), piece, pieces);
        if (code < 0) return Error(Format("pattern \"%s\" gave up: %s", patterns_[p].c_str(), Message(code).c_str()));
      }
      in = *pieces;
    }
    *pieces = std::move(in);
    return Ok();
  }

 private:
  static int CutOne(const pcre2_code* code, pcre2_match_data* data, pcre2_match_context* context,
                    std::string_view piece, std::vector<std::string_view>* pieces) {
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(piece.data());
    size_t gap = 0;
    for (size_t at = 0; at < piece.size();) {
      int found = pcre2_match(code, subject, piece.size(), at, PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, data, context);
      if (found == PCRE2_ERROR_JIT_STACKLIMIT)
        found = pcre2_match(code, subject, piece.size(), at, PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY | PCRE2_NO_JIT, data,
                            context);
      if (found == PCRE2_ERROR_NOMATCH) break;
      if (found < 0) return found;
      const PCRE2_SIZE* where = pcre2_get_ovector_pointer(data);
      // \K can move the reported start past the end, or before what is already cut.
      if (where[0] < gap || where[1] <= where[0]) return PCRE2_ERROR_BADOFFSET;
      if (gap < where[0]) pieces->push_back(piece.substr(gap, where[0] - gap));
      pieces->push_back(piece.substr(where[0], where[1] - where[0]));
      gap = at = where[1];
    }
    if (gap < piece.size()) pieces->push_back(piece.substr(gap));
    return 0;
  }

  std::vector<Code> codes_;
  std::vector<std::string> patterns_;
};

}  // namespace

Result<std::unique_ptr<PreTokenizer>> NewRegexPreTokenizer(const std::vector<std::string>& patterns) {
  auto made = std::make_unique<RegexPreTokenizer>();
  for (const std::string& pattern : patterns) SB_RETURN_IF_ERROR(made->Add(pattern));
  return std::unique_ptr<PreTokenizer>(std::move(made));
}

}  // namespace samebits
