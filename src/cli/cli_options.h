// Options that several verbs share, and the one way a verb parses its command line.
#pragma once

#include <memory>
#include <string>

#include "base/thread_pool.h"
#include "ops/op.h"

namespace CLI {
class App;
}

namespace samebits {

// Parses argv (argv[0] is the verb). -1: go on; otherwise the exit code: 0 after --help, 2 after an error, which is
// printed as "samebits VERB: sentence".
int ParseVerb(CLI::App* app, const std::string& verb, int argc, char** argv);

struct CpuEnvironment {
  std::unique_ptr<ThreadPool> pool;
  Isa isa;
  CpuContext context() const { return CpuContext{pool.get(), isa}; }
};

// --threads N and --isa NAME. Neither changes a bit.
struct CpuOptions {
  int threads = 0;  // 0: all hardware threads
  std::string isa;  // empty: the best available
  void Add(CLI::App* app);
  Result<CpuEnvironment> Open() const;
};

}  // namespace samebits
