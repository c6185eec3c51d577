#include "base/files.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cstring>

#include "base/strings.h"

namespace samebits {
namespace {

class Files : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/samebits_files_XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
  }
  void TearDown() override {
    const auto names = ListFolder(folder_);
    if (names.ok())
      for (const std::string& n : *names) std::remove(Path(n).c_str());
    std::remove(folder_.c_str());
  }
  std::string Path(const std::string& name) const { return JoinPath(folder_, name); }
  std::string folder_;
};

TEST_F(Files, WhatIsWrittenIsRead) {
  std::string text(3'000'001, 'x');  // past the write buffer
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 31);
  ASSERT_TRUE(WriteFile(Path("a"), text).ok());
  const auto read = ReadFile(Path("a"));
  ASSERT_TRUE(read.ok());
  EXPECT_TRUE(*read == text);
  auto map = MappedFile::Open(Path("a"));
  ASSERT_TRUE(map.ok());
  ASSERT_EQ(map->size(), text.size());
  EXPECT_EQ(std::memcmp(map->data(), text.data(), text.size()), 0);
  const MappedFile copy = *map;
  *map = MappedFile();
  EXPECT_EQ(copy.data()[1], 31);  // copies share the map
}

TEST_F(Files, AnEmptyFileMapsToNothing) {
  ASSERT_TRUE(WriteFile(Path("empty"), "").ok());
  const auto map = MappedFile::Open(Path("empty"));
  ASSERT_TRUE(map.ok());
  EXPECT_EQ(map.ok() ? (*map).size() : 1, 0u);
  EXPECT_EQ(*ReadFile(Path("empty")), "");
}

TEST_F(Files, NothingAppearsBeforeCommitAndTheOldFileStays) {
  ASSERT_TRUE(WriteFile(Path("a"), "old").ok());
  {
    auto file = AtomicFile::Create(Path("a"));
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->Write("new").ok());
    EXPECT_EQ(*ReadFile(Path("a")), "old");
  }  // abandoned
  EXPECT_EQ(*ReadFile(Path("a")), "old");
  EXPECT_EQ(ListFolder(folder_)->size(), 1u);  // and nothing is left beside it
  auto file = AtomicFile::Create(Path("a"));
  ASSERT_TRUE(file->Write("....new").ok());
  ASSERT_TRUE(file->WriteAt(0, "head", 4).ok());
  AtomicFile moved = std::move(*file);
  ASSERT_TRUE(moved.Commit().ok());
  EXPECT_EQ(*ReadFile(Path("a")), "headnew");
}

TEST_F(Files, ErrorsNameThePath) {
  for (const std::string& text : {MappedFile::Open(Path("none")).status().text(),
                                  ReadFile(Path("none")).status().text(), MappedFile::Open(folder_).status().text(),
                                  ReadFile(folder_).status().text(), ListFolder(Path("none")).status().text(),
                                  WriteFile(Path("no/where"), "x").text(), AtomicFile::Create(folder_).status().text()})
    EXPECT_NE(text.find(folder_), std::string::npos) << text;
  EXPECT_FALSE(AtomicFile::Create("").ok());
  EXPECT_FALSE(MappedFile::Open("/dev/null").ok());
}

TEST_F(Files, ReadRefusesMoreThanItMay) {
  ASSERT_TRUE(WriteFile(Path("a"), "12345").ok());
  EXPECT_TRUE(ReadFile(Path("a"), 5).ok());
  EXPECT_NE(ReadFile(Path("a"), 4).status().text().find("larger than the 4 bytes"), std::string::npos);
}

TEST_F(Files, FoldersAreMadeAllTheWay) {
  const std::string deep = Path("x/y/z");
  ASSERT_TRUE(MakeFolders(deep).ok());
  EXPECT_TRUE(IsFolder(deep));
  EXPECT_TRUE(MakeFolders(deep).ok());
  ASSERT_TRUE(WriteFile(JoinPath(deep, "f"), "").ok());
  EXPECT_FALSE(MakeFolders(JoinPath(deep, "f")).ok());
  EXPECT_EQ(*ListFolder(deep), std::vector<std::string>{"f"});
  for (const char* name : {"x/y/z/f", "x/y/z", "x/y", "x"}) std::remove(Path(name).c_str());
}

TEST(Paths, AreJoined) {
  EXPECT_EQ(JoinPath("", "b"), "b");
  EXPECT_EQ(JoinPath("a", "b"), "a/b");
  EXPECT_EQ(JoinPath("a/", "b"), "a/b");
}

TEST(Strings, NumbersRejectJunk) {
  EXPECT_EQ(*ParseInt("-12", "--n"), -12);
  for (const char* bad : {"", " 1", "1 ", "0x10", "1.5", "9223372036854775808", "+1", "--1"})
    EXPECT_NE(ParseInt(bad, "--n").status().text().find("--n"), std::string::npos) << bad;
  EXPECT_DOUBLE_EQ(*ParseDouble("1e-3", "--p"), 1e-3);
  for (const char* bad : {"", "1e", "1,5", "p", "1e999"}) EXPECT_FALSE(ParseDouble(bad, "--p").ok()) << bad;
}

TEST(Strings, TextForPeople) {
  EXPECT_EQ(WithCommas(0), "0");
  EXPECT_EQ(WithCommas(-1234567), "-1,234,567");
  EXPECT_EQ(WithCommas(999), "999");
  EXPECT_EQ(WithCommas(INT64_MIN), "-9,223,372,036,854,775,808");
  EXPECT_EQ(HumanBytes(999), "999 B");
  EXPECT_EQ(HumanBytes(8'900'000), "8.9 MB");
  EXPECT_EQ(Split("a,,b", ','), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(Split("", ','), std::vector<std::string>{""});
  EXPECT_EQ(Join({"a", "b"}, ", "), "a, b");
  EXPECT_EQ(Format("%s %d", "x", 5), "x 5");
}

}  // namespace
}  // namespace samebits
