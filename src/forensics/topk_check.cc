#include "forensics/topk_check.h"

#include <algorithm>
#include <cstring>

#include "base/strings.h"
#include "forensics/compare.h"
#include "forensics/explain/topk_case.h"
#include "forensics/index_sets.h"

namespace samebits {
namespace {

// Ids of each row ascending, padding at the tail.
Tensor SortedRows(const TensorRef& t) {
  Tensor out(DType::kI32, t.shape);
  const int64_t width = t.shape.empty() ? 1 : t.shape.back(), rows = width > 0 ? t.elements() / width : 0;
  int32_t* p = out.As<int32_t>();
  std::fill(p, p + t.elements(), -1);
  for (int64_t r = 0; r < rows; ++r) {
    const std::vector<int64_t> ids = SortedIds(t, r);
    for (size_t i = 0; i < ids.size(); ++i) p[r * width + static_cast<int64_t>(i)] = static_cast<int32_t>(ids[i]);
  }
  return out;
}

const char* Mark(bool same) { return same ? "equal" : "NOT equal"; }

bool Section(const std::string& title, const TensorRef& a, const TensorRef& b, int64_t window, std::string* text) {
  const Comparison c = CompareTensors(a, b);
  const bool same = c.status == CompareStatus::kEqualBits;
  *text += Format("  %-10s %s", title.c_str(), Mark(same));
  if (a.dtype != b.dtype || a.shape != b.shape) {
    *text += Format(" (%s)\n", CompareStatusName(c.status));
    return false;
  }
  if (same) {
    *text += "\n";
    return true;
  }
  const CompareStats& s = c.stats;
  *text += Format(": %lld of %lld differ, first at flat %lld = %s\n", static_cast<long long>(s.bit_mismatches),
                  static_cast<long long>(s.elements), static_cast<long long>(s.first_bit),
                  CoordinateText(a.shape, s.first_bit).c_str());
  *text += Format("      %-16s %10s %10s %10s\n", "idx", "a", "b", "abs_diff");
  for (int64_t i = std::max<int64_t>(0, s.first_bit - window); i <= std::min(s.elements - 1, s.first_bit + window);
       ++i) {
    const long long x = IntegerAt(a, i), y = IntegerAt(b, i);
    *text += Format("    %s %-16s %10lld %10lld %10lld\n", x == y ? " " : ">", CoordinateText(a.shape, i).c_str(), x, y,
                    x > y ? x - y : y - x);
  }
  return false;
}

}  // namespace

Result<TopkCheck> CheckTopkFiles(TensorSource& left, TensorSource& right, int64_t window) {
  SB_ASSIGN(const std::vector<TopkCase> a, FindTopkCases(left));
  SB_ASSIGN(const std::vector<TopkCase> b, FindTopkCases(right));
  if (a.empty() || b.empty())
    return Error((a.empty() ? left.path() : right.path()) +
                 ": no top-k list was found (a tensor named topk_result, topk, or topk_indices)");
  TopkCheck out;
  int64_t pairs = 0;
  for (const TopkCase& x : a) {
    const auto y_it = std::find_if(b.begin(), b.end(), [&](const TopkCase& y) { return y.scope == x.scope; });
    if (y_it == b.end()) continue;
    const TopkCase& y = *y_it;
    ++pairs;
    out.text += x.scope.empty() ? "" : "== " + x.scope + "\n";
    const Tensor sorted_a = SortedRows(x.topk.tensor), sorted_b = SortedRows(y.topk.tensor);
    out.text += "[Basic Checks]\n";
    const auto basic = [&](const char* name, const LoadedTensor& p, const LoadedTensor& q) {
      if (p.tensor.data == nullptr || q.tensor.data == nullptr) {
        out.text += Format("  %-22s not in both files\n", name);
        return;
      }
      out.text += Format("  %-22s %s\n", name, Mark(SameBits(p.tensor, q.tensor)));
    };
    basic("logits", x.logits, y.logits);
    basic("row_lens", x.row_lens, y.row_lens);
    basic("row_starts", x.row_starts, y.row_starts);
    basic("topk_result", x.topk, y.topk);
    out.text += Format("  %-22s %s\n", "topk_sorted", Mark(SameBits(sorted_a.ref(), sorted_b.ref())));
    if (!SameBits(x.topk.tensor, y.topk.tensor)) out.same = false;
    Result<Tensor> ref_a = ReferenceTopk(x), ref_b = ReferenceTopk(y);
    if (ref_a.ok() && ref_b.ok()) {
      const bool agree = SameBits((*ref_a).ref(), (*ref_b).ref());
      out.text += Format("  %-22s %s\n", "ref_sorted", Mark(agree));
      out.text += Format("  %-22s A %s, B %s\n", "topk_sorted vs ref", Mark(SameBits(sorted_a.ref(), (*ref_a).ref())),
                         Mark(SameBits(sorted_b.ref(), (*ref_b).ref())));
    }
    out.text += "[Shape Info]\n";
    const auto shape = [&](const char* name, const LoadedTensor& p) {
      if (p.tensor.data != nullptr)
        out.text += Format("  %-12s %s %s\n", name, DTypeName(p.tensor.dtype), ShapeText(p.tensor.shape).c_str());
    };
    shape("logits", x.logits), shape("row_starts", x.row_starts), shape("row_lens", x.row_lens),
        shape("topk_result", x.topk);
    out.text += "[Comparison Logic] (sorted per row)\n";
    Section("A vs B", sorted_a.ref(), sorted_b.ref(), window, &out.text);
    if (ref_a.ok() && ref_b.ok()) {
      Section("A vs ref", sorted_a.ref(), (*ref_a).ref(), window, &out.text);
      Section("B vs ref", sorted_b.ref(), (*ref_b).ref(), window, &out.text);
    } else {
      out.text += "  A vs ref   not possible: " + (ref_a.ok() ? ref_b : ref_a).status().text() + "\n";
    }
  }
  if (pairs == 0) return Error(left.path() + " and " + right.path() + ": the top-k lists belong to different layers");
  return out;
}

}  // namespace samebits
