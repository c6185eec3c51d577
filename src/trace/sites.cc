#include "trace/sites.h"

namespace samebits {
namespace {
constexpr SiteInfo kSites[] = {
#define SB_SITE(id, name, group, kind, text) {Site::id, name, group, SiteKind::kind, text},
#include "trace/sites.inc"
#undef SB_SITE
};
}  // namespace

const SiteInfo& InfoOf(Site site) { return kSites[static_cast<int>(site)]; }

std::optional<Site> SiteFromName(std::string_view name) {
  for (const SiteInfo& info : kSites)
    if (name == info.name) return info.site;
  return std::nullopt;
}

}  // namespace samebits
