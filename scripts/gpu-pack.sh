#!/usr/bin/env bash
# Packs what a machine with a GPU needs to run the GPU tests and the benchmark: build/gpu/{bin,lib}, and
# in build/gpu/commit what the benchmark reports as its commit.
#
# usage: scripts/gpu-pack.sh [--with-cpu] [--out DIR] [BUILD_DIR]
#   BUILD_DIR   where the programs were built (default build/release)
#   --with-cpu  the CPU plugin as well, with the oneTBB it needs
#   --out DIR   the folder to make anew (default build/gpu)
# The copies are stripped and find their libraries beside themselves, so the folder can be carried
# anywhere. Libraries that not every machine has are packed; what is left must be there: the C and C++
# run-time libraries, the driver and NVRTC. The pack is refused if it is 64 MiB or larger, or if a
# program would load a library of this build from anywhere else.

# shellcheck source-path=SCRIPTDIR
source "$(dirname "$0")/lib.sh"

build=build/release pack=build/gpu with_cpu=no
while (($#)); do
  case $1 in
    --with-cpu) with_cpu=yes ;;
    --out)
      [[ -n ${2:-} ]] || die "--out needs a folder"
      pack=$2
      shift
      ;;
    -h | --help) usage && exit 0 ;;
    -*) die "unknown option $1 (see --help)" ;;
    *) build=$1 ;;
  esac
  shift
done
most=$((64 << 20))
# What every Linux with a C++ compiler's run-time library has.
base='^(linux-vdso|ld-linux-x86-64|ld-linux-aarch64|libc|libm|libdl|libpthread|librt|libstdc\+\+|libgcc_s)\.so'

# The libraries that a file loads, as "name path" lines; fails for one that is missing.
libraries_of() {
  local listing
  listing="$(env -u LD_LIBRARY_PATH ldd "$1")" || return 1
  if grep 'not found' <<<"$listing" >&2; then return 1; fi
  awk '$2 == "=>" {print $1, $3}' <<<"$listing"
}

# Copies a file without its symbols: put FILE FOLDER
put() {
  cp -L "$1" "$2/"
  chmod u+w "$2/$(basename "$1")"
  strip --strip-unneeded "$2/$(basename "$1")"
}

[[ -d $build ]] || die "there is no build folder $build; build one, or name it"
[[ -e $build/bin/chainfold_gpu_tests ]] ||
  die "$build/bin/chainfold_gpu_tests is missing; run: cmake --build $build --target chainfold_gpu_tests"
# Only a folder that this script made is deleted.
if [[ -e $pack && -n "$(find "$pack" -mindepth 1 -maxdepth 1 ! -name bin ! -name lib ! -name commit | head -n 1)" ]]; then
  die "$pack holds more than a pack; name another folder with --out"
fi
rm -rf "$pack"
mkdir -p "$pack/bin" "$pack/lib"

put "$build/bin/chainfold_gpu_tests" "$pack/bin"
for program in chainfold_bench chainfold_function_errors; do
  if [[ -e $build/bin/$program ]]; then
    put "$build/bin/$program" "$pack/bin"
  else
    say "without $program: $build/bin/$program is missing"
  fi
done
# The library under the name that programs ask for.
soname="$(readelf -d "$build/lib/libchainfold.so" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')"
cp -L "$build/lib/libchainfold.so" "$pack/lib/$soname"
strip --strip-unneeded "$pack/lib/$soname"
ln -s "$soname" "$pack/lib/libchainfold.so"
if [[ $with_cpu == yes ]]; then
  [[ -e $build/lib/libchainfold_cpu.so ]] || die "$build/lib/libchainfold_cpu.so is missing"
  put "$build/lib/libchainfold_cpu.so" "$pack/lib"
fi

# What the files need beyond the base, from where this machine has it.
for file in "$pack"/bin/* "$pack"/lib/*.so*; do
  libraries="$(libraries_of "$file")" || die "$file needs a library that is not here"
  while read -r name path; do
    [[ -z $name || $name =~ $base || -e $pack/lib/$name ]] && continue
    say "packing $name, which $(basename "$file") needs"
    cp -L "$path" "$pack/lib/$name"
    chmod u+w "$pack/lib/$name"
    strip --strip-unneeded "$pack/lib/$name"
  done <<<"$libraries"
done

# Every library but the base must now come from the pack, by a path that moves with it.
here="$(realpath "$pack")"
for file in "$pack"/bin/* "$pack"/lib/*.so*; do
  while read -r name path; do
    [[ -z $name || $name =~ $base ]] && continue
    [[ "$(realpath "$path")" == "$here"/lib/* ]] ||
      die "$file would load $name from $path; its run path lacks \$ORIGIN (set CMAKE_BUILD_RPATH_USE_ORIGIN)"
  done <<<"$(libraries_of "$file")"
  runpath="$(readelf -d "$file" | sed -n 's/.*R[UN]*PATH.*\[\(.*\)\]/\1/p')"
  for folder in ${runpath//:/ }; do
    # shellcheck disable=SC2016  # the loader's variable, not the shell's
    [[ $folder == '$ORIGIN'* ]] || die "$file looks for libraries in $folder, a folder of this machine"
  done
done

# That of the sources as they are now: build before you pack.
commit="$(git rev-parse HEAD 2>/dev/null || true)"
[[ -z $commit || -z "$(git status --porcelain 2>/dev/null)" ]] || commit+="-dirty"
printf '%s\n' "$commit" >"$pack/commit"

bytes="$(du -sb "$pack" | cut -f1)"
((bytes < most)) || die "$pack has $bytes bytes; at most $most can be carried"
say "$pack: $((bytes >> 10)) KiB"
ls -l "$pack"/bin "$pack"/lib
