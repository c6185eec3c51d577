// Full pages of prompts seen before. A page is known by everything before it: its hash chains over the pages in front,
// and begins with the contract id and the request's salt. A hash only finds; tokens decide. An equal hash over other
// tokens (forced in tests) is a miss, never a wrong answer.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/pages.h"
#include "store/digest.h"

namespace samebits {

// Hash of one page: of its tokens and the hash in front (of contract id and salt for the first).
using PrefixHashFunction = std::function<Digest128(const Digest128& before, std::span<const int32_t> tokens)>;

class PrefixCache {
 public:
  // Holds pages in `pool`. contract: the numeric contract; pages of another are never found.
  PrefixCache(PagePool* pool, int32_t page_size, std::string contract);
  ~PrefixCache() { Clear(); }
  PrefixCache(const PrefixCache&) = delete;
  PrefixCache& operator=(const PrefixCache&) = delete;
  // For tests: replaces the hash. Before anything is inserted.
  void SetHash(PrefixHashFunction hash) { hash_ = std::move(hash); }

  // Keeps the full pages of `tokens`; pages[i] holds tokens [i * page_size, ...) and stays held. Known ones are kept as
  // they are. Returns how many were added.
  int64_t Insert(std::span<const int32_t> tokens, const std::string& salt, std::span<const int32_t> pages);
  // The longest known run of full pages that `tokens` begins with, at most max_tokens long. The pages are not held for
  // the caller: adopt them before anything else touches the cache.
  std::vector<int32_t> Lookup(std::span<const int32_t> tokens, const std::string& salt, int64_t max_tokens);
  // Forgets the page that ends the prefix, and those behind it. False if it was not known.
  bool Evict(std::span<const int32_t> prefix, const std::string& salt);
  // Frees one page: the least recently used that nobody else holds and nothing follows. False if there is none.
  bool EvictOne();
  void Clear();

  int64_t size() const { return static_cast<int64_t>(entries_.size()); }
  // Equal hashes over different tokens met so far.
  int64_t collisions() const { return collisions_; }

 private:
  struct Entry {
    uint64_t serial, parent;  // parent: serial of the entry in front, 0 for none
    std::string salt;         // of first pages only
    std::vector<int32_t> tokens;
    int32_t page;
    int64_t children;
    uint64_t used;
  };
  using Entries = std::map<Digest128, Entry>;

  Digest128 Root(const std::string& salt) const;
  // Walks as far as pages are known, and appends them to *pages if given. Returns hash and serial of the last.
  struct End {
    Digest128 hash;
    uint64_t serial = 0;
    int64_t pages = 0;
  };
  End Walk(std::span<const int32_t> tokens, const std::string& salt, int64_t max_pages, std::vector<int32_t>* pages);
  void Remove(Entries::iterator it);

  PagePool* pool_;
  int32_t page_size_;
  std::string contract_;
  PrefixHashFunction hash_;
  Entries entries_;
  std::map<uint64_t, Digest128> by_serial_;
  uint64_t next_serial_ = 1, clock_ = 0;
  int64_t collisions_ = 0;
};

}  // namespace samebits
