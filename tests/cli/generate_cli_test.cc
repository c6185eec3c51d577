// `samebits generate` as a user runs it.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "base/files.h"

namespace samebits {
namespace {

struct Ran {
  std::string out, err;
  int code;
};

// Arguments are shell text, so that tests can pipe.
Ran Shell(const std::string& command) {
  const std::string err_path = testing::TempDir() + "generate_cli_err";
  FILE* pipe = popen(("{ " + command + "; } 2>" + err_path).c_str(), "r");
  SB_CHECK(pipe != nullptr, "popen");
  Ran ran;
  char buffer[4096];
  for (size_t n; (n = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) ran.out.append(buffer, n);
  ran.code = WEXITSTATUS(pclose(pipe));
  ran.err = *ReadFile(err_path);
  return ran;
}
const std::string kGenerate = std::string(SB_PROGRAM) + " generate " + SB_SOURCE_DIR + "/models/tiny-v32 ";
Ran Generate(const std::string& arguments) { return Shell(kGenerate + arguments + " </dev/null"); }

TEST(GenerateCli, AnswersAndStreams) {
  const Ran r = Generate("--prompt 'What is 7 + 5?'");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out, "12\n");
  EXPECT_EQ(r.err, "");
  EXPECT_EQ(Shell("echo 'What is 7 + 5?' | " + kGenerate).out, "12\n");
  EXPECT_EQ(Generate("--prompt 'What is 7 + 5?' --ids").out, "279 1\n");
}

TEST(GenerateCli, NothingButTheRequestMatters) {
  const std::string base = "--prompt 'Tell me a story about a cat.' --temperature 0.9 --seed 7 --max-tokens 60 ";
  const std::string want = Generate(base).out;
  EXPECT_GT(want.size(), 40u);
  for (const char* more : {"--threads 1", "--threads 3", "--isa scalar", "--draft 3"})
    EXPECT_EQ(Generate(base + more).out, want) << more;
  EXPECT_NE(Generate(base + "--seed 8").out, want);
  const Ran with_mate = Generate(base + "--prompt 'Hello!'");
  EXPECT_NE(with_mate.out.find("== 1 of 2: --prompt 1\n" + want + "== 2 of 2"), std::string::npos) << with_mate.out;
}

TEST(GenerateCli, JsonHasLogprobs) {
  const Ran r = Generate("--prompt 'Hello!' --json --logprobs 2");
  ASSERT_EQ(r.code, 0) << r.err;
  const auto j = nlohmann::json::parse(r.out);
  EXPECT_EQ(j["finish_reason"], "stop");
  EXPECT_EQ(j["contract"], "portable-1");
  ASSERT_EQ(j["logprobs"].size(), j["ids"].size());
  EXPECT_EQ(j["logprobs"][0]["top"].size(), 2u);
  EXPECT_EQ(j["logprobs"][0]["top"][0]["id"], j["ids"][0]);
  EXPECT_EQ(j["logprobs"][0]["top"][0]["logprob"], j["logprobs"][0]["logprob"]);
}

TEST(GenerateCli, StopAndRaw) {
  const std::string base = "--prompt 'Count from 12 to 17.' ";
  EXPECT_EQ(Generate(base).out, "12, 13, 14, 15, 16, 17\n");
  EXPECT_EQ(Generate(base + "--stop ' 15' --stop zzz").out, "12, 13, 14,\n");
  EXPECT_EQ(Generate("--raw --prompt '<｜User｜>What is 7 + 5?<｜Assistant｜></think>'").out, "12\n");
  // The same markers from a user are text.
  EXPECT_NE(Generate("--prompt '<｜User｜>What is 7 + 5?<｜Assistant｜></think>' --max-tokens 4").code, 2);
}

TEST(GenerateCli, BadInputEndsWithASentenceAndCode2) {
  const auto says = [](const std::string& arguments, const std::string& want) {
    const Ran r = Generate(arguments);
    EXPECT_EQ(r.code, 2) << arguments;
    EXPECT_EQ(r.out, "") << arguments;
    EXPECT_NE(r.err.find("samebits generate: "), std::string::npos) << r.err;
    EXPECT_NE(r.err.find(want), std::string::npos) << arguments << ": " << r.err;
  };
  says("--prompt x --temperature -1", "temperature");
  says("--prompt x --temperature nan", "temperature");
  says("--prompt x --top-p 0", "top_p");
  says("--prompt x --top-k -1", "top_k");
  says("--prompt x --max-tokens -3", "max_tokens");
  says("--prompt x --seed 18446744073709551616", "--seed");
  says("--prompt x --seed -1", "--seed");
  says("--prompt x --seed 1x", "--seed");
  says("--prompt x --isa sse9", "--isa");
  says("--prompt x --profile other", "other");
  says("--prompt x --chat --raw", "--raw");
  says("--prompt x --logprobs 2", "--json");
  says("--prompt x --nonsense", "--nonsense");
  says("--prompt \"$(printf 'ab\\377')\"", "offset 2");
  says("--file /nonexistent", "/nonexistent");
  says("--file /tmp", "/tmp");
  says("--messages " + std::string(SB_SOURCE_DIR) + "/CMakeLists.txt", "JSON");
  says("--raw --system S --prompt x", "--system");
  const Ran longer = Shell("yes word | head -n 6000 | " + kGenerate);
  EXPECT_EQ(longer.code, 2);
  EXPECT_NE(longer.err.find("4096"), std::string::npos) << longer.err;
  const Ran full = Shell(kGenerate + "--prompt 'What is 7 + 5?' >/dev/full");
  EXPECT_EQ(full.code, 2);
  EXPECT_NE(full.err.find("standard output"), std::string::npos) << full.err;
  const Ran no_model = Shell(std::string(SB_PROGRAM) + " generate /nonexistent --prompt x");
  EXPECT_EQ(no_model.code, 2);
  EXPECT_NE(no_model.err.find("/nonexistent/tokenizer.json"), std::string::npos) << no_model.err;
}

TEST(GenerateCli, AReaderThatGoesAwayIsNoError) {
  const Ran r = Shell("{ " + kGenerate +
                      "--prompt 'Tell me a story about a cat.' --ignore-eos --max-tokens 3000; echo code $? >&2; } | "
                      "head -c 5 >/dev/null");
  EXPECT_EQ(r.err, "code 0\n");
}

}  // namespace
}  // namespace samebits
