#!/usr/bin/env bash
# Checks Chainfold on a machine with a GPU, from a folder that scripts/gpu-pack.sh made elsewhere.
#
# usage: scripts/gpu-check.sh [--seconds N] [--stages LIST] [BUILD_DIR] [OUT_DIR]
#   --seconds N    be done after N seconds (default 540): what does not fit any more is not run
#   --stages LIST  some of the stages below: "tests large", "racecheck"
#   BUILD_DIR      holds bin/ and lib/ (default build/gpu)
#   OUT_DIR        gets summary.txt, machine.txt, failures.txt, logs.tar.gz and the benchmark's first.json
#                  and first.txt (default build/gpu-results)
# Stages: tests, the GPU tests but those of suites called GpuLarge; large, those, one at a time; memcheck,
# racecheck, initcheck and synccheck, compute-sanitizer over those called GpuSmall; bench, the first
# benchmark. Every test is a process of its own under a time limit, so that one whose blocks wait for
# each other for ever, or which crashes, costs nothing but itself; the summary names it. A stage that
# fails stops no other. Nothing is built or installed. The exit status is 0 only if every stage passed; a
# stage that could not run (no device, no sanitizer, one that refuses the device, no time) has not passed.

# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/lib.sh"

seconds=540 stages="tests large memcheck racecheck initcheck synccheck bench"
paths=()
while (($#)); do
  case $1 in
    --seconds) seconds="${2:-}" && shift ;;
    --stages) stages="${2:-}" && shift ;;
    -h | --help) usage && exit 0 ;;
    -*) die "unknown option $1 (see --help)" ;;
    *) paths+=("$1") ;;
  esac
  shift
done
[[ $seconds =~ ^[0-9]+$ ]] || die "--seconds needs a number of seconds, not '$seconds'"
for stage in $stages; do
  case $stage in
    tests | large | memcheck | racecheck | initcheck | synccheck | bench) ;;
    *) die "there is no stage '$stage' (see --help)" ;;
  esac
done
build="${paths[0]:-build/gpu}"
out="${paths[1]:-build/gpu-results}"
[[ -d $build/bin ]] || die "$build/bin is missing; make it with scripts/gpu-pack.sh and carry it here"
[[ -x $build/bin/chainfold_gpu_tests ]] || die "$build/bin/chainfold_gpu_tests is missing; build that target and pack again"
mkdir -p "$out"
TESTS="$(realpath "$build/bin/chainfold_gpu_tests")"
bench="$build/bin/chainfold_bench"
WORK="$(mktemp -d)"
DEADLINE=$((EPOCHSECONDS + seconds - 10))  # ten seconds for the end
export TESTS WORK
# What was packed, not what happens to be checked out here.
if [[ -z ${CHAINFOLD_COMMIT:-} && -s $build/commit ]]; then
  CHAINFOLD_COMMIT="$(<"$build/commit")"
  export CHAINFOLD_COMMIT
fi
export CHAINFOLD_CACHE_DIR=""  # what is compiled here is not found on a disk
summary=() failed=0

left() { echo $((DEADLINE - EPOCHSECONDS)); }

