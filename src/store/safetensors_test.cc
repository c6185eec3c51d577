#include "store/safetensors.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "base/strings.h"
#include "store/checkpoint.h"

namespace samebits {
namespace {

std::string Folder() {
  const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::string path = ::testing::TempDir() + "sb_safetensors_" + info->name() + std::to_string(::getpid());
  EXPECT_TRUE(MakeFolders(path).ok());
  return path;
}

std::string FileOf(const std::string& header, const std::string& data) {
  std::string out;
  for (int i = 0; i < 8; ++i) out.push_back(static_cast<char>(header.size() >> (8 * i)));
  return out + header + data;
}
Result<Safetensors> ParseText(const std::string& bytes) {
  return Safetensors::Parse(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), "test");
}

std::string Base64(const std::string& text) {
  static const std::string kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  uint32_t bits = 0;
  int have = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<uint32_t>(kDigits.find(c));
    have += 6;
    if (have >= 8) have -= 8, out.push_back(static_cast<char>(bits >> have));
  }
  return out;
}

TEST(Safetensors, HandedCases) {
  int ran = 0;
  for (int id = 53; id <= 91; ++id) {
    const std::string path = Format("%s/tests/cases/C%03d.json", SB_SOURCE_DIR, id);
    auto text = ReadFile(path);
    ASSERT_TRUE(text.ok()) << text.status().text();
    const auto c = nlohmann::json::parse(*text);
    if (c["component"] != "safetensors") continue;
    ++ran;
    SCOPED_TRACE(c["id"].get<std::string>() + " " + c["title"].get<std::string>());
    const auto& want = c["expected"];
    if (c["input"]["op"] == "check_index") {
      EXPECT_EQ(ParseShardIndex(c["input"]["index"].dump(), "index").ok(), want["accept"].get<bool>());
      continue;
    }
    const std::string file = Folder() + "/f.safetensors";
    ASSERT_TRUE(WriteFile(file, Base64(c["input"]["file_b64"])).ok());
    if (c["input"].contains("extend_to_bytes")) {
      ASSERT_EQ(::truncate(file.c_str(), c["input"]["extend_to_bytes"].get<int64_t>()), 0);
    }
    const auto got = Safetensors::Open(file);
    ::unlink(file.c_str());
    if (want["accept"] == "either") continue;
    ASSERT_EQ(got.ok(), want["accept"].get<bool>()) << got.status().text();
    if (!got.ok()) {
      EXPECT_NE(got.status().text().find(file), std::string::npos);
      continue;
    }
    ASSERT_EQ(got->entries().size(), want["tensors"].size());
    for (size_t i = 0; i < got->entries().size(); ++i) {
      const auto& e = got->entries()[i];
      const auto& w = want["tensors"][i];
      EXPECT_EQ(e.name, w["name"].get<std::string>());
      EXPECT_EQ(DTypeName(e.dtype), w["dtype"].get<std::string>());
      EXPECT_EQ(e.shape, w["shape"].get<Shape>());
      EXPECT_EQ(e.begin, w["begin"].get<uint64_t>());
      EXPECT_EQ(e.end, w["end"].get<uint64_t>());
      const TensorRef t = got->At(i);
      EXPECT_EQ(t.elements(), w["elements"].get<int64_t>());
      if (w.contains("values")) {
        for (size_t k = 0; k < w["values"].size(); ++k)
          EXPECT_EQ(static_cast<int64_t>(ElementAsDouble(t, static_cast<int64_t>(k))), w["values"][k].get<int64_t>());
      }
      if (w.contains("values_bits"))
        for (size_t k = 0; k < w["values_bits"].size(); ++k) {
          uint32_t bits;
          std::memcpy(&bits, static_cast<const char*>(t.data) + 4 * k, 4);
          EXPECT_EQ(Format("0x%08x", bits), w["values_bits"][k].get<std::string>());
        }
    }
  }
  EXPECT_EQ(ran, 39);
}

TEST(Safetensors, RefusesWithASentence) {
  const struct {
    const char* header;
    size_t data;
    const char* says;
  } kBad[] = {
      {R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}})", 4, "field \"x\" is unknown"},
      {R"({"t":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4, "appears twice"},
      {R"({"t":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, "negative"},
      {R"({"t":{"dtype":"F32","shape":[[1]],"data_offsets":[0,4]}})", 4, "list"},
      {R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4,4]}})", 4, "more than two"},
      {R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,18446744073709551615]}})", 4, "data ends"},
      {R"({"t":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4]}})", 4, "too large"},
      {R"({"t":7})", 0, "not an object"},
      {R"({"__metadata__":{"a":"1","a":"2"}})", 0, "twice"},
      {R"({"__metadata__":{},"__metadata__":{}})", 0, "twice"},
      {R"({"__metadata__":[]})", 0, "list"},
      {R"({"t":{"dtype":"F6_E2M3","shape":[3],"data_offsets":[0,3]}})", 3, "whole bytes"},
      {"{\"\xff\":{}}", 0, "not valid JSON"},
      {R"({}{})", 0, "not valid JSON"},
      {R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})", 4, "not valid JSON"},
  };
  for (const auto& bad : kBad) {
    const auto got = ParseText(FileOf(bad.header, std::string(bad.data, '\0')));
    ASSERT_FALSE(got.ok()) << bad.header;
    EXPECT_NE(got.status().text().find(bad.says), std::string::npos) << bad.header << " -> " << got.status().text();
  }
}

