#include "cli/cli_verbs.h"

namespace samebits {

// One line per verb: declared by SB_VERB in the order of --help.
#if defined(SB_WITH_ENGINE)
#define SB_ENGINE_VERBS(V)                                                          \
  V(prove, "one request under every condition that must not change a bit")          \
  V(generate, "prompts in, text out, streaming")                                    \
  V(record, "run a request and keep what every site saw")                           \
  V(score, "logits and the values at any site for given token ids")                 \
  V(repro, "minimal reproducers: a naive kernel beside ours, one line a run")       \
  V(manifest, "op, kernel, plan, contract and proof on this machine; fails closed") \
  V(bench, "time prefill and decode of a model on this machine")
#else
#define SB_ENGINE_VERBS(V)
#endif
#define SB_FORENSICS_VERBS(V)                                              \
  V(inspect, "list the tensors of a file or checkpoint")                   \
  V(show, "list what a recording or tensor file holds")                    \
  V(diff, "compare two runs or files tensor by tensor, with every metric") \
  V(first, "find where two runs part: inputs the same, output not")        \
  V(explain, "say why they part, with evidence and what would refute it")  \
  V(plan, "what to record next, also for other engines' dumpers")          \
  V(import, "bring another engine's dump into a recording")                \
  V(export, "write a recording's data as one safetensors file per tensor")

#define SB_DECLARE(name, text) int Verb_##name(int argc, char** argv);
SB_ENGINE_VERBS(SB_DECLARE)
SB_FORENSICS_VERBS(SB_DECLARE)

const std::vector<Verb>& Verbs() {
#define SB_ROW(name, text) {#name, text, Verb_##name},
  static const std::vector<Verb> kVerbs = {SB_ENGINE_VERBS(SB_ROW) SB_FORENSICS_VERBS(SB_ROW)};
  return kVerbs;
}

}  // namespace samebits
