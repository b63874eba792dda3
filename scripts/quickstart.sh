#!/usr/bin/env bash
# Installs what is needed, builds Chainfold and runs TPC-H query 6 on generated data.
#
# usage: scripts/quickstart.sh [--scale-factor SF] [--skip-setup]
#   --scale-factor SF  TPC-H scale factor, 1 (six million rows, 168 MB) unless told
#   --skip-setup       install nothing; what is missing makes the build fail
# Needs neither a GPU nor a CUDA toolkit: it uses a GPU where it finds one, else all CPU cores.

# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/lib.sh"

scale_factor=1 setup=yes
while [[ $# -gt 0 ]]; do
  case $1 in
    --scale-factor)
      [[ $# -ge 2 ]] || die "--scale-factor needs a value"
      scale_factor=$2
      shift
      ;;
    --skip-setup) setup=no ;;
    -h | --help) usage && exit 0 ;;
    *) die "unknown option $1 (see --help)" ;;
  esac
  shift
done
[[ $scale_factor =~ ^[0-9]+(\.[0-9]+)?$ ]] || die "--scale-factor needs a number, not $scale_factor"

if [[ $setup == yes ]]; then
  say "1/4 what is needed"
  scripts/setup.sh --minimal
fi
use_wheel_nvrtc

say "2/4 build (build/release)"
cmake --preset release -DCHAINFOLD_TESTS=OFF -DCHAINFOLD_BENCH=OFF -DCHAINFOLD_EXAMPLES=ON \
  --log-level=WARNING >/dev/null
cmake --build build/release

data=".cache/tpch/sf$scale_factor"
say "3/4 data: TPC-H lineitem at scale factor $scale_factor in $data"
"$VENV/bin/python" examples/tpch/make_data.py "$data" --scale-factor "$scale_factor"

say "4/4 TPC-H query 6"
"$VENV/bin/python" examples/tpch/duckdb_q6.py "$data" >"$data/duckdb.json"
build/release/bin/tpch_q6 "$data" --duckdb "$data/duckdb.json"
say "done"