TEST(Safetensors, EveryPrefixAndEveryFlippedByteIsHandled) {
  const std::string good = FileOf(R"({"a":{"dtype":"BF16","shape":[2,2],"data_offsets":[0,8]},"b":{"dtype":"F6_E3M2",)"
                                  R"("shape":[4],"data_offsets":[8,11]}})",
                                  "0123456789a");
  ASSERT_TRUE(ParseText(good).ok()) << ParseText(good).status().text();
  for (size_t n = 0; n < good.size(); ++n) {
    const std::string cut(good.data(), n);
    EXPECT_FALSE(ParseText(cut).ok()) << n;
  }
  for (size_t n = 0; n < good.size(); ++n)
    for (int bit = 0; bit < 8; ++bit) {
      std::string broken = good;
      broken[n] = static_cast<char>(broken[n] ^ (1 << bit));
      const auto got = ParseText(broken);
      if (!got.ok()) continue;
      for (const SafetensorsEntry& e : got->entries()) EXPECT_LE(e.end, 11u);
    }
}

TEST(Safetensors, WriterRoundTripsAndIsDeterministic) {
  const std::string dir = Folder();
  const float f[3] = {1.5f, -0.0f, 3.0f};
  const uint8_t q[2] = {0x21, 0x43};
  const std::vector<NamedTensor> tensors = {{"f\"\n\xc3\xa9", {DType::kF32, {3}, f}},
                                            {"empty", {DType::kI64, {0, 4}, nullptr}},
                                            {"q", {DType::kF4, {2, 2}, q}},
                                            {"s", {DType::kF8E8M0, {}, q}}};
  ASSERT_TRUE(WriteSafetensors(dir + "/a", tensors, {{"k", "v"}}).ok());
  ASSERT_TRUE(WriteSafetensors(dir + "/b", tensors, {{"k", "v"}}).ok());
  EXPECT_EQ(*ReadFile(dir + "/a"), *ReadFile(dir + "/b"));
  const auto back = Safetensors::Open(dir + "/a");
  ASSERT_TRUE(back.ok()) << back.status().text();
  EXPECT_EQ(back->metadata().at("k"), "v");
  EXPECT_EQ(back->data_offset() % 64, 0u);
  for (const auto& t : tensors) {
    const auto got = back->Find(t.name);
    ASSERT_TRUE(got.ok());
    EXPECT_TRUE(SameBits(*got, t.tensor)) << t.name;
  }
  EXPECT_FALSE(back->Find("nope").ok());
  EXPECT_FALSE(WriteSafetensors(dir + "/c", {tensors[0], tensors[0]}).ok());
  EXPECT_FALSE(WriteSafetensors(dir + "/c", {{"\xff", tensors[0].tensor}}).ok());
  EXPECT_FALSE(FileExists(dir + "/c"));
}

TEST(Checkpoint, ShardsAreFoundAndFaultsNamed) {
  const std::string dir = Folder();
  const float f[2] = {1, 2};
  const TensorRef t{DType::kF32, {2}, f};
  EXPECT_FALSE(Checkpoint::Open(dir).ok());
  ASSERT_TRUE(WriteFile(dir + "/model.safetensors.index.json",
                        R"({"metadata":{"total_size":16},"weight_map":{"a":"m-1.safetensors","b":"m-2.safetensors"}})")
                  .ok());
  ASSERT_TRUE(WriteSafetensors(dir + "/m-1.safetensors", {{"a", t}}).ok());
  auto missing = Checkpoint::Open(dir);
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.status().text().find("m-2.safetensors"), std::string::npos);
  ASSERT_TRUE(WriteSafetensors(dir + "/m-2.safetensors", {{"b", t}}).ok());
  auto c = Checkpoint::Open(dir);
  ASSERT_TRUE(c.ok()) << c.status().text();
  EXPECT_TRUE(SameBits(*c->Find("b"), t));
  EXPECT_TRUE(c->Find("a", DType::kF32, {2}).ok());
  EXPECT_FALSE(c->Find("a", DType::kBF16, {2}).ok());
  EXPECT_FALSE(c->Find("a", DType::kF32, {3}).ok());
  EXPECT_EQ(c->Names(), (std::vector<std::string>{"a", "b"}));
  ASSERT_TRUE(WriteSafetensors(dir + "/m-2.safetensors", {{"a", t}, {"b", t}}).ok());
  EXPECT_NE(Checkpoint::Open(dir).status().text().find("two shards"), std::string::npos);
  ASSERT_TRUE(WriteSafetensors(dir + "/m-2.safetensors", {{"c", t}}).ok());
  EXPECT_NE(Checkpoint::Open(dir).status().text().find("does not have it"), std::string::npos);
  for (const char* bad : {"..", "a/b", "", "a\\\\b", "/etc/passwd"}) {
    const std::string text = std::string("{\"weight_map\":{\"x\":\"") + bad + "\"}}";
    EXPECT_FALSE(ParseShardIndex(text, "i").ok()) << bad;
  }
  for (const char* bad :
       {"", "[]", "{}", "{\"weight_map\":[]}", "{\"weight_map\":{\"a\":{}}}", "3",
        "{\"weight_map\":{\"a\":\"b\"},\"weight_map\":{}}", "{\"weight_map\":{\"a\":\"b\",\"a\":\"c\"}}"})
    EXPECT_FALSE(ParseShardIndex(bad, "i").ok()) << bad;
  EXPECT_TRUE(ParseShardIndex(R"({"metadata":{"weight_map":3,"x":[{"weight_map":{}}]},"weight_map":{}})", "i").ok());
}

}  // namespace
}  // namespace samebits
