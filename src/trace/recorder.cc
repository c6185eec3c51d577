#include "trace/recorder.h"

#include "base/strings.h"

namespace samebits {
namespace {

using Ranges = std::vector<std::pair<int64_t, int64_t>>;

bool In(const Ranges& ranges, int64_t x) {
  if (ranges.empty()) return true;
  for (const auto& [first, last] : ranges)
    if (first <= x && x <= last) return true;
  return false;
}

std::string RangesText(const Ranges& ranges) {
  std::string out;
  for (const auto& [first, last] : ranges) {
    out += (out.empty() ? "" : ",") + std::to_string(first);
    if (last != first) out += "-" + std::to_string(last);
  }
  return out;
}

}  // namespace

Result<Ranges> ParseRanges(std::string_view text, const std::string& what) {
  Ranges out;
  for (const std::string& part : Split(text, ',')) {
    const size_t dash = part.find('-', 1);  // a leading minus is a sign
    SB_ASSIGN(const int64_t first, ParseInt(part.substr(0, dash), what));
    int64_t last = first;
    if (dash != std::string::npos) {
      SB_ASSIGN(last, ParseInt(part.substr(dash + 1), what));
    }
    if (last < first) return Error(what + ": the range " + part + " ends before it begins");
    out.emplace_back(first, last);
  }
  return out;
}

Result<std::vector<Site>> ParseSites(std::string_view text, const std::string& what) {
  std::vector<Site> out;
  for (const std::string& part : Split(text, ',')) {
    const size_t before = out.size();
    std::vector<std::string> known;
    for (int i = 0; i < kSiteCount; ++i) {
      const SiteInfo& info = InfoOf(static_cast<Site>(i));
      known.push_back(info.name);
      if (part == info.name || part == info.group) out.push_back(info.site);
    }
    if (out.size() == before)
      return Error(what + ": there is no site or group \"" + part + "\"; sites: " + Join(known, " ") +
                   "; groups: attn0 indexer attn1 moe head");
  }
  return out;
}

Recorder::Recorder(TraceWriter writer, RecorderFilter filter) : writer_(std::move(writer)), filter_(std::move(filter)) {
  for (bool& wanted : sites_) wanted = filter_.sites.empty();
  for (const Site site : filter_.sites) sites_[static_cast<int>(site)] = true;
}

Result<std::unique_ptr<Recorder>> Recorder::Create(const std::string& folder, TraceWriterOptions options,
                                                   RecorderFilter filter) {
  std::vector<std::string> names;
  for (const Site site : filter.sites) names.push_back(InfoOf(site).name);
  if (!names.empty()) options.filter["sites"] = Join(names, ",");
  if (!filter.layers.empty()) options.filter["layers"] = RangesText(filter.layers);
  if (!filter.steps.empty()) options.filter["steps"] = RangesText(filter.steps);
  if (!filter.positions.empty()) options.filter["positions"] = RangesText(filter.positions);
  SB_ASSIGN(TraceWriter writer, TraceWriter::Create(folder, options));
  return std::unique_ptr<Recorder>(new Recorder(std::move(writer), std::move(filter)));
}

Status Recorder::BeginStep(int64_t step) {
  step_wanted_ = In(filter_.steps, step);
  return step_wanted_ ? writer_.BeginStep(step) : Ok();
}

Status Recorder::EndStep() {
  if (!step_wanted_) return Ok();
  step_wanted_ = false;
  SB_RETURN_IF_ERROR(status_);
  return writer_.EndStep();
}

Status Recorder::Finish() {
  SB_RETURN_IF_ERROR(status_);
  return writer_.Finish();
}

bool Recorder::Wants(Site site, int layer) const {
  return step_wanted_ && status_.ok() && sites_[static_cast<int>(site)] && In(filter_.layers, layer);
}

void Recorder::OnRows(Site site, int layer, const Rows& rows) {
  if (!status_.ok() || rows.count == 0) return;
  const SiteInfo& info = InfoOf(site);
  TraceWriter::Add add;
  add.layer = layer;
  add.site = info.name;
  add.kind = info.kind;
  add.rows = {rows.data, rows.dtype, rows.count, rows.cols, rows.stride, rows.lens};
  add.owners = rows.owners;
  if (!filter_.positions.empty()) {
    SB_CHECK(rows.owners != nullptr, "a position filter needs owners");
    const size_t element = static_cast<size_t>(DTypeBits(rows.dtype)) / 8;
    kept_.clear(), kept_owners_.clear(), kept_lens_.clear();
    for (int64_t r = 0; r < rows.count; ++r) {
      if (!In(filter_.positions, rows.owners[r].position)) continue;
      kept_.append(static_cast<const char*>(rows.data) + static_cast<size_t>(r * rows.stride) * element,
                   static_cast<size_t>(rows.cols) * element);
      kept_owners_.push_back(rows.owners[r]);
      if (rows.lens) kept_lens_.push_back(rows.lens[r]);
    }
    if (kept_owners_.empty()) return;
    add.rows.data = kept_.data();
    add.rows.count = static_cast<int64_t>(kept_owners_.size());
    add.rows.stride = rows.cols;
    add.rows.lens = rows.lens ? kept_lens_.data() : nullptr;
    add.owners = kept_owners_.data();
  }
  status_ = writer_.Record(add);
}

}  // namespace samebits
