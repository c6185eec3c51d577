// Who owns which page of the KV cache. Pages are counted: the prefix cache and any number of sequences may hold one.
// A page that more than one holds is never written (copy on write). Which physical page a sequence gets cannot reach a
// bit of its output; a shuffled pool and poisoned free pages prove that.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace samebits {

// The rows behind the pages, as far as paging touches them.
class PageMemory {
 public:
  virtual ~PageMemory() = default;
  virtual void CopyPage(int32_t from, int32_t to) = 0;
  // Fills a page with what no result may depend on. Called on free when the pool poisons.
  virtual void PoisonPage(int32_t page) = 0;
};

class PagePool {
 public:
  // shuffle_seed 0: pages are handed out in ascending order; otherwise in a random order drawn from it.
  PagePool(int64_t pages, PageMemory* memory, uint64_t shuffle_seed = 0, bool poison_on_free = false);
  int64_t pages() const { return static_cast<int64_t>(references_.size()); }
  int64_t free_pages() const { return static_cast<int64_t>(free_.size()); }
  // A page with one holder, or -1 when none is free.
  int32_t Allocate();
  void Hold(int32_t page);
  // True if that was the last holder: the page is free again.
  bool Release(int32_t page);
  int32_t holders(int32_t page) const { return references_[page]; }
  PageMemory* memory() const { return memory_; }

 private:
  std::vector<int32_t> references_, free_;
  PageMemory* memory_;
  uint64_t shuffle_state_;
  bool poison_;
};

// The pages of one sequence: position p is slot table[p / page_size] * page_size + p % page_size.
class SequencePages {
 public:
  SequencePages(PagePool* pool, int32_t page_size) : pool_(pool), page_size_(page_size) {}
  SequencePages(const SequencePages&) = delete;
  SequencePages& operator=(const SequencePages&) = delete;
  SequencePages(SequencePages&& other) noexcept;
  ~SequencePages() { Clear(); }

  // Makes positions [from, to) writable: allocates what is missing and copies shared pages that would be written. False
  // when the pool runs out; what was obtained stays and the call may be repeated.
  bool MakeWritable(int64_t from, int64_t to);
  // Holds every page of `other`, which must use the same pool: a fork. The next write of either copies.
  void Fork(const SequencePages& other);
  // Holds `pages`, full of positions computed before (a prefix hit). The sequence must be empty.
  void Adopt(std::span<const int32_t> pages);
  void Clear();
  // Gives back the pages behind the first `length` positions (rejected drafts).
  void Truncate(int64_t length);

  const std::vector<int32_t>& table() const { return table_; }
  int64_t Slot(int64_t position) const {
    return int64_t{table_[position / page_size_]} * page_size_ + position % page_size_;
  }
  int64_t copies() const { return copies_; }

 private:
  PagePool* pool_;
  int32_t page_size_;
  std::vector<int32_t> table_;
  int64_t copies_ = 0;
};

// Whether a row of a page table holds seq_len computed and new_keys new positions: they fit its columns, and no page
// they need is negative (padding). Lengths below zero never fit.
bool TableRowFits(std::span<const int32_t> row, int32_t page_size, int64_t seq_len, int64_t new_keys);

// Copies row i of `rows` to slot_mapping[i] for i < num_tokens; negative slots are padding and write nothing. A slot at
// or past the capacity refuses the call before any write.
Status WriteSlots(std::span<uint8_t> pool, int64_t row_bytes, std::span<const int64_t> slot_mapping, int64_t num_tokens,
                  std::span<const uint8_t> rows);

}  // namespace samebits
