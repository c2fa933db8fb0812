#!/bin/sh
# scripts/lint.sh BUILD: checks that the layers hold and the sources are formatted.  BUILD has the objects of
# `make all`, in which calls between files are found.
#
# The table below is the architecture: a file in the folder on the left may
# include headers only from the folders on the right (and its own).
set -eu
cd "$(dirname "$0")/.."
build=${1:?usage: scripts/lint.sh BUILD}

fail=0
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# Where git refuses to read the checkout, as that of another user, or there is none, an index is made
# for this run: what finds no file would find no fault either.
if ! git ls-files >/dev/null 2>&1; then
    export GIT_DIR="$tmp/git" GIT_WORK_TREE="$PWD"
    git init -q && git add -A
fi
[ -n "$(git ls-files 'lib/*.c')" ] || { echo "lint: git lists no source here" >&2; exit 1; }

complain() {
    echo "lint: $*" >&2
    fail=1
}

# These answer in $reply: a subshell for each of thousands of lines takes longer than all the rest.
allowed() {
    case $1 in
    base) reply="base" ;;
    model) reply="model base" ;;
    codec) reply="codec model base" ;;
    store) reply="store base" ;;
    plan) reply="plan model base" ;;
    format) reply="format codec store model base" ;;
    gpu) reply="gpu model base" ;;
    watch) reply="watch format codec store plan model base" ;;
    options) reply="options watch format codec store plan model base" ;;
    engine) reply="engine watch format codec store plan model base" ;;
    chunkcalc) reply="chunkcalc options watch format codec store plan model base" ;;
    digest) reply="digest options watch format codec store plan model base" ;;
    passport) reply="passport digest options watch format codec store plan model base" ;;
    load) reply="load gpu options watch format codec store plan model base" ;;
    archive) reply="archive options watch format codec store plan model base" ;;
    convert) reply="convert passport digest chunkcalc engine options watch format codec store plan model base" ;;
    bench) reply="bench load gpu chunkcalc options watch format codec store plan model base" ;;
    *) reply="" ;;
    esac
}

# FOLDER/NAME for each NAME.
inside() { # FOLDER NAME...
    reply=$1
    for name in $(shift && echo "$@"); do reply="$reply $1/$name"; done
}

