#!/bin/sh
# bundle.sh BUILD [wheel]: completes BUILD/bundle, in which `make bundle` has linked the
# programs, with the shared libraries that they need, so that the folder runs on
# another x86-64 Linux whose glibc is as new.  glibc itself stays with the system.
set -eu
[ $# -eq 1 ] || [ "$#:${2-}" = 2:wheel ] || {
    echo "usage: scripts/bundle.sh BUILD [wheel]" >&2
    exit 2
}
bundle=$1/${2-bundle}
cd "$(dirname "$0")/.."
lib=$bundle/lib
rm -rf "$lib" "$bundle/doc"
mkdir -p "$lib" "$bundle/doc"

# What glibc brings, and the loader: they fit the system's kernel and each other.
is_glibc() {
    case $1 in
    linux-vdso.so.* | ld-linux*.so.* | libc.so.* | libm.so.* | libmvec.so.* | libdl.so.* | \
        libpthread.so.* | librt.so.* | libresolv.so.* | libutil.so.* | libanl.so.* | \
        libnsl.so.1 | libBrokenLocale.so.* | libthread_db.so.* | libnss_*.so.*) return 0 ;;
    esac
    return 1
}

programs=$(find "$bundle" -type f -perm -u+x ! -name '*.so' ! -path "$lib/*")

# ldd lists what is needed directly and by what is needed.
# shellcheck disable=SC2086 # paths of ours hold no spaces
ldd $programs | awk '$2 == "=>" { print $1, $3 }' | sort -u | while read -r name path; do
    is_glibc "$name" && continue
    [ -e "$path" ] || {
        echo "bundle: $name is not found" >&2
        exit 1
    }
    cp -L "$path" "$lib/$name"
    chmod 644 "$lib/$name"
    # The licence of each library goes with it, where the distribution tells it.
    package=$(dpkg-query -S "$(readlink -f "$path")" 2>/dev/null | head -n 1 | cut -d: -f1) || package=
    [ -z "$package" ] || cp -L "/usr/share/doc/$package/copyright" "$bundle/doc/$package" 2>/dev/null || :
done

# The loader's library lies with those that it needs.
if [ -d "$bundle/so" ]; then
    cp "$bundle"/so/* "$lib"
    programs="$(find "$bundle/bin" -type f) $(find "$lib" -name 'libchunkmill*')"
fi

# From here on everything must come out of the bundle.
# shellcheck disable=SC2086
ldd $programs | awk '$2 == "=>" { print $1, $3 }' | sort -u | while read -r name path; do
    is_glibc "$name" && continue
    case $(readlink -f "$path") in
    "$(readlink -f "$lib")"/*) ;;
    *)
        echo "bundle: $name is taken from $path" >&2
        exit 1
        ;;
    esac
done

# The newest symbol version of glibc that anything here asks for.
# shellcheck disable=SC2086
glibc=$(cat $programs "$lib"/* | LC_ALL=C grep -aoE 'GLIBC_2\.[0-9]+' | sort -uV | tail -n 1)
cp LICENSE "$bundle/LICENSE"
cat >"$bundle/README" <<EOF
Chunkmill $(cat VERSION): the programs are in bin, with the libraries that they need.
Runs on x86-64 Linux with glibc ${glibc#GLIBC_} or newer.  The folder may be moved.
The tests in tests/gpu test what the machine has of CUDA; python3 tests/gpu/measure.py . LOGS
runs them and measures all that is to be known of a machine with a GPU; --help names its parts.
EOF
"$bundle/bin/nc2zarr" --version >/dev/null
echo "$bundle: $(find "$bundle/bin" -type f | wc -l) programs, $(find "$lib" -type f | wc -l) libraries," \
    "$(du -sh "$bundle" | cut -f1), for glibc ${glibc#GLIBC_} or newer"
