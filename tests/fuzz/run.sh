#!/usr/bin/env bash
# Runs every fuzz program of a build folder: tests/fuzz/run.sh build/fuzz [seconds for each, default 20].
# Inputs found so far are kept in BUILD/corpus. Exit 1 if one crashes, hangs or leaks; the input lies in BUILD/crash.
set -uo pipefail
build=$(realpath "${1:?build folder}")
seconds=${2:-20}
here=$(dirname "$(realpath "$0")")
failed=()
mkdir -p "$build/crash"
for program in "$build"/*_fuzz; do
  name=$(basename "$program" _fuzz)
  mkdir -p "$build/corpus/$name"
  seeds=()
  [ -d "$here/seeds/$name" ] && seeds=("$here/seeds/$name")
  case $name in safetensors | tensor_file) seeds+=("$here/../data") ;; esac
  if "$program" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=3000 -max_len=65536 \
    -artifact_prefix="$build/crash/$name-" "$build/corpus/$name" "${seeds[@]}" > "$build/$name-fuzz.log" 2>&1; then
    echo "$name: $(grep -E '^Done' "$build/$name-fuzz.log")"
  else
    echo "$name: FAILED"
    tail -30 "$build/$name-fuzz.log"
    failed+=("$name")
  fi
done
[ ${#failed[@]} -eq 0 ]
