#include "cli/cli_options.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/cli_verbs.h"

namespace samebits {

int ParseVerb(CLI::App* app, const std::string& verb, int argc, char** argv) {
  try {
    app->parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::printf("%s", app->help().c_str());
    return kExitSame;
  } catch (const CLI::ParseError& error) {
    return Trouble(verb, std::string(error.what()) + " (samebits " + verb + " --help shows the options)");
  }
  return -1;
}

void CpuOptions::Add(CLI::App* app) {
  app->add_option("--threads", threads, "worker threads (default: all hardware threads)")->check(CLI::Range(1, 4096));
  app->add_option("--isa", isa, "instruction set: scalar, avx2, avx512, neon (default: the best this machine has)");
}

Result<CpuEnvironment> CpuOptions::Open() const {
  CpuEnvironment environment;
  environment.isa = BestIsa();
  if (!isa.empty()) {
    bool found = false;
    std::string have;
    for (const Isa candidate : AvailableIsas()) {
      have += std::string(have.empty() ? "" : ", ") + IsaName(candidate);
      if (isa == IsaName(candidate)) environment.isa = candidate, found = true;
    }
    if (!found) return Error("--isa " + isa + ": this machine and build have " + have);
  }
  environment.pool = std::make_unique<ThreadPool>(threads > 0 ? threads : ThreadPool::HardwareThreads());
  return environment;
}

}  // namespace samebits
