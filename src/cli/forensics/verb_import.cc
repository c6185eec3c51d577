#include <CLI/CLI.hpp>

#include "base/strings.h"
#include "cli/cli_options.h"
#include "cli/cli_verbs.h"
#include "cli/forensics/forensics_options.h"
#include "forensics/import/import_dump.h"

namespace samebits {
namespace {

Result<int> Copy(const std::string& from, const std::string& to, const std::string& level, bool import) {
  SB_ASSIGN(const auto source, TensorSource::Open(from));
  ImportCounts counts;
  if (import) {
    const auto wanted = TraceLevelFromName(level);
    if (!wanted) return Error("--level " + level + ": there are digest, stats and full");
    SB_ASSIGN(counts, ImportDump(*source, to, *wanted));
  } else {
    SB_ASSIGN(counts, ExportRecording(*source, to));
  }
  Print(Format("%lld tensors, %s; %lld without whole data skipped\n", static_cast<long long>(counts.tensors),
               HumanBytes(counts.bytes).c_str(), static_cast<long long>(counts.skipped)));
  return kExitSame;
}

int Run(int argc, char** argv, const char* verb, const char* text, bool import) {
  CLI::App app(text);
  std::string from, to, level = "full";
  app.add_option("FROM", from, import ? "a tensor file, or a folder of them" : "a recording")->required();
  app.add_option("TO", to, import ? "folder of the new recording" : "folder for the files")->required();
  if (import) app.add_option("--level", level, "digest, stats or full (default)");
  const int parsed = ParseVerb(&app, verb, argc, argv);
  if (parsed >= 0) return parsed;
  const Result<int> code = Copy(from, to, level, import);
  return code.ok() ? *code : Trouble(verb, code.status().text());
}

}  // namespace

int Verb_import(int argc, char** argv) {
  return Run(
      argc, argv, "import",
      "Bring another engine's dump into a recording: safetensors, .npy, .npz and .pt files, SGLang's dumper names "
      "(step=..___rank=..___name=..___layer_id=..) and the classic debug_NAME_file_LAYER_tpRANK files.\n"
      "  samebits import /tmp/dumper/exp1 runA",
      true);
}

int Verb_export(int argc, char** argv) {
  return Run(argc, argv, "export",
             "Write a recording's data as one safetensors file per tensor, debug_SITE_file_LAYER_tpRANK.safetensors.\n"
             "  samebits export runA files",
             false);
}

}  // namespace samebits
