// samebits manifest: op -> kernel -> plan -> contract -> proof, for this machine; exit 1 if anything is unproven.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/strings.h"
#include "cli/cli_options.h"
#include "cli/cli_verbs.h"
#include "model/config.h"
#include "model/model.h"
#include "prove/start_up_check.h"

namespace samebits {

int Verb_manifest(int argc, char** argv) {
  CLI::App app(
      "Which kernel serves each op here, by which plan, and how that is proven: runs the start-up self-test and prints "
      "it.\n"
      "Exit code 0: everything proven; 1: an op is not, and start-up would be refused; 2: trouble.",
      "samebits manifest");
  std::string folder, profile_name = "deepseek";
  bool json = false, hashes = false;
  CpuOptions cpu;
  app.add_option("model", folder, "checkpoint folder (optional): its config is read and named");
  app.add_option("--profile", profile_name, "deepseek or float32");
  app.add_flag("--json", json, "one JSON object");
  app.add_flag("--hashes", hashes, "print the table of src/prove/start_up_check.hashes.h instead");
  cpu.Add(&app);
  app.footer(
      "Examples:\n  samebits manifest\n  samebits manifest models/tiny-v32 --json\n  samebits manifest --isa avx2 "
      "--threads 1");
  if (const int code = ParseVerb(&app, "manifest", argc, argv); code >= 0) return code;
  const Result<CpuEnvironment> environment = cpu.Open();
  if (!environment.ok()) return Trouble("manifest", environment.status().text());
  const Result<const Profile*> profile = ProfileFromName(profile_name);
  if (!profile.ok()) return Trouble("manifest", profile.status().text());
  if (!folder.empty()) {
    const std::string path = JoinPath(folder, "config.json");
    const Result<std::string> text = ReadFile(path);
    if (!text.ok()) return Trouble("manifest", text.status().text());
    const Result<ModelConfig> config = ParseModelConfig(*text, path);
    if (!config.ok()) return Trouble("manifest", config.status().text());
  }

  const std::vector<ManifestRow> rows = RunSelfTest(environment->context());
  bool proven = true;
  for (const ManifestRow& row : rows) proven &= row.proven();
  const std::string contract = ContractId(**profile), stamp = NumericsStamp(contract);
  if (hashes) {
    for (const ManifestRow& row : rows)
      std::printf("    {\"%s\", 0x%016llxu},\n", row.op.c_str(), static_cast<unsigned long long>(row.hash));
    return kExitSame;
  }
  if (json) {
    nlohmann::ordered_json j = {{"contract", contract}, {"stamp", stamp}, {"model", folder}, {"proven", proven}};
    for (const ManifestRow& row : rows)
      j["ops"].push_back({{"op", row.op},
                          {"kernel", row.kernel},
                          {"plan", row.plan},
                          {"test", row.test},
                          {"hash", Format("%016llx", static_cast<unsigned long long>(row.hash))},
                          {"expected", Format("%016llx", static_cast<unsigned long long>(row.expected))},
                          {"proven", row.proven()},
                          {"error", row.error}});
    std::printf("%s\n", j.dump(1).c_str());
  } else {
    std::printf("contract  %s\nstamp     %s\n", contract.c_str(), stamp.c_str());
    if (!folder.empty()) std::printf("model     %s\n", folder.c_str());
    std::printf("\n%-14s %-11s %-50s %-17s %-16s %s\n", "op", "kernel", "plan", "test", "self-test", "proof");
    for (const ManifestRow& row : rows)
      std::printf("%-14s %-11s %-50s %-17s %016llx %s\n", row.op.c_str(), row.kernel.c_str(), row.plan.c_str(),
                  row.test.c_str(), static_cast<unsigned long long>(row.hash),
                  row.proven() ? "proven" : (row.error.empty() ? "UNPROVEN: other hash" : row.error.c_str()));
    std::printf("\n%s\n", proven ? "every op is proven here" : "NOT proven: start-up would be refused");
  }
  return proven ? kExitSame : kExitDiffer;
}

}  // namespace samebits
