#!/usr/bin/env bash
# clang-tidy on the C++ files changed since BASE (default: the last 15 commits), as far as they are in the cpu build.
set -euo pipefail
cd "$(dirname "$0")/.."
base=${BASE:-$(git rev-list --max-count=15 HEAD | tail -1)}
files=$(git diff --name-only --diff-filter=d "$base" -- 'src/*.cc' | grep -vE '_(test|bench|simd)\.cc$' | head -"${MAX:-25}" || true)
[ -n "$files" ] || { echo "tidy: nothing changed"; exit 0; }
echo "$files" | xargs -P "$(nproc)" -n 3 clang-tidy-19 -p build/cpu --quiet --extra-arg=-Wno-unknown-warning-option --warnings-as-errors='*' 2>&1 |
  grep -vE '^[0-9]+ warnings? (generated|treated)|Suppressed|Use -header-filter' | tee build/tidy.log
if grep -qE '(warning|error):' build/tidy.log; then exit 1; fi
echo "tidy: ok ($(echo "$files" | wc -l) files)"
