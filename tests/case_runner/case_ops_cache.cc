#include <algorithm>
#include <cstring>
#include <map>
#include <memory>

#include "base/strings.h"
#include "case.h"
#include "engine/pages.h"
#include "engine/prefix_cache.h"
#include "ops/op.h"
#include "ops/quant/quant.h"
#include "store/digest.h"

namespace samebits {
namespace {

void PageOffset(Members& in, Members& want) {
  std::vector<int64_t> offsets;
  for (const Json& j : List(in["items"])) {
    Members item(j, "item");
    const int32_t page = Value<int32_t>(item["page"]);
    PagedRows rows;
    rows.page_table = &page, rows.page_size = 1, rows.row_stride = Value<int64_t>(item["stride"]);
    offsets.push_back(rows.Slot(0) * rows.row_stride + Value<int64_t>(item["inner"]));
  }
  ExpectInts("offset", offsets, want["offset"]);
}

void SlotWrite(Members& in, Members& want) {
  const int64_t blocks = Count(in["num_blocks"], 1 << 16), block_size = Count(in["block_size"], 1 << 16);
  const int64_t row_bytes = Count(in["row_bytes"], 1 << 16), block_bytes = block_size * row_bytes;
  if (blocks * block_bytes > (1 << 28)) Malformed("a pool of more than 256 MB");
  if (Value<std::string>(in["initial"]) != "every byte of block b is 0xA0+b") Unsupported("this initial content");
  std::vector<uint8_t> pool;
  for (int64_t b = 0; b < blocks; ++b)
    pool.insert(pool.end(), static_cast<size_t>(block_bytes), static_cast<uint8_t>(0xA0 + b));
  const std::vector<uint8_t> before = pool;
  const std::vector<int64_t> slots = Row<int64_t>(in["slot_mapping"]);
  const int64_t num_tokens = Value<int64_t>(in["num_tokens"]);
  std::vector<uint8_t> rows;
  for (const Json& hex : List(in["rows_hex"])) {
    const std::string bytes = HexBytes(hex);
    if (static_cast<int64_t>(bytes.size()) != row_bytes) Malformed("a row has another length");
    rows.insert(rows.end(), bytes.begin(), bytes.end());
  }
  if (num_tokens < 0 || num_tokens > static_cast<int64_t>(slots.size()) ||
      num_tokens * row_bytes > static_cast<int64_t>(rows.size()))
    Malformed("num_tokens is larger than the rows");
  const Status status = WriteSlots(pool, row_bytes, slots, num_tokens, rows);
  bool past = false;
  for (int64_t i = 0; i < num_tokens; ++i) past |= slots[static_cast<size_t>(i)] >= blocks * block_size;
  if (!status.ok()) {
    Expect(past, "refused: " + status.text());
    return want.Find("blocks_hex"), Expect(pool == before, "refused, but something was written");
  }
  const Json& expected = List(want["blocks_hex"]);
  Expect(static_cast<int64_t>(expected.size()) == blocks, "blocks_hex has another length");
  for (int64_t b = 0; b < blocks; ++b)
    ExpectText(Format("block %lld", (long long)b),
               HexOf({reinterpret_cast<const char*>(pool.data()) + b * block_bytes, static_cast<size_t>(block_bytes)}),
               expected[static_cast<size_t>(b)]);
}

void IndexKeyLayout(Members&, Members&) {
  Unsupported("index keys and scales in one page; this engine keeps them in two pools");
}

template <class T>
T At(const std::string& bytes, int64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

// The layout is read here, the values by the dequantisation rule of ops/quant.
void IndexKeyPage(Members& in, Members& want) {
  const int64_t page_size = Count(in["page_size"], 1 << 16), dim = Count(in["head_dim"], 1 << 16);
  const std::string page = HexBytes(in["page_hex"]);
  if (static_cast<int64_t>(page.size()) != page_size * (dim + 4)) Malformed("page_hex has another length");
  const Json& keys = List(want["keys"]);
  Expect(static_cast<int64_t>(keys.size()) == page_size, "keys has another length");
  for (int64_t r = 0; r < page_size; ++r) {
    Expect(static_cast<int64_t>(List(keys[static_cast<size_t>(r)]).size()) == dim, "a key has another length");
    const float scale = At<float>(page, page_size * dim + 4 * r);
    for (int64_t c = 0; c < dim; ++c)
      ExpectNear(Format("keys[%lld][%lld]", (long long)r, (long long)c),
                 double{DequantValue(At<E4M3>(page, r * dim + c), scale)},
                 keys[static_cast<size_t>(r)][static_cast<size_t>(c)], 0);
  }
}

void MlaRow656(Members& in, Members& want) {
  const std::string row = Base64Bytes(in["row_b64"]);
  if (row.size() != 656) Malformed("row_b64 does not hold 656 bytes");
  std::vector<float> scales, latent;
  std::vector<BF16> narrow, rope;
  for (int64_t t = 0; t < 4; ++t) scales.push_back(At<float>(row, 512 + 4 * t));
  for (int64_t i = 0; i < 512; ++i) {
    latent.push_back(DequantValue(At<E4M3>(row, i), scales[static_cast<size_t>(i / 128)]));
    narrow.push_back(RoundToBF16(latent.back()));
  }
  for (int64_t i = 0; i < 64; ++i) rope.push_back(At<BF16>(row, 528 + 2 * i));
  const Json &want_scales = List(want["scales_f32"]), &tiles = List(want["latent_f32_first4_of_each_tile"]);
  for (size_t t = 0; t < 4; ++t) {
    ExpectBits(Format("scale %zu", t), scales[t], want_scales.at(t));
    for (size_t i = 0; i < 4; ++i)
      ExpectBits(Format("latent %zu of tile %zu", i, t), latent[128 * t + i], tiles.at(t).at(i));
  }
  ExpectText("sha256 of the latent", Sha256Hex(BytesOf(latent)), want["latent_f32_sha256_le"]);
  ExpectText("sha256 of the latent in bf16", Sha256Hex(BytesOf(narrow)), want["latent_bf16_sha256_le"]);
  for (size_t i = 0; i < 4; ++i)
    Expect(rope[i].bits == Value<BF16>(List(want["rope_bf16_first4"]).at(i)).bits, Format("rope value %zu", i));
  ExpectText("sha256 of the rope part", Sha256Hex(BytesOf(rope)), want["rope_sha256_le"]);
}

// Cache rows that are token numbers; freed pages are poisoned.
struct TokenMemory : PageMemory {
  TokenMemory(int64_t pages, int32_t size) : page_size(size), rows(static_cast<size_t>(pages * size)) {}
  void CopyPage(int32_t from, int32_t to) override {
    std::copy_n(rows.begin() + int64_t{from} * page_size, page_size, rows.begin() + int64_t{to} * page_size);
  }
  void PoisonPage(int32_t page) override { std::fill_n(rows.begin() + int64_t{page} * page_size, page_size, -77); }
  int32_t page_size;
  std::vector<int32_t> rows;
};

struct CacheSizes {
  int32_t block_size;
  int64_t blocks;
};

// Twice: pages in order, and shuffled.
void BlockSharingWith(uint64_t shuffle_seed, CacheSizes sizes, const Json& steps, const Json& reads,
                      const Json* free_after) {
  struct Sequence {
    Sequence(PagePool* pool, int32_t size) : pages(pool, size) {}
    SequencePages pages;
    int64_t length = 0;
  };
  TokenMemory memory(sizes.blocks, sizes.block_size);
  PagePool pool(sizes.blocks, &memory, shuffle_seed, true);
  std::map<std::string, std::unique_ptr<Sequence>> live;
  size_t read = 0;
  auto find = [&](const Json& name) -> Sequence& {
    const auto it = live.find(Value<std::string>(name));
    if (it == live.end()) Malformed("a step names an unknown sequence");
    return *it->second;
  };
  auto append = [&](Sequence& s, const std::vector<int32_t>& tokens) {
    const int64_t to = s.length + static_cast<int64_t>(tokens.size());
    Expect(s.pages.MakeWritable(s.length, to), "no free block");
    for (size_t i = 0; i < tokens.size(); ++i)
      memory.rows[static_cast<size_t>(s.pages.Slot(s.length + static_cast<int64_t>(i)))] = tokens[i];
    s.length = to;
  };
  for (const Json& j : steps) {
    Members step(j, "step");
    const std::string op = Value<std::string>(step["op"]);
    if (op == "new") {
      auto& s = live[Value<std::string>(step["seq"])] = std::make_unique<Sequence>(&pool, sizes.block_size);
      if (const Json* tokens = step.Find("tokens")) append(*s, Row<int32_t>(*tokens));
    } else if (op == "fork") {
      Sequence& from = find(step["from"]);
      auto to = std::make_unique<Sequence>(&pool, sizes.block_size);
      to->pages.Fork(from.pages);
      to->length = from.length;
      live[Value<std::string>(step["to"])] = std::move(to);
    } else if (op == "append") {
      append(find(step["seq"]), Row<int32_t>(step["tokens"]));
    } else if (op == "free") {
      find(step["seq"]);
      live.erase(Value<std::string>(step["seq"]));
    } else if (op == "read") {
      const Sequence& s = find(step["seq"]);
      std::vector<int32_t> tokens;
      for (int64_t p = 0; p < s.length; ++p) tokens.push_back(memory.rows[static_cast<size_t>(s.pages.Slot(p))]);
      Expect(read < List(reads).size(), "more reads than expected");
      if (reads[read].is_object() && reads[read].contains("seq"))
        Expect(reads[read]["seq"] == step["seq"], Format("read %zu is of another sequence", read));
      ExpectInts(Format("read %zu", read), tokens, reads[read].is_object() ? reads[read].at("tokens") : reads[read]);
      ++read;
    } else {
      Unsupported("step \"" + op + "\"");
    }
  }
  Expect(read == List(reads).size(), "fewer reads than expected");
  live.clear();
  if (free_after) ExpectNear("blocks_free_after_all_freed", static_cast<double>(pool.free_pages()), *free_after, 0);
}

void BlockSharing(Members& in, Members& want) {
  const CacheSizes sizes{static_cast<int32_t>(Count(in["block_size"], 1 << 16)), Count(in["total_blocks"], 1 << 16)};
  if (sizes.block_size < 1) Malformed("block_size is 0");
  const Json &steps = List(in["steps"]), &reads = List(want["reads"]);
  const Json* free_after = want.Find("blocks_free_after_all_freed");
  for (const uint64_t seed : {0, 5}) BlockSharingWith(seed, sizes, steps, reads, free_after);
}

void PrefixCacheCase(Members& in, Members& want) {
  const int32_t block = static_cast<int32_t>(Count(in["block_size"], 1 << 16));
  if (block < 1) Malformed("block_size is 0");
  constexpr int64_t kPages = 1 << 12;
  TokenMemory memory(kPages, block);
  PagePool pool(kPages, &memory, 3, true);
  PrefixCache cache(&pool, block, "portable-1");
  if (in.Find("hash_override") != nullptr)  // the worst hash: every page collides
    cache.SetHash([](const Digest128&, std::span<const int32_t>) { return Digest128{1, 1}; });
  std::vector<int64_t> found;
  for (const Json& j : List(in["steps"])) {
    Members step(j, "step");
    const std::string op = Value<std::string>(step["op"]);
    std::string salt;
    if (const Json* s = step.Find("salt"); s != nullptr && !s->is_null()) salt = Value<std::string>(*s);
    const std::vector<int32_t> tokens = Row<int32_t>(step[op == "evict" ? "prefix" : "tokens"]);
    if (op == "insert") {
      std::vector<int32_t> pages;
      for (size_t i = 0; i + static_cast<size_t>(block) <= tokens.size(); i += static_cast<size_t>(block)) {
        pages.push_back(pool.Allocate());
        Expect(pages.back() >= 0, "no free page");
        std::copy_n(tokens.begin() + static_cast<int64_t>(i), block,
                    memory.rows.begin() + int64_t{pages.back()} * block);
      }
      cache.Insert(tokens, salt, pages);
      for (const int32_t page : pages) pool.Release(page);
    } else if (op == "lookup") {
      const std::vector<int32_t> pages = cache.Lookup(tokens, salt, static_cast<int64_t>(tokens.size()));
      for (size_t p = 0; p < pages.size(); ++p)
        Expect(std::equal(tokens.begin() + static_cast<int64_t>(p) * block,
                          tokens.begin() + (static_cast<int64_t>(p) + 1) * block,
                          memory.rows.begin() + int64_t{pages[p]} * block),
               "a page of other tokens was found");
      found.push_back(static_cast<int64_t>(pages.size()) * block);
    } else if (op == "evict") {
      cache.Evict(tokens, salt);
    } else {
      Unsupported("step \"" + op + "\"");
    }
  }
  const std::vector<int64_t> most = Row<int64_t>(want["reusable_tokens"]);
  const Json* at_least = want.Find("at_least");
  const std::vector<int64_t> least = at_least ? Row<int64_t>(*at_least) : std::vector<int64_t>(most.size(), 0);
  Expect(found.size() == most.size() && found.size() == least.size(), "another number of lookups");
  for (size_t i = 0; i < found.size(); ++i)
    Expect(found[i] >= least[i] && found[i] <= most[i],
           Format("lookup %zu finds %lld tokens, %lld to %lld are right", i, (long long)found[i], (long long)least[i],
                  (long long)most[i]));
}

void BlockTableCheck(Members& in, Members& want) {
  const Rows<int32_t> table = Matrix<int32_t>(in["table"]);
  const std::vector<int64_t> lens = Row<int64_t>(in["seq_lens"]), added = Row<int64_t>(in["new_keys"]);
  const int32_t block = Value<int32_t>(in["block_size"]);
  if (lens.size() != static_cast<size_t>(table.rows) || added.size() != lens.size() || block < 1)
    Malformed("one length for each row is needed");
  const Json& ok = List(want["row_ok"]);
  Expect(ok.size() == lens.size(), "row_ok has another length");
  bool all = true;
  for (size_t r = 0; r < lens.size(); ++r) {
    const std::span<const int32_t> row(table.data.data() + static_cast<int64_t>(r) * table.cols,
                                       static_cast<size_t>(table.cols));
    const bool fits = TableRowFits(row, block, lens[r], added[r]);
    all &= fits;
    Expect(fits == ok[r].get<bool>(), Format("row %zu is taken for %s", r, fits ? "legal" : "illegal"));
  }
  if (const Json* accepted = want.Find("accepted")) Expect(all == accepted->get<bool>(), "the table as a whole");
}

constexpr CaseOp kOps[] = {{"page_offset", PageOffset},          {"slot_write", SlotWrite},
                           {"index_key_layout", IndexKeyLayout}, {"index_key_page", IndexKeyPage},
                           {"mla_row_656", MlaRow656},           {"block_sharing", BlockSharing},
                           {"prefix_cache", PrefixCacheCase},    {"block_table_check", BlockTableCheck}};

}  // namespace

std::span<const CaseOp> CacheCaseOps() { return kOps; }

}  // namespace samebits
