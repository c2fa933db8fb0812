#!/bin/sh
# fetch.sh FOLDER: the sources of deps.txt, from the distribution's own archive (Debian or Ubuntu), into
# FOLDER/src, and the cross compiler into FOLDER/zig.  A source that is there is taken as it is.
set -eu
[ $# -eq 1 ] || { echo "usage: scripts/packaging/fetch.sh FOLDER" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1/src"
top=$(cd "$1" && pwd)
zig=0.15.2

[ -x "$top/zig/ziglang/zig" ] || {
    echo "  fetch   ziglang $zig"
    python3 -m pip install --quiet --root-user-action=ignore --no-deps --no-compile --target "$top/zig" "ziglang==$zig"
}

there() { # PACKAGE
    [ -n "$(find "$top/src" -maxdepth 1 -type d -name "$1-[0-9]*")" ]
}

sed '/^#/d' "$here/deps.txt" | while read -r _ package _; do
    there "$package" && continue
    echo "  fetch   $package"
    APT_CONFIG=$("$here/apt.sh" "$top" deb-src)
    export APT_CONFIG
    # A mirror may lack the newest version for a while: the one before it then.
    for version in $(apt-cache showsrc "$package" | sed -n 's/^Version: //p' | sort -Vru); do
        (cd "$top/src" && apt-get source -qq "$package=$version") >"$top/src/$package.log" 2>&1 && continue 2
        echo "fetch: $package $version: $(grep -m 1 '^E:' "$top/src/$package.log")" >&2
    done
    echo "fetch: $package cannot be fetched; unpack its source as $top/src/$package-VERSION" >&2
    exit 1
done
