// Every place of a forward pass that can be recorded or compared, once. Names are what traces, `prove`, `score` and
// `first` print; the order is causal within a layer.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace samebits {

enum class Site : uint8_t {
#define SB_SITE(id, name, group, kind, text) id,
#include "trace/sites.inc"
#undef SB_SITE
  kCount,
};

enum class SiteKind : uint8_t { kFloat, kIndexList, kExperts, kToken };

struct SiteInfo {
  Site site;
  const char* name;   // "q_a"
  const char* group;  // "attn0", "indexer", "attn1", "moe", "head"
  SiteKind kind;
  const char* text;  // one line: what it is, its shape per token
};

const SiteInfo& InfoOf(Site site);
std::optional<Site> SiteFromName(std::string_view name);
inline constexpr int kSiteCount = static_cast<int>(Site::kCount);

}  // namespace samebits
