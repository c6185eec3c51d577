// The verbs of the program: one table that the parser, --help and the docs are generated from. Verb x is verb_x.cc.
#pragma once

#include <string>
#include <vector>

namespace samebits {

// Exit codes of every verb.
inline constexpr int kExitSame = 0;     // done; for comparisons: same
inline constexpr int kExitDiffer = 1;   // for comparisons: differ
inline constexpr int kExitTrouble = 2;  // bad input or an error; a sentence is on stderr

struct Verb {
  const char* name;
  const char* text;                   // one line of --help
  int (*run)(int argc, char** argv);  // argv[0] is the verb
};

// In the order of --help.
const std::vector<Verb>& Verbs();
// Prints "samebits VERB: sentence" to stderr and returns kExitTrouble.
int Trouble(const std::string& verb, const std::string& sentence);

}  // namespace samebits
