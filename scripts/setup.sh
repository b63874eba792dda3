#!/usr/bin/env bash
# Installs what building, testing and the examples need on Debian 12 or Ubuntu 24.04.
#
# usage: scripts/setup.sh [--minimal] [--cpu-only] [--no-python]
#   --minimal    only what scripts/quickstart.sh needs: no test libraries, no clang
#   --cpu-only   no NVRTC wheel where there is no CUDA toolkit (tests that compile CUDA then say so)
#   --no-python  no Python packages
# System packages come through apt (with sudo where needed), Python packages go into .cache/venv.
# Only what is missing is installed: a second run does nothing.

# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/lib.sh"

minimal=no cpu_only=no python=yes
for argument in "$@"; do
  case $argument in
    --minimal) minimal=yes ;;
    --cpu-only) cpu_only=yes ;;
    --no-python) python=no ;;
    -h | --help) usage && exit 0 ;;
    *) die "unknown option $argument (see --help)" ;;
  esac
done

packages=(ca-certificates g++ cmake ninja-build pkg-config llvm-19-dev libtbb-dev libfmt-dev
  nlohmann-json3-dev libcli11-dev libxxhash-dev zlib1g-dev libzstd-dev python3 python3-venv)
if [[ $minimal == no ]]; then
  packages+=(libgtest-dev libbenchmark-dev libmpfr-dev clang libclang-rt-dev clang-format-19 clang-tidy-19
    ccache)
fi

installed() { [[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" == installed ]]; }

install_system_packages() {
  local package missing=() unknown=() root=()
  command -v dpkg-query >/dev/null ||
    die "this script knows apt only; elsewhere install the equivalents of: ${packages[*]}"
  for package in "${packages[@]}"; do installed "$package" || missing+=("$package"); done
  if [[ ${#missing[@]} -eq 0 ]]; then
    say "system packages: all ${#packages[@]} are there"
    return
  fi
  if [[ $EUID -ne 0 ]]; then
    command -v sudo >/dev/null ||
      die "neither root nor sudo; as root run: apt-get install ${missing[*]}"
    root=(sudo)
  fi
  say "system packages: installing ${missing[*]}"
  "${root[@]}" apt-get update -q=2 || say "apt-get update complained; trying with the lists at hand"
  for package in "${missing[@]}"; do
    [[ "$(apt-cache policy "$package")" =~ Candidate:\ [0-9] ]] || unknown+=("$package")
  done
  [[ ${#unknown[@]} -eq 0 ]] || die "apt offers no ${unknown[*]}. On Ubuntu the \"universe\" and" \
    "\"noble-updates\" parts must be enabled; on other releases LLVM 19 comes from LLVM's own apt archive"
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q=2 -y --no-install-recommends \
    "${missing[@]}" || die "apt-get install failed; its message stands above"
  say "system packages: installed ${#missing[@]}"
}

install_python_packages() {
  local interpreter requirements nvrtc stamp="$VENV/requirements.installed"
  requirements="$(grep -v '^#' scripts/requirements.txt)"
  # The wheel is the toolkit release that the generated code is tried with.
  nvrtc='nvidia-cuda-nvrtc==13.0.*'
  if [[ $cpu_only == yes ]]; then
    nvrtc=
  elif find_toolkit_nvrtc >/dev/null; then
    say "NVRTC: using $(find_toolkit_nvrtc)"
    nvrtc=
  fi
  if [[ ! -x $VENV/bin/pip ]]; then
    interpreter=python3
    "$interpreter" -c 'import ensurepip, venv' 2>/dev/null || interpreter=/usr/bin/python3
    say "python: making .cache/venv with $("$interpreter" --version)"
    "$interpreter" -m venv --clear "$VENV" || die "python3 -m venv failed; is python3-venv installed?"
  fi
  if [[ "$(cat "$stamp" 2>/dev/null)" == "$requirements" ]]; then
    say "python: packages are there"
  else
    say "python: installing $(tr '\n' ' ' <<<"$requirements")"
    "$VENV/bin/pip" install --quiet --disable-pip-version-check -r scripts/requirements.txt ||
      die "pip install failed; its message stands above"
    printf '%s\n' "$requirements" >"$stamp"
  fi
  if [[ -n $nvrtc && "$(cat "$VENV/nvrtc.installed" 2>/dev/null)" != "$nvrtc" ]]; then
    say "NVRTC: no CUDA toolkit here; installing the wheel $nvrtc"
    if "$VENV/bin/pip" install --quiet --disable-pip-version-check "$nvrtc"; then
      printf '%s\n' "$nvrtc" >"$VENV/nvrtc.installed"
    else
      say "NVRTC: the wheel could not be installed; tests that compile CUDA will say so and not run"
    fi
  elif [[ -n $nvrtc ]]; then
    say "NVRTC: the wheel is there"
  fi
}

install_system_packages
[[ $python == no ]] || install_python_packages
say "ready"
