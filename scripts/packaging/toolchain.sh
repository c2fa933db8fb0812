#!/bin/sh
# toolchain.sh FOLDER ARCH: in FOLDER/ARCH/tools the cross compiler as cc, c++, ar and ranlib; run,
# which runs a program of ARCH; and toolchain.cmake, which names them to CMake.
set -eu
[ $# -eq 2 ] || { echo "usage: scripts/packaging/toolchain.sh FOLDER ARCH" >&2; exit 2; }
top=$1 arch=$2 tools=$1/$2/tools
# The glibc of Red Hat 7, and of manylinux2014, which pip knows since 19.3: that of Red Hat 8 (20.2) takes no wheel
# of a manylinux_2_28.
target=$arch-linux-gnu.2.17
mkdir -p "$tools"

tool() { # NAME COMMAND
    printf '#!/bin/sh\nexport ZIG_GLOBAL_CACHE_DIR=%s ZIG_LOCAL_CACHE_DIR=%s\nexec %s "$@"\n' \
        "$top/cache" "$top/cache" "$2" >"$tools/$1"
    chmod +x "$tools/$1"
}
zig=$top/zig/ziglang/zig
tool cc "$zig cc -target $target"
tool c++ "$zig c++ -target $target"
tool ar "$zig ar"
tool ranlib "$zig ranlib"
if [ "$(uname -m)" = "$arch" ]; then
    tool run env
else
    tool run "$top/$arch/sysroot/qemu -L $top/$arch/sysroot"
fi

cat >"$tools/toolchain.cmake" <<EOF
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR $arch)
set(CMAKE_C_COMPILER $tools/cc)
set(CMAKE_CXX_COMPILER $tools/c++)
set(CMAKE_AR $tools/ar)
set(CMAKE_RANLIB $tools/ranlib)
set(CMAKE_CROSSCOMPILING_EMULATOR $tools/run)
set(CMAKE_FIND_ROOT_PATH $top/$arch/prefix)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
EOF
