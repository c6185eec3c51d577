// Runs case files (tests/cases/README.md) against this build. One line a case, then the sums.
//
//   case_runner PATH...     files or folders of *.json
//   exit 0: none failed   1: some failed   2: a file that cannot be read or is not a case

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/strings.h"
#include "case.h"

namespace samebits {
namespace {

// What a server does needs the server.
constexpr const char* kServerOps[] = {"http_request", "sse_stream", "disconnect", "logprob_json", "logprob_bytes"};

const CaseOp* FindOp(const std::string& name) {
  for (const std::span<const CaseOp> ops :
       {TopkCaseOps(), AttentionCaseOps(), RouterCaseOps(), GemmCaseOps(), RopeCaseOps(), CacheCaseOps(), FileCaseOps(),
        TextCaseOps(), SamplingCaseOps(), DiffCaseOps()})
    for (const CaseOp& op : ops)
      if (name == op.name) return &op;
  return nullptr;
}

void RunCase(const Json& file) {
  Members members(file, "the case");
  Members in(members["input"], "input"), want(members["expected"], "expected");
  const std::string name = Value<std::string>(in["op"]);
  for (const char* server : kServerOps)
    if (name == server) Unsupported("this build has no HTTP server");
  const CaseOp* op = FindOp(name);
  if (op == nullptr) Unsupported("operation \"" + name + "\"");
  op->run(in, want);
  for (const std::string& unread : {in.Unread(), want.Unread()})
    if (!unread.empty()) Unsupported(unread);
}

struct Sums {
  int pass = 0, fail = 0, unsupported = 0, bad = 0;
};

void RunFile(const std::string& path, Sums* sums) {
  std::string id = path;
  auto bad = [&](const std::string& text) {
    std::fprintf(stderr, "%s: %s\n", path.c_str(), text.c_str());
    ++sums->bad;
  };
  auto line = [&](const char* verdict, const std::string& reason) {
    std::printf("%s %s%s%s\n", id.c_str(), verdict, reason.empty() ? "" : ": ", reason.c_str());
  };
  const Result<std::string> text = ReadFile(path, uint64_t{1} << 30);
  if (!text.ok()) {
    std::fprintf(stderr, "%s\n", text.status().text().c_str());
    ++sums->bad;
    return;
  }
  try {
    const Json file = Json::parse(*text);
    Members members(file, "the case");
    id = Value<std::string>(members["id"]);
    RunCase(file);
    ++sums->pass;
    line("pass", "");
  } catch (const CaseFailed& failed) {
    ++sums->fail;
    line("fail", failed.why);
  } catch (const CaseUnsupported& unsupported) {
    ++sums->unsupported;
    line("unsupported", unsupported.what);
  } catch (const CaseMalformed& malformed) {
    bad("not a case: " + malformed.text);
  } catch (const Json::parse_error& error) {
    bad("not JSON, from byte " + std::to_string(error.byte) + " on");
  } catch (const std::exception& error) {
    bad(std::string("not a case: ") + error.what());
  }
}

int Main(const std::vector<std::string>& paths) {
  Sums sums;
  for (const std::string& path : paths) {
    if (!IsFolder(path)) {
      RunFile(path, &sums);
      continue;
    }
    const auto names = ListFolder(path);
    if (!names.ok()) {
      std::fprintf(stderr, "%s\n", names.status().text().c_str());
      ++sums.bad;
      continue;
    }
    int found = 0;
    for (const std::string& name : *names)
      if (name.ends_with(".json")) ++found, RunFile(JoinPath(path, name), &sums);
    if (found == 0) {
      std::fprintf(stderr, "%s: no *.json in this folder\n", path.c_str());
      ++sums.bad;
    }
  }
  std::printf("%d passed, %d failed, %d unsupported, %d unreadable\n", sums.pass, sums.fail, sums.unsupported,
              sums.bad);
  return sums.bad > 0 ? 2 : sums.fail > 0 ? 1 : 0;
}

}  // namespace
}  // namespace samebits

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: case_runner PATH...   (case files or folders of them)\n");
    return 2;
  }
  return samebits::Main(std::vector<std::string>(argv + 1, argv + argc));
}
