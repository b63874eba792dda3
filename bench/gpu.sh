#!/usr/bin/env bash
# Everything that is measured on a machine with a GPU, in steps that end by themselves and go on in the
# next call, from a folder that scripts/gpu-pack.sh made elsewhere.
#
# usage: bench/gpu.sh [--seconds N] [--stall N] BUILD_DIR OUT_DIR STEP [ARGUMENTS]
#   --seconds N  of the step, its end included (default 540)
#   --stall N    a case that says nothing for N seconds hangs: it is ended and left out (default 120)
#   BUILD_DIR    holds bin/, lib/ and commit (build/gpu)
#   OUT_DIR      gets a folder for each step, of six files at most; the same OUT_DIR goes on
#   STEP         check   tests, sanitizers and the first benchmark (scripts/gpu-check.sh)
#                reduce  the suite reduce: ours and CUB with energy, then all other ways
#                scan    the suite scan, likewise
#                papers  the papers' experiments (bench/papers.sh)
#                peers   torch, torch.compile and cuBLAS into the files of reduce and scan
#   ARGUMENTS    of chainfold_bench instead of --target=gpu, such as --target=cpu --elements=1048576
# The exit status is 0 only if nothing went wrong; what a budget left over is not wrong.

# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/../scripts/lib.sh"

seconds=540 stall=120
while [[ ${1:-} == -* ]]; do
  case $1 in
    --seconds) seconds="${2:-}" && shift ;;
    --stall) stall="${2:-}" && shift ;;
    -h | --help) usage && exit 0 ;;
    *) die "unknown option $1 (see --help)" ;;
  esac
  shift
done
[[ $seconds =~ ^[0-9]+$ && $stall =~ ^[0-9]+$ ]] || die "--seconds and --stall need a number of seconds"
(($# >= 3)) || die "BUILD_DIR, OUT_DIR and a step are needed (see --help)"
build="$1" out="$2/$3" all="$2" step="$3"
shift 3
more=("$@")
((${#more[@]})) || more=(--target=gpu)
bench="$build/bin/chainfold_bench"
[[ -x $bench ]] || die "$bench is missing; build the target chainfold_bench and run scripts/gpu-pack.sh"
if [[ -z ${CHAINFOLD_COMMIT:-} && -s $build/commit ]]; then
  CHAINFOLD_COMMIT="$(<"$build/commit")"
  export CHAINFOLD_COMMIT
fi
left() { echo $((seconds - SECONDS)); }

# A program that does not work at all, for want of a device say, is told apart from one that fails somewhere.
probe() {
  local said
  said="$(timeout 60 "$bench" --suite reduce "${more[@]}" --only '^sum/f16/64$' --impl 'chainfold chosen' 2>&1)" ||
    die "$bench does not run here: $(head -n 1 <<<"$said")"
}

# measure SUITE PART OPTIONS...: runs chainfold_bench until it is done or the step's time is nearly over. A
# case that hangs is ended, named and left out.
measure() {
  local suite=$1 part=$2 log="$out/$1-$2.txt" hangs="" pid status code name options
  shift 2
  : >"$log"
  while (($(left) > 15)); do
    options=("$@" --suite "$suite" --out "$out/$suite.json" --resume-dirty --budget $(($(left) - 12)) "${more[@]}")
    [[ -z $hangs ]] || options+=(--only "^(?!($hangs)$)")
    "$bench" "${options[@]}" >>"$log" 2>&1 &
    pid=$! status=running
    while kill -0 "$pid" 2>/dev/null; do
      sleep 1
      if (($(left) < 5)); then
        status=late
        break
      elif ((EPOCHSECONDS - $(stat -c %Y "$log") > stall)); then
        status=hangs
        break
      fi
    done
    if [[ $status != running ]]; then
      kill -TERM "$pid" 2>/dev/null || true
      sleep 1
      kill -KILL "$pid" 2>/dev/null || true
    fi
    code=0
    wait "$pid" 2>/dev/null || code=$?
    [[ $code != 0 ]] || status=complete
    name="$(sed -n 's/^\[[0-9]*\/[0-9]*\] \([^,]*\),.*/\1/p' "$log" | tail -n 1)"
    case $status in
      complete) break ;;
      late)
        say "$suite, $part: $name was under way when time was up; the same call goes on" | tee -a "$log"
        break
        ;;
      hangs)
        say "$suite, $part: $name HANGS and is left out" | tee -a "$log"
        wrong=1
        [[ -n $name ]] || break
        hangs+="${hangs:+|}$(sed 's/[^A-Za-z0-9_/]/\\&/g' <<<"$name")"
        ;;
      running)  # ended by itself
        say "$suite, $part: exit status $code, the last case was $name; see $log"
        wrong=1
        break
        ;;
    esac
  done
  say "$suite, $part: $(grep -E 'rows measured|cases are left' "$log" | tail -n 2 | paste -sd' ' || true)"
  grep -hE '^(WRONG|LOST)|HANGS|error:' "$log" | sort -u | head -n 40 || true
}

# Rows are added to the files where they are; copies of them are this step's results. What torch does at
# once comes first: torch.compile takes seconds a case.
peers() {
  local impl file turns=4 share status
  python3 -c 'import torch' 2>/dev/null || die "$(command -v python3 || echo python3) has no torch"
  for impl in '^(?!torch.compile)' '^torch.compile'; do
    for file in reduce scan; do
      share=$((($(left) - 15) / turns--))
      if [[ ! -s $all/$file/$file.json ]]; then
        say "$all/$file/$file.json is missing: run the step $file first"
        wrong=1
        continue
      fi
      ((share > 10)) || continue
      status=0
      timeout -k 5 $((share + 10)) python3 -u bench/peers.py "$all/$file/$file.json" --impl "$impl" \
        --budget "$share" >"$out/log" 2>&1 || status=$?
      cp "$all/$file/$file.json" "$out/$file.json"
      cat "$out/log" >>"$out/$file.txt"
      say "peers of $file, $impl: $(grep -c 'of the ceiling' "$out/log" || true) rows, $(grep -c 'missing:' "$out/log" || true) missing"
      grep -hE 'cases are left|missing: ' "$out/log" | cut -c1-160 | sort -u | head -n 8 || true
      if [[ $status != 0 ]]; then
        say "peers of $file, $impl: exit status $status"
        tail -n 3 "$out/log"
        wrong=1
      fi
    done
  done
  rm -f "$out/log"
}

wrong=0
case $step in
  check | reduce | scan | papers | peers) mkdir -p "$out" ;;
  *) die "there is no step '$step' (see --help)" ;;
esac
case $step in
  check) scripts/gpu-check.sh --seconds "$seconds" "$build" "$out" || wrong=1 ;;
  reduce)
    probe
    measure reduce first --impl 'chainfold chosen|cub$' --energy '^sum/f16/(64|256|1024) (cub$|chainfold chosen)'
    measure reduce rest
    ;;
  scan)
    probe
    measure scan first --impl 'chainfold chosen|cub$|cub-keys' --energy '^scan/f16/whole (cub$|chainfold chosen)'
    measure scan rest
    ;;
  papers)
    probe
    measure papers all
    ;;
  peers) peers ;;
esac
if ((wrong)); then say "$step: something went wrong, see above"; fi
say "$step: results are in $out"
exit "$wrong"