# What there is so far, where it is safe; as few files as can be.
publish() {
  printf '%s\n' "${summary[@]}" >"$out/summary.txt"
  tar -C "$WORK" -czf "$WORK.tar.gz" . 2>/dev/null && mv "$WORK.tar.gz" "$out/logs.tar.gz"
  cat "$WORK"/*/failures.txt 2>/dev/null | head -c 1000000 >"$out/failures.txt" || true
}
finish() {
  publish
  rm -rf "$WORK" "$WORK.tar.gz"
  say "summary"
  cat "$out/summary.txt"
}
trap finish EXIT
trap 'exit 143' INT TERM

# verdict STAGE passed|FAILED|"NOT RUN" DETAIL
verdict() {
  summary+=("$(printf '%-10s %-8s %s' "$1" "$2" "$3")")
  say "$1: $2 ($3)"
  [[ $2 == passed ]] || failed=1
  publish
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

# The names of the tests that a filter selects, one a line.
names_of() {
  timeout 60 "$TESTS" --gtest_list_tests --gtest_filter="$1" |
    awk '/^[^ ].*\.( |$)/ {suite = $1; next} /^  / {print suite $1}'
}

# one_test STAGE LIMIT CLEAN NAME [SANITIZER...]: runs a test by itself and writes its verdict, a word and
# the name, into a file of its own. CLEAN is what a sanitizer must have said.
one_test() {
  local stage=$1 limit=$2 clean=$3 name=$4 status=0 cut=0 left log word
  shift 4
  left=$((STAGE_END - EPOCHSECONDS))
  log="$WORK/$stage/${name//\//_}.log"
  if ((left < 5)); then
    word="no-time"
    : >"$log"
  else
    ((left < limit)) && cut=1 limit=$left
    timeout -k 10 "$limit" "$@" "$TESTS" --gtest_filter="$name" >"$log" 2>&1 || status=$?
    if [[ $status == 124 || $status == 137 ]]; then
      word="HANGS"
      ((cut)) && word="no-time"  # the stage ended, not the test's own time
    elif grep -qi 'device not supported' "$log"; then
      word="no-sanitizer"
    elif [[ $status != 0 ]]; then
      word="FAILED"
    elif grep -q '^\[  SKIPPED \]' "$log"; then
      word="skipped"
    elif [[ -n $clean ]] && ! grep -q "$clean" "$log"; then
      word="no-sanitizer"
    elif ! grep -q '^\[       OK \]' "$log"; then
      word="FAILED"
      echo "it ended without a word" >>"$log"
    else
      word="ok"
    fi
  fi
  printf '%s %s\n' "$word" "$name" >"$log.verdict"
  case $word in
    HANGS | FAILED)
      printf '\n=== %s: %s %s (status %s, limit %s s)\n' "$stage" "$name" "$word" "$status" "$limit" | tee -a "$log.tail"
      grep -v '^Note: ' "$log" | tail -n 40 | cut -c1-400 >>"$log.tail"
      ;;
  esac
}
export -f one_test

# run_tests STAGE SHARE FILTER LIMIT PROCESSES CLEAN [SANITIZER...]: in SHARE per cent of all the time at most,
# so that something is left for the stages behind it, where there are others.
run_tests() {
  local stage=$1 share=$2 filter=$3 limit=$4 processes=$5 clean=$6 began=$SECONDS words ran
  shift 6
  [[ $stages != "$stage" ]] || share=100
  STAGE_END=$((EPOCHSECONDS + seconds * share / 100))
  ((STAGE_END < DEADLINE)) || STAGE_END=$DEADLINE
  export STAGE_END
  mkdir -p "$WORK/$stage"
  if (($(left) < 15)); then
    verdict "$stage" "NOT RUN" "no time is left"
    return
  fi
  if ! names_of "$filter" >"$WORK/$stage/names" 2>"$WORK/$stage/list.log" || [[ ! -s $WORK/$stage/names ]]; then
    verdict "$stage" "NOT RUN" "the tests could not be listed: $(head -c 200 "$WORK/$stage/list.log")"
    return
  fi
  # Most of a test's time goes to compiling on the host: several processes share the device.
  xargs -P "$processes" -I '{}' bash -c 'one_test "$@"' _ "$stage" "$limit" "$clean" '{}' "$@" <"$WORK/$stage/names" || true
  cat "$WORK/$stage"/*.tail >"$WORK/$stage/failures.txt" 2>/dev/null || true
  cat "$WORK/$stage"/*.verdict | sort >"$WORK/$stage/verdicts"
  many() { grep -c "^$1 " "$WORK/$stage/verdicts" || true; }
  named() { awk -v word="$1" '$1 == word {print $2}' "$WORK/$stage/verdicts" | head -n 12 | paste -sd' '; }
  ran="$(many ok)"
  words="$ran of $(wc -l <"$WORK/$stage/names") tests, $(many skipped) skipped, $((SECONDS - began)) s"
  if (($(many HANGS) + $(many FAILED) > 0)); then
    verdict "$stage" FAILED "$words; FAILED: $(named FAILED); HANGS: $(named HANGS)"
  elif (($(many no-time) > 0)); then
    verdict "$stage" "NOT RUN" "$words; no time for $(many no-time), such as $(named no-time)"
  elif (($(many no-sanitizer) > 0)); then
    verdict "$stage" "NOT RUN" "$words; compute-sanitizer does not serve here, such as for $(named no-sanitizer)"
  elif ((ran == 0)); then
    verdict "$stage" "NOT RUN" "$words: $(grep -h -A1 'Skipped$' "$WORK/$stage"/*.log | grep -v Skipped | sort | uniq -c | sort -rn | head -n 1)"
  else
    verdict "$stage" passed "$words"
  fi
}

sanitize() {
  local tool=$1 sanitizer clean='ERROR SUMMARY: 0 errors'
  if ! sanitizer="$(find_sanitizer)"; then
    verdict "$tool" "NOT RUN" "compute-sanitizer is not on this machine"
    return
  fi
  # Failing driver calls are errors of our own types, and asking past a kernel's last parameter is one by
  # design: the sanitizer is here for what kernels access.
  local options=(--tool "$tool" --error-exitcode 9)
  [[ $tool == memcheck ]] && options+=(--report-api-errors no)
  [[ $tool == racecheck ]] && clean='RACECHECK SUMMARY: 0 hazards displayed'
  local tests='*GpuSmall*'
  # It does not see what copies out of shared memory store, and takes it for never written.
  [[ $tool == initcheck ]] && tests+=':-*_blocked_*'
  run_tests "$tool" 25 "$tests" 90 8 "$clean" "$sanitizer" "${options[@]}"
}

bench_first() {
  local status=0 limit
  limit="$(left)"
  mkdir -p "$WORK/bench"
  if [[ ! -x $bench ]]; then
    verdict bench "NOT RUN" "$bench is missing"
  elif ((limit < 20)); then
    verdict bench "NOT RUN" "no time is left"
  else
    ((limit > 120)) && limit=120
    timeout -k 10 "$limit" "$bench" --suite first --target gpu --out "$out/first.json" >"$out/first.txt" \
      2>"$WORK/bench/first.log" || status=$?
    if [[ $status == 0 ]]; then
      verdict bench passed "$out/first.json"
      cat "$out/first.txt"
    elif [[ $status == 124 || $status == 137 ]]; then
      verdict bench FAILED "did not end within $limit s"
    else
      verdict bench FAILED "exit status $status: $(tail -n 1 "$WORK/bench/first.log" | cut -c1-200)"
    fi
  fi
}

{
  date -u '+%Y-%m-%d %H:%M UTC'
  uname -srm
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null || echo "no nvidia-smi"
  find_sanitizer || echo "no compute-sanitizer"
} >"$out/machine.txt" 2>&1
say "machine: $(tr '\n' ';' <"$out/machine.txt")"

processes=$(($(nproc) < 12 ? $(nproc) : 12))
for stage in $stages; do
  case $stage in
    tests) run_tests tests 60 '-*GpuLarge*' 120 "$processes" "" ;;
    large) run_tests large 15 '*GpuLarge*' 60 1 "" ;;
    bench) bench_first ;;
    *) sanitize "$stage" ;;
  esac
done
exit "$failed"
