#include "engine/pages.h"

#include <cstring>
#include <utility>

#include "base/strings.h"
#include "engine/shuffle.h"

namespace samebits {

PagePool::PagePool(int64_t pages, PageMemory* memory, uint64_t shuffle_seed, bool poison_on_free)
    : references_(pages), memory_(memory), shuffle_state_(shuffle_seed), poison_(poison_on_free) {
  free_.resize(pages);
  for (int64_t i = 0; i < pages; ++i) free_[i] = static_cast<int32_t>(pages - 1 - i);
  if (poison_)
    for (int32_t p = 0; p < pages; ++p) memory_->PoisonPage(p);
}

int32_t PagePool::Allocate() {
  if (free_.empty()) return -1;
  if (shuffle_state_ != 0) std::swap(free_[NextRandom(&shuffle_state_) % free_.size()], free_.back());
  const int32_t page = free_.back();
  free_.pop_back();
  references_[page] = 1;
  return page;
}

void PagePool::Hold(int32_t page) {
  SB_CHECK(references_[page] > 0, "holding a free page");
  ++references_[page];
}

bool PagePool::Release(int32_t page) {
  SB_CHECK(references_[page] > 0, "page freed twice");
  if (--references_[page] > 0) return false;
  free_.push_back(page);
  if (poison_) memory_->PoisonPage(page);
  return true;
}

SequencePages::SequencePages(SequencePages&& other) noexcept
    : pool_(other.pool_), page_size_(other.page_size_), table_(std::move(other.table_)), copies_(other.copies_) {
  other.table_.clear();
}

bool SequencePages::MakeWritable(int64_t from, int64_t to) {
  if (from >= to) return true;
  for (int64_t i = from / page_size_; i < static_cast<int64_t>(table_.size()) && i * page_size_ < to; ++i) {
    if (pool_->holders(table_[i]) == 1) continue;
    const int32_t own = pool_->Allocate();
    if (own < 0) return false;
    pool_->memory()->CopyPage(table_[i], own);
    pool_->Release(table_[i]);
    table_[i] = own;
    ++copies_;
  }
  while (static_cast<int64_t>(table_.size()) * page_size_ < to) {
    const int32_t page = pool_->Allocate();
    if (page < 0) return false;
    table_.push_back(page);
  }
  return true;
}

void SequencePages::Fork(const SequencePages& other) {
  SB_CHECK(pool_ == other.pool_ && page_size_ == other.page_size_, "fork within one pool");
  Adopt(other.table_);
}

void SequencePages::Adopt(std::span<const int32_t> pages) {
  SB_CHECK(table_.empty(), "the sequence has pages");
  for (const int32_t p : pages) pool_->Hold(p);
  table_.assign(pages.begin(), pages.end());
}

void SequencePages::Clear() { Truncate(0); }

void SequencePages::Truncate(int64_t length) {
  const size_t keep = static_cast<size_t>((length + page_size_ - 1) / page_size_);
  while (table_.size() > keep) {
    pool_->Release(table_.back());
    table_.pop_back();
  }
}

bool TableRowFits(std::span<const int32_t> row, int32_t page_size, int64_t seq_len, int64_t new_keys) {
  if (page_size <= 0 || seq_len < 0 || new_keys < 0) return false;
  const int64_t columns = static_cast<int64_t>(row.size());
  // Subtracted, not added, so that no length overflows.
  if (seq_len > columns * page_size || new_keys > columns * page_size - seq_len) return false;
  const int64_t needed = (seq_len + new_keys + page_size - 1) / page_size;
  for (int64_t i = 0; i < needed; ++i)
    if (row[i] < 0) return false;
  return true;
}

Status WriteSlots(std::span<uint8_t> pool, int64_t row_bytes, std::span<const int64_t> slot_mapping, int64_t num_tokens,
                  std::span<const uint8_t> rows) {
  if (row_bytes <= 0) return Error("slot_write: rows must have at least one byte");
  const int64_t capacity = static_cast<int64_t>(pool.size()) / row_bytes;
  if (num_tokens < 0 || num_tokens > static_cast<int64_t>(slot_mapping.size()) ||
      num_tokens > static_cast<int64_t>(rows.size()) / row_bytes)
    return Error(Format("slot_write: %lld tokens, but %zu slots and %zu bytes of rows",
                        static_cast<long long>(num_tokens), slot_mapping.size(), rows.size()));
  for (int64_t i = 0; i < num_tokens; ++i)
    if (slot_mapping[i] >= capacity)
      return Error(Format("slot_write: row %lld goes to slot %lld, the cache has %lld", static_cast<long long>(i),
                          static_cast<long long>(slot_mapping[i]), static_cast<long long>(capacity)));
  for (int64_t i = 0; i < num_tokens; ++i)
    if (slot_mapping[i] >= 0)
      std::memcpy(pool.data() + slot_mapping[i] * row_bytes, rows.data() + i * row_bytes, row_bytes);
  return Ok();
}

}  // namespace samebits
