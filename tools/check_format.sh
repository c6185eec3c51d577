#!/usr/bin/env bash
# Fails if a C++ or CUDA file is not formatted; names the files. `make format` formats them.
set -euo pipefail
cd "$(dirname "$0")/.."
bad=$(git ls-files -z 'src/*.cc' 'src/*.h' 'src/*.cu' 'src/*.cuh' 'tests/*.cc' 'tests/*.h' 'bench/*.cc' |
  xargs -0 -r -n 40 clang-format-19 --dry-run 2>&1 | grep -oE '^[^ :]+:[0-9]+' | cut -d: -f1 | sort -u || true)
if [ -n "$bad" ]; then echo "not formatted (make format):"; echo "$bad"; exit 1; fi
echo "format: ok"
