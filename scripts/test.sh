#!/usr/bin/env bash
# Installs what is needed, builds Chainfold and runs its tests; the last line counts them.
#
# usage: scripts/test.sh [--quick] [--tidy] [--skip-setup]
#   --quick       only the format, the rooms, the release build and its tests
#   --tidy        clang-tidy over every source file as well (slow)
#   --skip-setup  install nothing
# Stages: clang-format; who includes whom (scripts/rooms.py); release build by GCC with -Werror and all
# tests; the same by clang with address and undefined-behaviour sanitizers over the unit, interp, error and
# compile-fail tests; the thread sanitizer over the concurrent ones; every public header alone. Needs no
# GPU: tests that need one say why they did not run.
# The exit status is 0 only if nothing failed.

# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/lib.sh"

quick=no tidy=no setup=yes
for argument in "$@"; do
  case $argument in
    --quick) quick=yes ;;
    --tidy) tidy=yes ;;
    --skip-setup) setup=no ;;
    -h | --help) usage && exit 0 ;;
    *) die "unknown option $argument (see --help)" ;;
  esac
done

jobs="$(nproc)"
results="$ROOT/build/results"
rm -rf "$results"
mkdir -p "$results"

# A stage that is not a ctest run counts as one test: check NAME COMMAND...
check() {
  local name=$1 start=$SECONDS
  shift
  say "$name"
  if "$@"; then
    echo passed >"$results/$name.check"
    say "$name: passed ($((SECONDS - start)) s)"
  else
    echo failed >"$results/$name.check"
    say "$name: FAILED ($((SECONDS - start)) s)"
    return 1
  fi
}

configure_and_build() {
  local preset=$1 options=(-DCHAINFOLD_WERROR=ON)
  shift
  # CUB is for those who measure, and takes nvcc minutes.
  [[ $preset != release ]] || options+=(-DCHAINFOLD_BENCH_CUB=OFF)
  cmake --preset "$preset" --log-level=WARNING -B "build/$build" "${options[@]}" >/dev/null &&
    cmake --build "build/$build" "$@"
}

# run_ctest NAME ARGUMENTS...: tests of build/NAME; their counts come from the JUnit report.
run_ctest() {
  local name=$1
  shift
  say "$name: tests"
  "${wrap[@]}" ctest --test-dir "build/$name" --parallel "$jobs" --output-on-failure --no-tests=error \
    --output-junit "$results/$name.xml" "$@" || true
  [[ -s $results/$name.xml ]] || echo failed >"$results/$name-ctest.check"
}

# Binaries of the kinds in which some test matches a pattern: test_binaries PATTERN KIND...
test_binaries() {
  local pattern=$1 kind
  shift
  for kind in "$@"; do
    if grep -rqsE "$pattern" "tests/$kind" --include='*_test.cpp'; then echo "chainfold_${kind}_tests"; fi
  done
}

with_sanitizers() {
  local targets
  # Older run-times take a block of thread-local memory that happens to lie 16 bytes behind a page for one
  # with a header of old C libraries, and their leak check then dies of what it reads there; current C
  # libraries need no such guess. Few frames of who allocated: a test that fails can be run with more.
  export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1:intercept_tls_get_addr=0
  export ASAN_OPTIONS=$ASAN_OPTIONS:malloc_context_size=5
  export UBSAN_OPTIONS=print_stacktrace=1
  export TSAN_OPTIONS="halt_on_error=1:suppressions=$ROOT/tests/tsan.supp"
  mapfile -t targets < <(test_binaries '^TEST' unit interp error)
  build="asan"
  if check build-asan configure_and_build asan --target chainfold chainfold_cpu "${targets[@]}"; then
    run_ctest asan -L '^(unit|interp|error|compile_fail)'
  fi
  # The thread sanitizer's memory map does not fit the address randomisation of some kernels.
  if setarch -R true 2>/dev/null; then wrap=(setarch -R); fi
  mapfile -t targets < <(test_binaries '^TEST.*Concurrent' unit interp error)
  build="tsan"
  if check build-tsan configure_and_build tsan --target chainfold chainfold_cpu "${targets[@]}"; then
    run_ctest tsan -L 'tsan$'
  fi
  wrap=()
}

# Every public header alone, so that the order of includes never matters.
headers_stand_alone() {
  local probes=build/headers header
  rm -rf "$probes"
  mkdir -p "$probes"
  for header in chainfold.hpp $(find dsl codegen runtime -name '*.hpp' -not -path '*/cpu_plugin/*'); do
    printf '#include "chainfold/%s"\n' "$header" >"$probes/${header//\//.}.cpp"
  done
  printf '%s\n' "$probes"/*.cpp | xargs -P "$jobs" -n 1 clang++ -std=c++20 -fsyntax-only -Wall -Wextra \
    -Wpedantic -Werror -I build/asan/include
}

source_files() {
  find chainfold.hpp dsl codegen runtime tests examples bench tools -name '*.[ch]pp' -o -name '*.h' -o -name '*.cuh'
}

format_is_right() { source_files | xargs clang-format-19 --dry-run -Werror; }

tidy_is_quiet() {
  local build=clang  # never built: only what tells how each file is
  configure_and_build clang --target generated/chainfold_prelude.inc &&
    run-clang-tidy-19 -quiet -j "$jobs" -p build/clang "$ROOT/(dsl|codegen|runtime)/.*\.cpp"
}

[[ $setup == no ]] || scripts/setup.sh
use_wheel_nvrtc
wrap=()

check format format_is_right || true
check rooms python3 scripts/rooms.py || true
check tuned-values python3 scripts/tuned_values.py || true
build="test"
if check build-release configure_and_build release; then run_ctest test; fi
if [[ $quick == no ]]; then
  with_sanitizers
  check headers headers_stand_alone || true
  [[ $tidy == no ]] || check tidy tidy_is_quiet || true
fi

say "finished"
python3 scripts/test_summary.py "$results"
