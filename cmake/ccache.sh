#!/bin/sh
# What compilers are called through where ccache is installed: ccache.sh ROOT BUILD CCACHE COMPILER ARGUMENT...
#
# ccache knows a precompiled header by the checksum that lies beside it. What compilers make of one depends on
# the folder, so it is compiled without the cache. Its checksum is that of its options, without BUILD and ROOT, and of
# all files that went into it: another folder or clone then finds the same objects. Where a file
# cannot be read there is no checksum, and ccache takes the precompiled header itself.
root=$1
build=$2
ccache=$3
shift 3
output='' dependencies='' header=no previous=''
for argument in "$@"; do
  case $previous in
    -o) output=$argument ;;
    -MF) dependencies=$argument ;;
    -x) [ "$argument" = c++-header ] && header=yes ;;
  esac
  previous=$argument
done
if [ $header = no ] || [ -z "$output" ] || [ -z "$dependencies" ]; then exec "$ccache" "$@"; fi
rm -f "$output.sum"
"$@" || exit
# The text that counts: options, and each file that the list of dependencies names. Make's escapes in names are
# undone; a name with a blank of its own is none that can be read, and ends this.
everything() {
  for argument in "$@"; do
    for folder in "$build" "$root"; do
      case $argument in *"$folder"*) argument=${argument%%"$folder"*}${argument#*"$folder"} ;; esac
    done
    printf '%s\n' "$argument"
  done
  sed -e '1s/^[^:]*: *//' -e 's/\\$//' -e 's/\$\$/$/g' -e 's/\\#/#/g' "$dependencies" | tr ' ' '\n' |
    while IFS= read -r file; do
      [ -z "$file" ] || cat -- "$file" 2>/dev/null || exit 1
    done
}
everything "$@" >"$output.text" && sha256sum <"$output.text" >"$output.sum.new" &&
  mv "$output.sum.new" "$output.sum"
rm -f "$output.text" "$output.sum.new"
exit 0
