#!/bin/sh
# sysroot.sh FOLDER ARCH: in FOLDER/ARCH/sysroot the C library of another architecture, and qemu, which
# runs its programs.  Both come from the distribution; nothing is installed.
set -eu
[ $# -eq 2 ] || { echo "usage: scripts/packaging/sysroot.sh FOLDER ARCH" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
top=$1 arch=$2 root=$1/$2/sysroot
[ "$(uname -m)" != "$arch" ] && [ ! -x "$root/qemu" ] || exit 0
debian=$("$here/debian_arch.sh" "$arch")

unpack() { # ARCHITECTURE PACKAGE...
    APT_CONFIG=$("$here/apt.sh" "$top" deb "$1")
    export APT_CONFIG
    shift
    (cd "$root" && apt-get download -qq "$@")
    for package in "$root"/*.deb; do
        dpkg-deb -x "$package" "$root"
        rm "$package"
    done
}
echo "  fetch   libc6 for $arch, and qemu"
mkdir -p "$root"
unpack "$debian" libc6 libgcc-s1
unpack "$(dpkg --print-architecture)" qemu-user-static
ln -sf "usr/bin/qemu-$arch-static" "$root/qemu"
