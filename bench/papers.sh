#!/usr/bin/env bash
# The experiments of the papers on sums by tensor cores, once more (docs/papers.md), on this machine's GPU.
#
# usage: bench/papers.sh [BUILD_DIR] [OUT_DIR] [BUDGET [ARGUMENTS]]
#   BUILD_DIR  holds bin/chainfold_bench (default build/release)
#   OUT_DIR    gets papers.json, pictures and papers.md with the results filled in (default build/papers)
#   BUDGET     seconds to stop after (default 360); the same call goes on where the file ends
#   ARGUMENTS  of chainfold_bench instead of --target=gpu, such as --target=cpu --elements=4194304
# Pictures and page need Python 3 with matplotlib. Without them only papers.json is written; elsewhere,
#   python3 bench/plot.py papers.json; python3 bench/plot.py papers.json --papers docs/papers.md
# do the rest.

# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/../scripts/lib.sh"

case ${1:-} in -h | --help) usage && exit 0 ;; esac
build="${1:-build/release}"
out="${2:-build/papers}"
budget="${3:-360}"
more=("${@:4}")
bench="$build/bin/chainfold_bench"
[[ -x $bench ]] || die "$bench is missing; build the target chainfold_bench"
mkdir -p "$out"
"$bench" --suite papers --out "$out/papers.json" --budget "$budget" --resume-dirty "${more[@]:---target=gpu}"

python="$VENV/bin/python"
[[ -x $python ]] || python=python3
if ! "$python" -c 'import matplotlib' 2>/dev/null; then
  say "no matplotlib: $out/papers.json has no pictures yet"
  exit 0
fi
"$python" bench/plot.py "$out/papers.json"
cp docs/papers.md "$out/papers.md"
"$python" bench/plot.py "$out/papers.json" --papers "$out/papers.md"
say "results are in $out"
