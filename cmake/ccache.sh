#!/bin/sh
# What compilers are called through where ccache is installed: ccache.sh ROOT CCACHE COMPILER ARGUMENT...
#
# ccache knows a precompiled header by the checksum that lies beside it. What compilers make of one depends on
# the folder, so it is compiled without the cache. Its checksum is that of its options, without ROOT, and of
# all files that went into it: another clone of the same sources then finds the same objects.
root=$1
ccache=$2
shift 2
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
"$@" || exit
{
  printf '%s\n' "$@" | sed "s|$root||g"
  sed -e 's/^[^ ]*: *//' -e 's/\\$//' "$dependencies" | xargs -n 64 cat
} | sha256sum >"$output.sum"
