#include "forensics/locate.h"

#include <map>
#include <set>
#include <tuple>

#include "base/strings.h"

namespace samebits {
namespace {

struct State {
  bool differs = false;
  std::string name;
};
using Place = std::tuple<int64_t, int, std::string, int>;  // step, layer, site, rank

class Walk {
 public:
  void Add(const TensorDiff& d, bool differs) {
    State& s = states_[{d.item.step, d.item.layer, CanonicalSite(d.item), d.item.rank}];
    s.differs = s.differs || differs;
    s.name = d.item.name;
    last_layer_ = std::max(last_layer_, d.item.layer);
    if (differs) {
      const auto [it, fresh] =
          first_step_.emplace(std::make_tuple(d.item.layer, CanonicalSite(d.item), d.item.rank), d.item.step);
      if (!fresh) it->second = std::min(it->second, d.item.step);
    }
  }

  // Follows inputs up to the nearest recorded ones. Returns the first that differs, or "".
  std::string DifferingInput(const SourceItem& item, std::vector<std::string>* same) const {
    std::set<std::pair<int, std::string>> seen;
    return Follow(item, item.layer, CanonicalSite(item), &seen, same);
  }

 private:
  std::string Follow(const SourceItem& item, int layer, const std::string& site,
                     std::set<std::pair<int, std::string>>* seen, std::vector<std::string>* same) const {
    std::vector<std::string> inputs = SiteInputs(site);
    if (site == "embed") {  // the token sampled one step earlier
      for (const char* before : {"token", "logits"}) {
        const auto it = states_.find({item.step - 1, -1, before, item.rank});
        if (it == states_.end()) continue;
        if (it->second.differs) return it->second.name;
        same->push_back(it->second.name);
        break;
      }
      return "";
    }
    for (std::string input : inputs) {
      int from = layer;
      bool cached = false;
      if (input[0] == '<') {
        input = input.substr(1);
        if (input == "embed" && layer > 0) continue;
        if (input == "hidden" && layer == 0) continue;
        from = input == "embed" ? -1 : layer == -1 ? last_layer_ : layer - 1;
      } else if (input[0] == '^') {
        input = input.substr(1);
        cached = true;
      }
      if (!seen->insert({from, input}).second) continue;
      if (cached) {
        const auto first = first_step_.find({from, input, item.rank});
        if (first != first_step_.end() && first->second < item.step)
          return Format("%s of step %lld, read from the cache", input.c_str(), static_cast<long long>(first->second));
      }
      const auto it = states_.find({item.step, from, input, item.rank});
      if (it == states_.end()) {
        const std::string up = Follow(item, from, input, seen, same);
        if (!up.empty()) return up;
        continue;
      }
      if (it->second.differs) return it->second.name;
      same->push_back(it->second.name);
    }
    return "";
  }

  std::map<Place, State> states_;
  std::map<std::tuple<int, std::string, int>, int64_t> first_step_;
  int last_layer_ = -1;
};

}  // namespace

Result<Located> Locate(TensorSource& left, TensorSource& right, const DiffOptions& options, TensorSource* noise,
                       const DiffVisitor& also) {
  Located out;
  std::set<std::string> noisy;
  if (noise != nullptr) {
    DiffOptions plain = options;
    plain.details = false;
    SB_ASSIGN(const DiffSums sums,
              DiffSources(left, *noise, plain, [&](const TensorDiff& d, TensorSource&, TensorSource&) {
                if (!d.passed && d.verdict != DiffVerdict::kOnlyLeft && d.verdict != DiffVerdict::kOnlyRight)
                  noisy.insert(d.item.name);
                return Ok();
              }));
    if (sums.compared == 0)
      return Error(noise->path() + ": has nothing in common with " + left.path() + "; --noise wants a second run of A");
  }
  DiffOptions every = options;
  every.visit_identical = true;
  Walk walk;
  bool all_known = true;  // every site that differs is one whose inputs are known
  SB_ASSIGN(out.sums,
            DiffSources(left, right, every, [&](const TensorDiff& d, TensorSource& a, TensorSource& b) -> Status {
              if (also) SB_RETURN_IF_ERROR(also(d, a, b));
              if (d.verdict == DiffVerdict::kSkipped || d.verdict == DiffVerdict::kOnlyLeft ||
                  d.verdict == DiffVerdict::kOnlyRight)
                return Ok();

              if (!d.passed && noisy.count(d.item.name)) {
                out.noise.push_back(d.item.name);
                walk.Add(d, false);
                return Ok();
              }
              walk.Add(d, !d.passed);
              if (!d.passed) {
                all_known = all_known && d.item.layer != kNoLayer && SiteFromName(CanonicalSite(d.item));
                out.differing.push_back(d);
              }
              return Ok();
            }));
  out.known_sites = all_known;
  std::string before;  // without known inputs: the first difference of the same step and rank
  for (const TensorDiff& d : out.differing) {
    Origin origin;
    std::string because;
    if (all_known) {
      because = walk.DifferingInput(d.item, &origin.same_inputs);
    } else {
      because = before;
      if (before.empty()) before = d.item.name;
    }
    if (!because.empty()) {
      out.propagated.push_back({d.item.name, because});
      continue;
    }
    origin.inputs_recorded = !origin.same_inputs.empty();
    origin.diff = d;
    out.origins.push_back(std::move(origin));
  }
  return out;
}

}  // namespace samebits
