#!/bin/sh
# fetch.sh FOLDER: the sources of deps.txt, from the distribution's own archive (Debian or Ubuntu), into
# FOLDER/src, and the cross compiler into FOLDER/zig.  A source that is there is taken as it is.  Files that
# the archive lists and does not have come from the pools that CHUNKMILL_POOLS names, other archives of the same
# files (http://.../pool/main), under the checksums of the first.
set -eu
[ $# -eq 1 ] || { echo "usage: scripts/packaging/fetch.sh FOLDER" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1/src"
top=$(cd "$1" && pwd)
zig=0.15.2
# Of these, Debian changes no source, but adds how to package them: the authors' files alone are as good.
unchanged="libaec"

[ -x "$top/zig/ziglang/zig" ] || {
    echo "  fetch   ziglang $zig"
    python3 -m pip install --quiet --root-user-action=ignore --no-deps --no-compile --target "$top/zig" "ziglang==$zig"
}

there() { # PACKAGE
    [ -n "$(find "$top/src" -maxdepth 1 -type d -name "$1-[0-9]*")" ]
}

unpack() { # PACKAGE VERSION
    (cd "$top/src" && apt-get source -qq "$1=$2") >"$top/src/$1.log" 2>&1
}

elsewhere() { # PACKAGE VERSION: what "unpack" could not get, for it to go on with
    apt-cache showsrc --only-source "$1" | awk -v version="$2" -v RS= 'index($0, "\nVersion: " version "\n")' >"$top/src/$1.index"
    folder=$(sed -n 's|^Directory: .*/\([^/]*/[^/]*\)$|\1|p' "$top/src/$1.index")
    sed -n '/^Checksums-Sha256:/,/^[^ ]/s/^ \([0-9a-f]\{64\}\) [0-9]* /\1 /p' "$top/src/$1.index" | while read -r sha256 file; do
        [ ! -e "$top/src/$file" ] || continue
        for pool in ${CHUNKMILL_POOLS:-}; do
            ! /usr/lib/apt/apt-helper download-file "$pool/$folder/$file" "$top/src/$file" "SHA256:$sha256" >>"$top/src/$1.log" 2>&1 || break
        done
    done
}

alone() { # PACKAGE VERSION: the authors' files, without those of the distribution
    file=$(find "$top/src" -maxdepth 1 -name "$1_${2%-*}.orig.tar.*" ! -name '*.asc' ! -name '*.FAILED')
    case " $unchanged " in *" $1 "*) ;; *) return 1 ;; esac
    [ -n "$file" ] || return 1
    mkdir -p "$top/src/new" && tar -xf "$file" -C "$top/src/new" --strip-components=1 &&
        mv "$top/src/new" "$top/src/$1-${2%-*}"
}

sed '/^#/d' "$here/deps.txt" | while read -r _ package _; do
    there "$package" && continue
    APT_CONFIG=$("$here/apt.sh" "$top" deb-src)
    export APT_CONFIG
    # A mirror may lack the newest version for a while: the one before it then.
    for version in $(apt-cache showsrc --only-source "$package" | sed -n 's/^Version: //p' | sort -Vru); do
        echo "  fetch   $package $version"
        ! unpack "$package" "$version" || continue 2
        elsewhere "$package" "$version"
        ! unpack "$package" "$version" || continue 2
        ! alone "$package" "$version" || continue 2
        echo "fetch: $package $version: $(grep -m 1 '^E:' "$top/src/$package.log")" >&2
    done
    echo "fetch: $package cannot be fetched; unpack its source as $top/src/$package-VERSION" >&2
    exit 1
done
