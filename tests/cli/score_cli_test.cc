// `samebits score` as a user runs it.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

#include "base/files.h"

namespace samebits {
namespace {

const std::string kRoot = SB_SOURCE_DIR;

struct Ran {
  std::string err;
  int code;
};

std::string Temporary(const std::string& name) {
  return testing::TempDir() + "score_cli_" + std::to_string(getpid()) + name;
}

Ran ScoreModel(const std::string& arguments) {
  const std::string err = Temporary("err");
  const int code = std::system((std::string(SB_PROGRAM) + " score " + arguments + " >/dev/null 2>" + err).c_str());
  Ran ran{*ReadFile(err), WEXITSTATUS(code)};
  unlink(err.c_str());
  return ran;
}

nlohmann::json Header(const std::string& file) {
  const std::string bytes = *ReadFile(file);
  uint64_t size;
  std::memcpy(&size, bytes.data(), 8);
  return nlohmann::json::parse(bytes.substr(8, size));
}

TEST(ScoreCli, NamesAreTheReferences) {
  const std::string out = Temporary("out");
  const Ran r = ScoreModel(kRoot + "/tests/golden/v32-sparse --tokens " + kRoot +
                           "/tests/golden/v32-sparse/prompt.json --profile float32 --out " + out);
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.err.find("tokens/s"), std::string::npos) << r.err;
  const nlohmann::json got = Header(out), want = Header(kRoot + "/tests/golden/v32-sparse/reference.safetensors");
  for (const auto& [name, tensor] : want.items()) {
    if (name == "__metadata__" || name.find("margin") != std::string::npos || name.find("tail") != std::string::npos)
      continue;
    ASSERT_TRUE(got.contains(name)) << name;
    EXPECT_EQ(got[name]["dtype"], tensor["dtype"]) << name;
  }
  EXPECT_EQ(got["__metadata__"]["contract"], "portable-1/float32");
  unlink(out.c_str());
}

TEST(ScoreCli, ChunkThreadsAndTwoRunsGiveTheSameFile) {
  const std::string tokens = Temporary("tokens"), a = Temporary("a"), b = Temporary("b");
  std::string ids = "[0";
  for (int i = 1; i < 140; ++i) ids += "," + std::to_string(i * 37 % 2040);
  ASSERT_TRUE(WriteFile(tokens, ids + "]").ok());
  const std::string base =
      kRoot + "/models/tiny-v32 --tokens " + tokens + " --sites hidden,kv_row,index_k_row,topk,lse,logits --out ";
  ASSERT_EQ(ScoreModel(base + a).code, 0);
  for (const char* more : {" --chunk 1", " --chunk 65 --threads 3", " --isa scalar"}) {
    ASSERT_EQ(ScoreModel(base + b + more).code, 0);
    EXPECT_EQ(*ReadFile(a), *ReadFile(b)) << more;
  }
  for (const std::string& file : {tokens, a, b}) unlink(file.c_str());
}

TEST(ScoreCli, BadInputIsTwoAndASentence) {
  const std::string tokens = Temporary("bad"), out = Temporary("never");
  const std::string model = kRoot + "/models/tiny-v32 --tokens " + tokens + " --out " + out;
  const auto refused = [&](const std::string& json, const std::string& arguments, const std::string& word) {
    ASSERT_TRUE(WriteFile(tokens, json).ok());
    const Ran r = ScoreModel(arguments);
    EXPECT_EQ(r.code, 2) << arguments << r.err;
    EXPECT_NE(r.err.find(word), std::string::npos) << r.err << " lacks " << word;
    EXPECT_FALSE(FileExists(out));
  };
  refused("[1, 2", model, "JSON");
  refused("[]", model, "empty");
  refused("[1, -2]", model, "-2");
  refused("[1, 2.5]", model, "2.5");
  refused("[1, 99999]", model, "99999");
  refused("[1, 12345678901234567890]", model, "12345678901234567890");
  refused("{\"prompts\": []}", model, "prompts");
  refused("{\"prompts\": [{\"name\": \"a\"}]}", model, "ids");
  refused("{\"prompts\": [{\"name\": \"a\", \"ids\": [1]}, {\"name\": \"a\", \"ids\": [1]}]}", model, "\"a\"");
  std::string long_ids = "[1";
  for (int i = 0; i < 4096; ++i) long_ids += ",1";
  refused(long_ids + "]", model, "4097");
  refused("[1]", model + " --sites nothing", "nothing");
  refused("[1]", model + " --profile bf16", "bf16");
  refused("[1]", model + " --logit-rows few", "few");
  refused("[1]", model + " --chunk 0", "chunk");
  refused("[1]", kRoot + "/tests --tokens " + tokens + " --out " + out, "config.json");
  refused("[1]", kRoot + "/models/tiny-v32 --tokens " + tokens + " --out /nonexistent/x", "/nonexistent/x");
  unlink(tokens.c_str());
}

}  // namespace
}  // namespace samebits
