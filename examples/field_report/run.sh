#!/bin/sh
# The story of the field report on the tiny model: two runs of one request that part, told by the tool step by step.
#   examples/field_report/run.sh [PROGRAM [MODEL]]
# Each pair of runs is of an engine that lacks one rule; the last pair is of ours.
set -u
here=$(cd "$(dirname "$0")" && pwd)
program=${1:-$here/../../build/cpu/samebits}
model=${2:-$here/../../models/tiny-v32}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2

# 160 token ids; what they say does not matter, that there are more of them than the index list holds (64) does.
ids=$(awk 'BEGIN { s = 7; for (i = 0; i < 160; ++i) { s = (s * 1103515245 + 12345) % 2147483648; printf "%s%d", i ? "," : "", 3 + s % 390 } }')

record() { # NAME [OPTIONS]
  name=$1
  shift
  "$program" record "$model" --ids "$ids" --max-tokens 0 --level full --out "$name" "$@" > /dev/null || exit 2
}
say() { printf '\n== %s\n' "$1"; }
tell() { # VERB A B [LINES]: what it prints, and its exit code
  printf '$ samebits %s %s %s\n' "$1" "$2" "$3"
  "$program" "$1" "$2" "$3" -q > out.txt
  code=$?
  head -n "${4:-12}" out.txt
  printf 'exit code %d\n' "$code"
}

say "1. An engine that hands the top-k list to an online softmax as it was selected"
record unsorted-1 --break index-order --break-seed 1
record unsorted-2 --break index-order --break-seed 2
tell first unsorted-1 unsorted-2 6
tell explain unsorted-1 unsorted-2 8

say "2. The list is sorted now, but which of the equal scores at the boundary is taken is left open"
record unstable-1 --break topk-set-sorted-late --break-seed 1
record unstable-2 --break topk-set-sorted-late --break-seed 2
tell first unstable-1 unstable-2 6
tell explain unstable-1 unstable-2 14

say "3. A stable selection and a sorted list: the rules of this program"
record ours-1
record ours-2
tell first ours-1 ours-2
tell explain ours-1 ours-2
