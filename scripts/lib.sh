# Shared by the scripts of this folder; sourced, not run. Sets ROOT and changes into it.
# shellcheck shell=bash
set -euo pipefail
ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
export ROOT
cd "$ROOT"
SCRIPT="$(basename "$0" .sh)"
VENV="$ROOT/.cache/venv"

say() { printf '[%s %3ds] %s\n' "$SCRIPT" "$SECONDS" "$*"; }

die() {
  printf '[%s] error: %s\n' "$SCRIPT" "$*" >&2
  exit 1
}

# The text between the first line and the first empty line of a script, without its "# ".
usage() { sed -n '2,/^$/s/^# \{0,1\}//p' "$0"; }

# The folder of an NVRTC in the usual places of a CUDA toolkit or known to the loader; fails if none.
find_toolkit_nvrtc() {
  local toolkit file
  for toolkit in "${CUDA_HOME:-/nonexistent}" "${CUDA_PATH:-/nonexistent}" /usr/local/cuda*; do
    for file in "$toolkit"/lib64/libnvrtc.so* "$toolkit"/targets/x86_64-linux/lib/libnvrtc.so*; do
      if [[ -e $file ]]; then
        dirname "$file"
        return 0
      fi
    done
  done
  # The whole output first: a reader that stops early would fail the writer.
  file="$(PATH="$PATH:/sbin:/usr/sbin" ldconfig -p 2>/dev/null || true)"
  [[ $file =~ libnvrtc\.so[^$'\n']*=\>\ ([^$'\n']+) ]] && dirname "${BASH_REMATCH[1]}"
}

# Names the NVRTC of the Python wheel to the library where setup.sh put one there.
use_wheel_nvrtc() {
  local file
  [[ -z ${CHAINFOLD_NVRTC:-} ]] || return 0
  for file in "$VENV"/lib/python3*/site-packages/nvidia/*/lib/libnvrtc.so.*; do
    if [[ -e $file && $file != *builtins* ]] && ! find_toolkit_nvrtc >/dev/null; then
      export CHAINFOLD_NVRTC="$file"
      return 0
    fi
  done
}
