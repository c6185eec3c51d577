// Runs every tests/cli/forensics/NAME.sh and compares stdout with NAME.stdout and the exit code with NAME.exit. Set
// SAMEBITS_UPDATE=1 to write the files anew; read the difference before committing it.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/files.h"

namespace samebits {
namespace {

TEST(ForensicsCli, OutputAndExitCodes) {
  const std::string folder = std::string(SB_SOURCE_DIR) + "/tests/cli/forensics";
  const auto names = ListFolder(folder);
  ASSERT_TRUE(names.ok());
  int run = 0;
  for (const std::string& name : *names) {
    if (name.size() < 4 || name.substr(name.size() - 3) != ".sh") continue;
    SCOPED_TRACE(name);
    ++run;
    const std::string stem = folder + "/" + name.substr(0, name.size() - 3);
    const std::string scratch = ::testing::TempDir() + "samebits_cli_XXXXXX";
    std::string made = scratch;
    ASSERT_NE(mkdtemp(made.data()), nullptr);
    const std::string command = "cd '" + folder + "/data' && SAMEBITS='" + SB_PROGRAM + "' OUT='" + made +
                                "' NO_COLOR=1 sh ../" + name + " 2>&1";
    FILE* pipe = popen(command.c_str(), "r");
    ASSERT_NE(pipe, nullptr);
    std::string got;
    char buffer[4096];
    for (size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) got.append(buffer, n);
    for (size_t at; (at = got.find(made)) != std::string::npos;) got.replace(at, made.size(), "OUT");
    const int status = pclose(pipe);
    const std::string code = std::to_string(WIFEXITED(status) ? WEXITSTATUS(status) : 255) + "\n";
    if (std::getenv("SAMEBITS_UPDATE") != nullptr) {
      ASSERT_TRUE(WriteFile(stem + ".stdout", got).ok() && WriteFile(stem + ".exit", code).ok());
      continue;
    }
    const auto want = ReadFile(stem + ".stdout"), want_code = ReadFile(stem + ".exit");
    ASSERT_TRUE(want.ok() && want_code.ok()) << "the expected files are missing";
    EXPECT_EQ(got, *want);
    EXPECT_EQ(code, *want_code);
  }
  EXPECT_GE(run, 10);
}

}  // namespace
}  // namespace samebits
