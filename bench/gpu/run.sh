#!/bin/sh
# GPU benchmarks: builds the plugin, times it beside torch in one process where torch can be imported.
#   bench/gpu/run.sh [build folder] [options of topk_bench.py, e.g. --sweep]
cd "$(dirname "$0")/../.." || exit 2
build=build/gpu
case ${1:-} in '' | -*) ;; *) build=$1 && shift ;; esac
mkdir -p "$build"
PATH=$PATH:/usr/local/cuda/bin
generator=
command -v ninja > /dev/null && generator='-G Ninja'
if ! { cmake -S tests/gpu -B "$build" $generator -DSB_CUDA_ARCHS="${SB_CUDA_ARCHS:-80;90a;100;120}" && cmake --build "$build" -j "${JOBS:-$(nproc)}" --target samebits_cuda; } > "$build/bench-build.log" 2>&1; then
  tail -30 "$build/bench-build.log"
  exit 1
fi
if ! python3 -c 'import torch; assert torch.cuda.is_available()' 2> /dev/null; then
  echo "The GPU benchmarks need Python with torch and a CUDA device; neither was found by: $(command -v python3)"
  exit 2
fi
python3 bench/gpu/gemm_bench.py "$build/samebits_cuda.so" || exit 1
exec python3 bench/gpu/topk_bench.py "$build/samebits_cuda.so" "$@"