# Folders inside a layer that may include only these of its folders.
allowed_inside() {
    case $1 in
    load/workers) reply="load/workers" ;;
    load/reader) reply="load/workers load/reader" ;;
    load/batches) reply="load/workers load/reader load/batches" ;;
    archive/survey) inside archive survey ;;
    archive/tables) inside archive survey tables ;;
    archive/axes) inside archive survey tables axes ;;
    archive/fields) inside archive survey tables axes fields ;;
    convert/beside) inside convert beside ;;
    convert/source) inside convert beside source ;;
    convert/select) inside convert source select ;;
    convert/stack) inside convert source select stack ;;
    convert/layout) inside convert source select layout ;;
    convert/statistics) inside convert source select layout statistics ;;
    convert/passport) inside convert source select layout passport ;;
    convert/plan) inside convert source select layout statistics passport plan ;;
    convert/move) inside convert source select layout statistics passport plan move ;;
    convert/verify) inside convert source select layout plan move verify ;;
    convert/sink/*) inside convert beside source select stack layout statistics passport plan move verify sink sink/store sink/part sink/growth sink/references sink/icechunk sink/nothing ;;
    *) reply="" ;;
    esac
}

# Third-party headers and the only folders that may include them.
third_party() {
    case $1 in
    netcdf*.h | hdf5.h | H5*.h) reply="lib/format/nc/" ;;
    json-c/* | json.h) reply="lib/base/json.c" ;;
    xxhash.h) reply="lib/base/xxh128.c" ;;
    zstd.h | blosc.h | libdeflate.h | lz4.h | lz4hc.h | bzlib.h | libaec.h | szlib.h) reply="lib/codec/" ;;
    curl/*) reply="lib/store/net/" ;;
    expat*.h) reply="lib/store/net/xml.c" ;;
    liburing.h | linux/io_uring.h) reply="lib/store/uring.c" ;;
    *) reply="" ;;
    esac
}

while IFS=: read -r file header; do
    layer=${file#*/} folder=${file#lib/} top=${header%%/*}
    layer=${layer%%/*} folder=${folder%/*}
    case $top in
    base | model | codec | store | plan | format | gpu | watch | options | engine | chunkcalc | digest | passport | \
        load | archive | convert | bench)
        [ "$layer" != chunkmill ] || complain "$file includes $header: public headers stand alone"
        allowed "$layer"
        case " $reply " in
        *" $top "*) ;;
        *) complain "$file includes $header: $layer lies below $top or beside it" ;;
        esac
        ;;
    esac
    allowed_inside "$folder"
    case "$reply:$header" in
    ?*:"${folder%%/*}"/*)
        case " $reply " in
        *" ${header%/*} "*) ;;
        *) complain "$file includes $header: ${folder} does not know ${header%/*}" ;;
        esac
        ;;
    esac
    third_party "$header"
    case $file in "$reply"*) ;; *) complain "$file includes $header, which belongs in $reply" ;; esac
done <<EOF
$(git grep --untracked -E '^#include [<"][^>"]*[>"]' -- 'lib/*.[ch]' 'include/*.h' | sed 's/:#include [<"]\([^>"]*\)[>"].*/:\1/')
EOF

# The library states facts and names settings by their fields; the programs name their options.
git grep -nE '"[^"]*--[a-z]' -- 'lib/*.[ch]' >&2 &&
    complain "the library names an option of a program" || :

# A setting that a message names is a field that a row of an option table sets.
settings=$(git grep -hoE '(VALUE|COMMON)\(([a-z_]+\.)?[a-z_]+' -- tools | sed 's/.*[(.]//' | sort -u)
git grep -hoE '"[^"]*`[^"]*"' -- 'lib/*.[ch]' | grep -oE '`[^`]*`' | tr -d '`' | sort -u >"$tmp/named"
for name in $(printf '%s\n' "$settings" | comm -13 - "$tmp/named"); do
    complain "a message names \`$name\`, which no option sets"
done

# Text from outside reaches a terminal through cm_print, cm_say and tables alone, which show what would
# control it.  The others write documents with escapes of their own, or texts of the program.
git grep -nE '\b(v?f?printf|v?dprintf)\(|\b(fputs|puts)\([a-zA-Z_>.-]+(\[[a-z]+\])?[,)]' -- 'tools/*.c' |
    grep -vE '^tools/(common/(canvas|complete|help|options|naming|page[a-z_]*|part|passport_[a-z_]*|print|say|say_print)|readbench/(chrome|csv|events|files|guide|page[a-z_]*))\.c:' >&2 &&
    complain "a program prints text that may come from outside: call cm_print" || :

# What a message says is for people: code asks for the status, or for a field of the error.
git grep -nE 'str(str|n?cmp)\((err|error)(->|\.)text' -- lib ':!lib/base/error.c' >&2 &&
    complain "a decision on the text of a message" || :

# The same width for code and comments.
git ls-files -co --exclude-standard '*.[ch]' |
    xargs awk 'length > 100 { print FILENAME ":" FNR ": more than 100 columns"; bad = 1 } END { exit bad }' >&2 ||
    complain "lines are too long"

# The engine sees arrays and targets, no format.
git grep -nE '^#include "format/(nc|zarr|multi)/' -- 'lib/engine/*' >&2 &&
    complain "lib/engine includes a format" || :

# What is loaded comes by cm_dataset, whatever holds it.
git grep -nE '"format/(nc|zarr|multi)/|cm_(nc|zarr|multi)_' -- lib/load lib/bench lib/engine lib/watch >&2 &&
    complain "loading and measuring know a format" || :

# In these folders a file and its header know others, but never in a circle.
for folder in base engine watch; do
    circle=$(git ls-files -co --exclude-standard "lib/$folder/*.[ch]" | xargs grep -HoE '^#include "[a-z0-9_/]+' |
        sed -E 's#^lib/([^:]*)\.[ch]:\#include "#\1 #' | awk -v in_folder="$folder/" '$1 != $2 && index($2, in_folder) == 1' |
        sort -u | tsort 2>&1 >/dev/null | sed 's/^tsort: //' | tr '\n' ' ')
    [ -z "$circle" ] || complain "a circle of includes: ${circle#*loop: }"
done

# Nor do files call each other in a circle, but for those that stand on a list; and names of files are those of today.
scripts/circles.py "$build" || fail=1
scripts/named_files.py || fail=1

# Comments name the thing first: in each folder fewer do not, never more.
scripts/comments.py || fail=1

# A name belongs to one type.  Those without cm_ are a file's own.
for name in $(git ls-files -co --exclude-standard 'lib/*.[ch]' 'tools/*.[ch]' 'include/*.h' |
    xargs sed -nE 's/^(typedef )?(struct|union|enum) (cm_[a-z0-9_]+) \{.*/\3/p' | sort | uniq -d); do
    complain "two types are called $name: $(git grep -lE "^(typedef )?(struct|union|enum) $name \{" -- lib tools include | tr '\n' ' ')"
done

for word in 'printf(' 'fprintf(' 'exit(' 'getenv(' 'setenv(' 'abort('; do
    git grep -nwF -- "$word" -- 'lib/*.c' | grep -vE '(sn|vsn|as|vas|buf_)printf\(|_exit\(|object_abort|://' |
        grep -vE '^[^:]+:[0-9]+: *\*' >&2 && complain "the library calls $word" || :
done

git ls-files 'lib/*.[ch]' 'tools/*.[ch]' 'include/*.h' |
    xargs awk 'FNR == 601 { print FILENAME ": more than 600 lines"; bad = 1 } END { exit bad }' >&2 ||
    complain "files are too long"

# Python says so only when it gets there, which may be in a long test.
if command -v pyflakes3 >/dev/null; then
    ! git ls-files -co --exclude-standard '*.py' | xargs pyflakes3 | grep -E 'undefined name|invalid syntax' >&2 ||
        complain "a script uses what it does not define"
else
    echo "lint: pyflakes3 is not installed, scripts not checked" >&2
fi

if scripts/clang-format.sh --version >/dev/null 2>&1; then
    git ls-files '*.c' '*.h' | xargs scripts/clang-format.sh --dry-run -Werror || complain "run make format"
else
    echo "lint: clang-format 14 is not installed, formatting not checked" >&2
fi

[ $fail -eq 0 ] && echo "lint: clean"
exit $fail
