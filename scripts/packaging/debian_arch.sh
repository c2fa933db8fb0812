#!/bin/sh
# debian_arch.sh ARCH: Debian's name of an architecture.
case $1 in
x86_64) echo amd64 ;;
aarch64) echo arm64 ;;
*) echo "$1: unknown architecture" >&2 && exit 1 ;;
esac
