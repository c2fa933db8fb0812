#!/bin/sh
# deps.sh FOLDER ARCH: builds the libraries of deps.txt for ARCH into FOLDER/ARCH/prefix.  A library
# whose row, source and compiler are those of last time is left alone.
set -eu
[ $# -eq 2 ] || { echo "usage: scripts/packaging/deps.sh FOLDER ARCH" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
top=$1 arch=$2
tools=$top/$arch/tools prefix=$top/$arch/prefix stamps=$top/$arch/stamps
mkdir -p "$prefix/lib" "$prefix/include" "$prefix/licences" "$stamps"
export CC="$tools/cc" CXX="$tools/c++" AR="$tools/ar" RANLIB="$tools/ranlib"
export CFLAGS="-O2 -g0 -fPIC -ffp-contract=off -ffunction-sections -fdata-sections -D_FILE_OFFSET_BITS=64"
# Of the date that netCDF-C says it was built at.
export SOURCE_DATE_EPOCH=0
jobs=${JOBS:-$(nproc)}

with_cmake() { # SOURCE WORK ARGUMENTS
    tree=$1 work=$2
    shift 2
    [ "$1" != -S ] || { tree=$tree/$2; shift 2; }
    # HDF5 looks in the folder of the build for what its programs leave in the current one, and has a function
    # without a type.
    cd "$work"
    cmake -S "$tree" -B . -DCMAKE_TOOLCHAIN_FILE="$tools/toolchain.cmake" -DCMAKE_BUILD_TYPE=Release \
        -DCMAKE_C_FLAGS_RELEASE="-DNDEBUG -Wno-implicit-int -Wno-date-time" -DBUILD_SHARED_LIBS=OFF -DCMAKE_POSITION_INDEPENDENT_CODE=ON \
        -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib "$@"
    cmake --build . -j "$jobs"
    cmake --install .
}

with_make() { # WORK GOAL ARGUMENTS
    work=$1 goal=$2
    shift 2
    # shellcheck disable=SC2086 # a goal is words
    make -C "$work" -j "$jobs" CC="$CC" AR="$AR" RANLIB="$RANLIB" CFLAGS="$CFLAGS" PREFIX="$prefix" "$@" $goal
}

with_configure() { # NAME WORK GOAL ARGUMENTS
    name=$1 work=$2 goal=$3
    shift 3
    (
        cd "$work"
        if [ "$name" = openssl ]; then
            ./Configure "linux-$arch" --prefix="$prefix" "$@"
            make -j "$jobs" build_libs
        else
            ./configure --prefix="$prefix" "$@"
        fi
        # shellcheck disable=SC2086 # a goal is words
        make -j "$jobs" $goal
    )
}

build() { # NAME PACKAGE HOW GOAL ARGUMENTS
    name=$1 source=$(echo "$top/src/$2"-[0-9]*) how=$3 goal=$4 work=$top/$arch/work/$1
    shift 4
    rm -rf "$work"
    mkdir -p "$work"
    [ "$how" = cmake ] || cp -a "$source/." "$work"
    case $how in
    cmake) with_cmake "$source" "$work" "$@" ;;
    make) with_make "$work" "$goal" "$@" ;;
    configure) with_configure "$name" "$work" "$goal" "$@" ;;
    *) echo "deps.txt: $name: unknown way to build, $how" >&2 && return 1 ;;
    esac
    rm -f "$prefix"/lib/*.so*
    # Only its header is used, and no goal of all versions installs it alone.
    [ "$name" != xxhash ] || cp "$work/xxhash.h" "$prefix/include"
    # Its install goal would run the programs that it builds.
    [ "$name" != bzip2 ] || { cp "$work/bzlib.h" "$prefix/include" && cp "$work/libbz2.a" "$prefix/lib"; }
    [ "$name" != cmocka ] || ln -sf libcmocka-static.a "$prefix/lib/libcmocka.a"
    for licence in debian/copyright COPYING LICENSE.txt LICENSE; do
        [ ! -e "$source/$licence" ] || { cp "$source/$licence" "$prefix/licences/$name" && break; }
    done
    [ -s "$prefix/licences/$name" ] || { echo "deps: $name: no licence is found in $source" >&2 && return 1; }
    rm -rf "$work"
}

# shellcheck disable=SC2046 # arguments are words
sed '/^#/d' "$here/deps.txt" | while read -r name package how goal arguments; do
    source=$(echo "$top/src/$package"-[0-9]*)
    key=$({ echo "$name $package $how $goal $arguments $(basename "$source") $CFLAGS" && cat "$tools/cc" &&
        { head -n 1 "$source/debian/changelog" 2>/dev/null || :; }; } | sha256sum)
    [ "$(cat "$stamps/$name" 2>/dev/null)" != "$key" ] || continue
    echo "  $arch   $name"
    # Behind "||" alone the shell would go on after a failure inside.
    build "$name" "$package" "$how" "$(echo "$goal" | tr , ' ')" \
        $(echo "$arguments" | sed "s|@PREFIX@|$prefix|g") >"$stamps/$name.log" 2>&1 </dev/null &
    wait $! || {
        tail -n 20 "$stamps/$name.log" >&2
        echo "deps: $name does not build for $arch; all of its output is in $stamps/$name.log" >&2
        exit 1
    }
    echo "$key" >"$stamps/$name"
done
