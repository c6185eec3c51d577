#include "engine/prefix_cache.h"

#include <algorithm>

namespace samebits {
namespace {

Digest128 HashAfter(const Digest128& before, const void* data, size_t bytes) {
  HashStream stream;
  stream.Update(&before, sizeof(before));
  stream.Update(data, bytes);
  return stream.Digest();
}

}  // namespace

PrefixCache::PrefixCache(PagePool* pool, int32_t page_size, std::string contract)
    : pool_(pool), page_size_(page_size), contract_(std::move(contract)) {
  hash_ = [](const Digest128& before, std::span<const int32_t> tokens) {
    return HashAfter(before, tokens.data(), tokens.size_bytes());
  };
}

Digest128 PrefixCache::Root(const std::string& salt) const {
  return HashAfter(HashBytes(contract_.data(), contract_.size()), salt.data(), salt.size());
}

PrefixCache::End PrefixCache::Walk(std::span<const int32_t> tokens, const std::string& salt, int64_t max_pages,
                                   std::vector<int32_t>* pages) {
  End end;
  end.hash = Root(salt);
  ++clock_;
  const int64_t full = std::min<int64_t>(static_cast<int64_t>(tokens.size()) / page_size_, max_pages);
  for (; end.pages < full; ++end.pages) {
    const auto page_tokens = tokens.subspan(end.pages * page_size_, page_size_);
    const Digest128 hash = hash_(end.hash, page_tokens);
    const auto it = entries_.find(hash);
    if (it == entries_.end()) break;
    Entry& e = it->second;
    // The same page only if what is in front is the same entry and the tokens are equal.
    if (e.parent != end.serial || (end.serial == 0 && e.salt != salt) ||
        !std::equal(page_tokens.begin(), page_tokens.end(), e.tokens.begin(), e.tokens.end())) {
      ++collisions_;
      break;
    }
    e.used = clock_;
    if (pages != nullptr) pages->push_back(e.page);
    end.hash = hash;
    end.serial = e.serial;
  }
  return end;
}

int64_t PrefixCache::Insert(std::span<const int32_t> tokens, const std::string& salt, std::span<const int32_t> pages) {
  const int64_t full = std::min<int64_t>(tokens.size() / page_size_, pages.size());
  End end = Walk(tokens, salt, full, nullptr);
  int64_t added = 0;
  for (int64_t i = end.pages; i < full; ++i) {
    const auto page_tokens = tokens.subspan(i * page_size_, page_size_);
    const Digest128 hash = hash_(end.hash, page_tokens);
    Entry entry = {next_serial_,
                   end.serial,
                   end.serial == 0 ? salt : std::string(),
                   {page_tokens.begin(), page_tokens.end()},
                   pages[i],
                   0,
                   clock_};
    if (!entries_.emplace(hash, std::move(entry)).second) break;  // the place is taken by a collision: not cached
    pool_->Hold(pages[i]);
    if (end.serial != 0) ++entries_.at(by_serial_.at(end.serial)).children;
    by_serial_[next_serial_] = hash;
    end.hash = hash;
    end.serial = next_serial_++;
    ++added;
  }
  return added;
}

std::vector<int32_t> PrefixCache::Lookup(std::span<const int32_t> tokens, const std::string& salt, int64_t max_tokens) {
  std::vector<int32_t> pages;
  Walk(tokens, salt, std::max<int64_t>(max_tokens, 0) / page_size_, &pages);
  return pages;
}

void PrefixCache::Remove(Entries::iterator it) {
  const Entry& e = it->second;
  if (e.parent != 0) --entries_.at(by_serial_.at(e.parent)).children;
  by_serial_.erase(e.serial);
  pool_->Release(e.page);
  entries_.erase(it);
}

bool PrefixCache::Evict(std::span<const int32_t> prefix, const std::string& salt) {
  const int64_t full = static_cast<int64_t>(prefix.size()) / page_size_;
  const End end = Walk(prefix, salt, full, nullptr);
  if (full == 0 || end.pages != full) return false;
  // What follows can no longer be reached. Parents have smaller serials than their children, so one ascending pass
  // finds the subtree and a descending one removes leaves first.
  std::vector<uint64_t> gone = {end.serial};
  for (const auto& [serial, hash] : by_serial_)
    if (serial > end.serial && std::binary_search(gone.begin(), gone.end(), entries_.at(hash).parent))
      gone.push_back(serial);
  for (auto it = gone.rbegin(); it != gone.rend(); ++it) Remove(entries_.find(by_serial_.at(*it)));
  return true;
}

bool PrefixCache::EvictOne() {
  auto oldest = entries_.end();
  for (auto it = entries_.begin(); it != entries_.end(); ++it) {
    const Entry& e = it->second;
    if (e.children > 0 || pool_->holders(e.page) > 1) continue;
    // Ages tie within one chain; the serial keeps the choice the same in every run.
    if (oldest == entries_.end() || e.used < oldest->second.used ||
        (e.used == oldest->second.used && e.serial > oldest->second.serial))
      oldest = it;
  }
  if (oldest == entries_.end()) return false;
  Remove(oldest);
  return true;
}

void PrefixCache::Clear() {
  for (const auto& [hash, e] : entries_) pool_->Release(e.page);
  entries_.clear();
  by_serial_.clear();
}

}  // namespace samebits
