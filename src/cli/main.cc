#include <cstdio>
#include <cstring>
#include <string>

#include "cli/cli_verbs.h"

namespace samebits {

int Trouble(const std::string& verb, const std::string& sentence) {
  std::fflush(stdout);
  std::fprintf(stderr, "samebits %s: %s\n", verb.c_str(), sentence.c_str());
  return kExitTrouble;
}

static int Help(FILE* to) {
  std::fputs(
      "samebits: same request, same bits. A deterministic inference engine, and the tool that finds where two runs "
      "part.\n\n"
      "usage: samebits VERB [options]     samebits VERB --help shows a verb's options and examples\n\n",
      to);
  for (const Verb& verb : Verbs()) std::fprintf(to, "  %-10s %s\n", verb.name, verb.text);
  std::fputs("\nExit codes: 0 done or same, 1 differ, 2 trouble (a sentence on stderr says what and what to do).\n",
             to);
  return to == stdout ? kExitSame : kExitTrouble;
}

}  // namespace samebits

int main(int argc, char** argv) {
  using namespace samebits;
  if (argc < 2) return Help(stderr);
  const std::string name = argv[1];
  if (name == "--help" || name == "-h" || name == "help") return Help(stdout);
  if (name == "--version") return std::puts("samebits 0.1.0"), kExitSame;
  for (const Verb& verb : Verbs())
    if (name == verb.name) return verb.run(argc - 1, argv + 1);
  return Trouble(name, "there is no such verb; samebits --help lists them");
}
