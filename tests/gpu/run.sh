#!/bin/sh
# GPU contract tests: builds the plugin and the test programs, runs them, then memcheck and racecheck on small shapes where
# compute-sanitizer is installed. Prints a short table last; exit 1 if anything failed. Needs nvcc, CMake, a C++20 compiler.
#   tests/gpu/run.sh [build folder]
# SB_CUDA_ARCHS=90a builds for one architecture only; QUICK=1 leaves out the sweeps over all 2^32 inputs.
cd "$(dirname "$0")/../.." || exit 2
build=${1:-build/gpu}
logs=$build/logs
mkdir -p "$logs"
PATH=$PATH:/usr/local/cuda/bin
generator=
command -v ninja > /dev/null && generator='-G Ninja'
if ! { cmake -S tests/gpu -B "$build" $generator -DSB_CUDA_ARCHS="${SB_CUDA_ARCHS:-80;90a;100;120}" && cmake --build "$build" -j "${JOBS:-$(nproc)}"; } > "$logs/build.log" 2>&1; then
  tail -30 "$logs/build.log"
  echo "GPU build failed; the log is $logs/build.log"
  exit 1
fi
failed=0
table=
check() { # name, log, command...
  name=$1 log=$logs/$2.log
  shift 2
  if timeout 600 "$@" > "$log" 2>&1; then outcome=passed; else outcome=FAILED failed=1 && tail -20 "$log"; fi
  table="$table$(printf '%-34s %-7s %s' "$name" "$outcome" "$(grep -E 'checks|ERROR SUMMARY|RACECHECK SUMMARY' "$log" | tail -1 | sed 's/^=* *//')")
"
}
[ -n "${QUICK:-}" ] && table="gpu_numbers_test                   not run (QUICK)
" || check gpu_numbers_test gpu_numbers_test "$build/gpu_numbers_test"
for test in gpu_tensor_core_test gpu_ops_test gpu_topk_test gpu_gemm_hopper_test; do check "$test" "$test" "$build/$test"; done
if command -v compute-sanitizer > /dev/null; then
  for test in gpu_ops_test gpu_topk_test gpu_gemm_hopper_test; do
    check "$test --small, memcheck" "$test-memcheck" timeout 120 compute-sanitizer --error-exitcode 1 "$build/$test" --small
  done
  for test in gpu_ops_test; do
    check "$test --small, racecheck" "$test-racecheck" timeout 120 compute-sanitizer --tool racecheck --error-exitcode 1 "$build/$test" --small
  done
  table="${table}gpu_topk_test, racecheck           not run: it did not come to an end within 45 s, without clusters within 25 s
gpu_gemm_hopper_test, racecheck    not run: it did not come to an end within 30 s
"
else
  table="${table}compute-sanitizer is not installed: memcheck and racecheck not run
"
fi
printf '\n%s' "$table"
exit $failed
