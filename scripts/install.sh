#!/bin/sh
# install.sh [--remove] BUILD PREFIX: programs, the loader's library, man pages, completion,
# schemas and the licence, or removes what installing put there.  RUN runs programs of another architecture.
set -eu

remove=
paths=
for arg in "$@"; do
    case $arg in
    --remove) remove=1 ;;
    *) paths="$paths x" ;;
    esac
done
[ "$paths" = " x x" ] || {
    echo "usage: scripts/install.sh [--remove] BUILD PREFIX" >&2
    exit 2
}
[ "$1" = --remove ] && shift
build=$1 prefix=$2
cd "$(dirname "$0")/.."

tools=
for main in tools/*/main.c; do
    tools="$tools $(basename "$(dirname "$main")")"
done

# Each row: where it comes from, where it goes below the prefix, its mode.
rows() {
    for tool in $tools; do
        echo "$build/bin/$tool bin/$tool 755"
        echo "$build/man/$tool.1 share/man/man1/$tool.1 644"
        echo "$build/completion/$tool.bash share/bash-completion/completions/$tool 644"
        echo "$build/completion/$tool.zsh share/zsh/site-functions/_$tool 644"
        echo "$build/completion/$tool.fish share/fish/vendor_completions.d/$tool.fish 644"
        [ ! -e "tools/schema/$tool.json" ] || echo "tools/schema/$tool.json share/chunkmill/$tool.json 644"
    done
    echo "$build/lib/libchunkmill_loader.so.1 lib/libchunkmill_loader.so.1 755"
    # Of a portable build.
    [ ! -e "$build/lib/libchunkmill_deps.so" ] || echo "$build/lib/libchunkmill_deps.so lib/libchunkmill_deps.so 755"
    echo "$build/lib/libchunkmill_loader.so lib/libchunkmill_loader.so link"
    echo "$build/lib/installed.pc lib/pkgconfig/chunkmill-loader.pc 644"
    for header in loader error; do
        echo "include/chunkmill/$header.h include/chunkmill/$header.h 644"
    done
    for page in man/*.[1-9]; do
        [ ! -e "$page" ] || echo "$page share/man/man${page##*.}/$(basename "$page") 644"
    done
    for engine in scripts/engines/*; do
        [ ! -f "$engine" ] || echo "$engine share/chunkmill/engines/$(basename "$engine") 644"
    done
    # All that these pages link to.
    for page in LICENSE README.md CHANGELOG.md CONTRIBUTING.md lib/README.md docs/* examples/* scripts/jobs/*; do
        echo "$page share/doc/chunkmill/$page 644"
    done
}

if [ -n "$remove" ]; then
    rows | while read -r _ to _; do
        [ ! -e "$prefix/$to" ] && [ ! -L "$prefix/$to" ] || { rm -f "$prefix/$to" && echo "removed $prefix/$to"; }
    done
    for folder in include/chunkmill share/chunkmill/engines share/chunkmill \
        share/doc/chunkmill/docs share/doc/chunkmill/examples share/doc/chunkmill/lib \
        share/doc/chunkmill/scripts/jobs share/doc/chunkmill/scripts share/doc/chunkmill; do
        [ ! -d "$prefix/$folder" ] || rmdir "$prefix/$folder" 2>/dev/null || true
    done
    exit 0
fi

# Man pages and completion come from the programs' own option tables.
mkdir -p "$build/man" "$build/completion"
for tool in $tools; do
    ${RUN-} "$build/bin/$tool" --generate man <"man/$tool.inc" >"$build/man/$tool.1"
    for shell in bash zsh fish; do
        ${RUN-} "$build/bin/$tool" --generate $shell >"$build/completion/$tool.$shell"
    done
done
# Wherever the prefix is, the library lies beside it.
sed -e 's|@PREFIX@|${pcfiledir}/../..|; s|@LIBDIR@|${prefix}/lib|' -e "s|@VERSION@|$(cat VERSION)|" \
    scripts/chunkmill-loader.pc.in >"$build/lib/installed.pc"
rows | while read -r from to mode; do
    mkdir -p "$prefix/$(dirname "$to")"
    if [ "$mode" = link ]; then
        ln -sfn "$(readlink "$from")" "$prefix/$to"
        echo "installed $prefix/$to"
        continue
    fi
    # A new file is renamed over the old: a program that is running keeps its own.
    cp "$from" "$prefix/$to.new"
    chmod "$mode" "$prefix/$to.new"
    mv "$prefix/$to.new" "$prefix/$to"
    echo "installed $prefix/$to"
done
