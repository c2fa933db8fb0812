#!/bin/sh
# build.sh FOLDER ARCH [unit]: the programs and the loader's library for ARCH, or the unit tests, with the
# compiler and the libraries in FOLDER, into FOLDER/ARCH/build.
#
# The programs share one library of all that they use of others, libchunkmill_deps.so, which they find
# beside themselves.  The loader's library holds its own copy and shows none of it: what a Python
# has loaded of zlib, HDF5 or OpenSSL stays apart.
set -eu
[ $# -eq 2 ] || [ "$#:${3-}" = 3:unit ] || { echo "usage: scripts/packaging/build.sh FOLDER ARCH [unit]" >&2; exit 2; }
cd "$(dirname "$0")/../.."
arch=$2 tools=$1/$2/tools prefix=$1/$2/prefix build=$1/$2/build log=$1/$2/build.log
archives=
for name in netcdf hdf5_hl hdf5 sz aec blosc zstd lz4 deflate bz2 curl ssl crypto z expat json-c uring; do
    archives="$archives $prefix/lib/lib$name.a"
done
# zig lacks what __builtin_cpu_supports asks for; gcc brings it.
cpu=
[ "$arch" != x86_64 ] || cpu=$(gcc -print-libgcc-file-name)

flags="-O3 -ffunction-sections -fdata-sections"

# make sees no change of these, nor of the libraries.
mkdir -p "$build"
key=$({ echo "$flags" && cat "$tools/cc" && find "$1/$2/stamps" -type f ! -name '*.log' -exec cat {} + | sort; } | sha256sum)
[ "$(cat "$build/flags" 2>/dev/null)" = "$key" ] || { rm -rf "$build" && mkdir "$build" && echo "$key" >"$build/flags"; }

build() { # LIBRARIES GOAL...
    libraries=$1
    shift
    PKG_CONFIG_LIBDIR="$prefix/lib/pkgconfig" make -s -j "${JOBS:-$(nproc)}" NODEPS=1 QUIET=1 BUILD="$build" \
        CC="$tools/cc" AR="$tools/ar" CFLAGS="$flags" PKG_CFLAGS="-I$prefix/include" \
        PKG_LIBS="$libraries" LDFLAGS="-Wl,--gc-sections -Wl,-s -Wl,-rpath,'\$\$ORIGIN/../lib'" "$@" >"$log" 2>&1 || {
        tail -n 20 "$log" >&2
        echo "build: Chunkmill does not build for $arch; all of the output is in $log" >&2
        exit 1
    }
}

if [ $# -eq 3 ]; then
    build "$archives $cpu" unit
    exit
fi
build "$archives $cpu" loader
build "" lib "$build/tools/libcommon.a"

# Of the archives what our objects ask for, and all of HDF5's interface, for the filters that HDF5_PLUGIN_PATH names.
# shellcheck disable=SC2086
{
    nm -u "$build"/lib/*.a "$build"/tools/*.a 2>/dev/null | awk '$1 == "U" { print $2 }' | sort -u >"$build/asked"
    nm --defined-only $archives 2>/dev/null | awk 'NF == 3 { print $3 }' | sort -u | comm -12 - "$build/asked" >"$build/shown"
    nm --defined-only "$prefix/lib/libhdf5.a" 2>/dev/null | awk '$2 ~ /[TDBR]/ { print $3 }' |
        grep -E '^H5[A-Z]*[a-z][a-z0-9_]*$|^H5.*_g$' | sort -u >>"$build/shown"
    sed 's/.*/-Wl,-u,&/' "$build/shown" >"$build/deps.rsp"
    { echo '{ global:' && sed 's/$/;/' "$build/shown" && echo 'local: *; };'; } >"$build/deps.map"
    "$tools/cc" -shared -o "$build/lib/libchunkmill_deps.so" -Wl,-soname,libchunkmill_deps.so -Wl,--gc-sections -Wl,-s \
        -Wl,--version-script,"$build/deps.map" "@$build/deps.rsp" $archives $cpu -lm -ldl -pthread
}
build "$build/lib/libchunkmill_deps.so $cpu" tools
