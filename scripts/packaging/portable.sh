#!/bin/sh
# portable.sh FOLDER OUT [ARCH...]: wheels, tarballs and .debs of the programs and the loader's library in
# OUT, for each ARCH (x86_64 and aarch64) with glibc 2.17 or newer.  Needs a network, CMake, and Python
# with pip; no root.  FOLDER keeps sources, compiler and libraries, so that the next run only packs.
set -eu
[ $# -ge 2 ] || { echo "usage: scripts/packaging/portable.sh FOLDER OUT [ARCH...]" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1" "$2"
top=$(cd "$1" && pwd) out=$(cd "$2" && pwd)
shift 2
[ $# -gt 0 ] || set -- x86_64 aarch64

"$here/fetch.sh" "$top"
for arch in "$@"; do
    "$here/toolchain.sh" "$top" "$arch"
    "$here/sysroot.sh" "$top" "$arch"
    "$here/deps.sh" "$top" "$arch"
    echo "  $arch   chunkmill"
    "$here/build.sh" "$top" "$arch"
    rm -f "$out"/chunkmill*"$arch"* "$out"/chunkmill*"$("$here/debian_arch.sh" "$arch")".deb
    "$here/pack.sh" "$top" "$arch" "$out"
done
"$here/lint.py" "$out"/chunkmill*
