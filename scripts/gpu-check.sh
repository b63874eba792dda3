#!/usr/bin/env bash
# Checks Chainfold on a machine with a GPU, from a folder that scripts/gpu-pack.sh made elsewhere.
#
# usage: scripts/gpu-check.sh [BUILD_DIR] [OUT_DIR]
#   BUILD_DIR  holds bin/ and lib/ (default build/gpu)
#   OUT_DIR    gets the logs and figures (default build/gpu-results)
# Stages: the GPU tests; compute-sanitizer's memcheck and racecheck over the tests named Small; the
# first benchmark. Nothing is built or installed. The exit status is 0 only if every stage passed; a
# stage that could not run (no device, no sanitizer, one that refuses the device, no benchmark) has not
# passed, and the summary says so.

# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/lib.sh"

case ${1:-} in -h | --help) usage && exit 0 ;; esac
build="${1:-build/gpu}"
out="${2:-build/gpu-results}"
[[ -d $build/bin ]] || die "$build/bin is missing; make it with scripts/gpu-pack.sh and carry it here"
mkdir -p "$out"
tests="$build/bin/chainfold_gpu_tests"
bench="$build/bin/chainfold_bench"
export CHAINFOLD_CACHE_DIR=""  # what is compiled here is not found on a disk
limit=280  # seconds a sanitizer run may take
summary=() failed=0

# verdict STAGE passed|FAILED|"NOT RUN" DETAIL
verdict() {
  summary+=("$(printf '%-10s %-8s %s' "$1" "$2" "$3")")
  say "$1: $2 ($3)"
  [[ $2 == passed ]] || failed=1
}

# How many lines of a file match.
count() { grep -c -- "$1" "$2" || true; }

# judge_tests STAGE LOG STATUS: passed if tests ran and none failed.
judge_tests() {
  local stage=$1 log=$2 status=$3 ran skipped
  ran="$(count '^\[       OK \]' "$log")"
  skipped="$(count '^\[  SKIPPED \].*ms)' "$log")"
  if [[ $status == 124 ]]; then
    verdict "$stage" FAILED "did not end within its time, $ran tests passed by then, see $log"
  elif [[ $status != 0 ]]; then
    verdict "$stage" FAILED "exit status $status, $(count '^\[  FAILED  \].*ms)' "$log") tests failed, see $log"
  elif ((ran == 0)); then
    verdict "$stage" "NOT RUN" "no test ran, $skipped were skipped, see $log"
  else
    verdict "$stage" passed "$ran tests, $skipped skipped"
  fi
}

find_sanitizer() {
  local file
  for file in "$(command -v compute-sanitizer || true)" "${CUDA_HOME:-/nonexistent}/bin/compute-sanitizer" \
    /usr/local/cuda*/bin/compute-sanitizer /opt/nvidia/*/compute-sanitizer/compute-sanitizer; do
    if [[ -n $file && -x $file ]]; then
      printf '%s\n' "$file"
      return 0
    fi
  done
  return 1
}

sanitize() {
  local tool=$1 log="$out/$1.txt" sanitizer status=0 clean
  if ! sanitizer="$(find_sanitizer)"; then
    verdict "$tool" "NOT RUN" "compute-sanitizer is not on this machine"
    return
  fi
  # Failing driver calls are errors of our own types, and asking past a kernel's last parameter is one by
  # design: the sanitizer is here for what kernels access.
  local options=(--tool "$tool" --error-exitcode 9)
  [[ $tool == memcheck ]] && options+=(--report-api-errors no)
  timeout "$limit" "$sanitizer" "${options[@]}" "$tests" --gtest_filter='*Small*' >"$log" 2>&1 ||
    status=$?
  if grep -qi 'device not supported' "$log"; then
    verdict "$tool" "NOT RUN" "compute-sanitizer does not support this device, see $log"
    return
  fi
  clean='ERROR SUMMARY: 0 errors'
  [[ $tool == racecheck ]] && clean='RACECHECK SUMMARY: 0 hazards displayed'
  if [[ $status == 0 ]] && ! grep -q "$clean" "$log"; then
    verdict "$tool" "NOT RUN" "the sanitizer printed no '$clean', see $log"
    return
  fi
  judge_tests "$tool" "$log" "$status"
}

{
  date -u '+%Y-%m-%d %H:%M UTC'
  uname -srm
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null || echo "no nvidia-smi"
  find_sanitizer || echo "no compute-sanitizer"
} >"$out/machine.txt" 2>&1
say "machine: $(tr '\n' ';' <"$out/machine.txt")"

# Most of a test's time goes to compiling on the host: several processes share the device.
shards=8 status=0 pids=()
for ((i = 0; i < shards; ++i)); do
  GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$i "$tests" >"$out/gpu_tests.$i" 2>&1 &
  pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid" || status=$?; done
cat "$out"/gpu_tests.[0-9] >"$out/gpu_tests.txt"
rm -f "$out"/gpu_tests.[0-9]
judge_tests gpu_tests "$out/gpu_tests.txt" "$status"
grep -E '^\[  (FAILED|SKIPPED)' "$out/gpu_tests.txt" | grep 'ms)' | head -40 || true

sanitize memcheck
sanitize racecheck

if [[ ! -x $bench ]]; then
  verdict bench "NOT RUN" "$bench is missing"
elif "$bench" --suite first --target gpu --out "$out/first.json" >"$out/first.txt" 2>"$out/first.log"; then
  verdict bench passed "$out/first.json"
  cat "$out/first.txt"
else
  verdict bench FAILED "exit status $?, see $out/first.log"
  tail -n 5 "$out/first.log"
fi

say "summary"
printf '%s\n' "${summary[@]}" | tee "$out/summary.txt"
exit "$failed"
