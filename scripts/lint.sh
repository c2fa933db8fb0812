#!/bin/sh
# Checks that the layers hold and the sources are formatted.
#
# The table below is the architecture: a file in the folder on the left may
# include headers only from the folders on the right (and its own).
set -eu
cd "$(dirname "$0")/.."

fail=0
complain() {
    echo "lint: $*" >&2
    fail=1
}

allowed() {
    case $1 in
    base) echo "base" ;;
    model) echo "model base" ;;
    codec) echo "codec model base" ;;
    store) echo "store base" ;;
    plan) echo "plan model base" ;;
    format) echo "format codec store model base" ;;
    gpu) echo "gpu model base" ;;
    exec) echo "exec gpu format codec store plan model base" ;;
    job) echo "job exec gpu format codec store plan model base" ;;
    esac
}

# Folders inside a layer that may include only these of its folders.
allowed_inside() {
    case $1 in
    exec/engine) echo "exec/engine exec/watch" ;;
    exec/load) echo "exec/load exec/watch" ;;
    exec/watch) echo "exec/watch" ;;
    job/common) echo "job/common" ;;
    job/chunkcalc) echo "job/common job/chunkcalc" ;;
    job/loader) echo "job/common job/loader" ;;
    job/readbench) echo "job/common job/loader job/readbench" ;;
    job/transform) echo "job/common job/transform" ;;
    esac
}

# Third-party headers and the only folders that may include them.
third_party() {
    case $1 in
    netcdf*.h | hdf5.h | H5*.h) echo "lib/format/nc/" ;;
    json-c/* | json.h) echo "lib/base/json.c" ;;
    zstd.h | blosc.h | libdeflate.h | lz4.h | lz4hc.h | bzlib.h | libaec.h | szlib.h) echo "lib/codec/" ;;
    curl/*) echo "lib/store/net/" ;;
    expat*.h) echo "lib/store/net/xml.c" ;;
    liburing.h | linux/io_uring.h) echo "lib/store/uring.c" ;;
    esac
}

for file in $(git ls-files -co --exclude-standard 'lib/*.c' 'lib/*.h' 'include/*.h'); do
    layer=$(echo "$file" | cut -d/ -f2)
    folder=$(dirname "${file#lib/}")
    siblings=$(allowed_inside "$folder")
    for header in $(sed -n 's/^#include [<"]\([^>"]*\)[>"].*/\1/p' "$file"); do
        top=${header%%/*}
        case $top in
        base | model | codec | store | plan | format | gpu | exec | job)
            [ "$layer" != chunkmill ] || complain "$file includes $header: public headers stand alone"
            case " $(allowed "$layer") " in
            *" $top "*) ;;
            *) complain "$file includes $header: $layer lies below $top or beside it" ;;
            esac
            ;;
        esac
        case "$siblings:$header" in
        ?*:"${folder%%/*}"/*)
            case " $siblings " in
            *" ${header%/*} "*) ;;
            *) complain "$file includes $header: ${folder} does not know ${header%/*}" ;;
            esac
            ;;
        esac
        home=$(third_party "$header")
        case $home in
        "") ;;
        *) case $file in "$home"*) ;; *) complain "$file includes $header, which belongs in $home" ;; esac ;;
        esac
    done
done

git grep -nE '^#include <cairo' -- lib tools ':!tools/common/canvas.c' >&2 && complain "only tools/common/canvas.c draws with cairo" || :

# The library states facts and names settings by their fields; the programs name their options.
git grep -nE '"[^"]*--[a-z]' -- 'lib/*.[ch]' >&2 &&
    complain "the library names an option of a program" || :

# A setting that a message names is a field that a row of an option table sets.
settings=$(git grep -hoE '(VALUE|COMMON)\(([a-z_]+\.)?[a-z_]+' -- tools | sed 's/.*[(.]//' | sort -u)
for name in $(git grep -hoE '"[^"]*`[^"]*"' -- 'lib/*.[ch]' | grep -oE '`[^`]*`' | tr -d '`' | sort -u); do
    printf '%s\n' "$settings" | grep -qxF "$name" || complain "a message names \`$name\`, which no option sets"
done

# What a message says is for people: code asks for the status, or for a field of the error.
git grep -nE 'str(str|n?cmp)\((err|error)(->|\.)text' -- lib ':!lib/base/error.c' >&2 &&
    complain "a decision on the text of a message" || :

# The same width for code and comments.
git ls-files -co --exclude-standard '*.[ch]' |
    xargs awk 'length > 100 { print FILENAME ":" FNR ": more than 100 columns"; bad = 1 } END { exit bad }' >&2 ||
    complain "lines are too long"

# The engine sees arrays and targets, no format.
git grep -nE '^#include "format/(nc|zarr|multi)/' -- 'lib/exec/engine/*' >&2 &&
    complain "lib/exec/engine includes a format" || :

# What is loaded comes by cm_dataset, whatever holds it.
git grep -nE '"format/(nc|zarr|multi)/|cm_(nc|zarr|multi)_' -- lib/job/loader lib/job/readbench lib/exec >&2 &&
    complain "loading and measuring know a format" || :

# In these folders a file and its header know others, but never in a circle.
for folder in base exec/engine exec/watch; do
    circle=$(git ls-files -co --exclude-standard "lib/$folder/*.[ch]" | xargs grep -HoE '^#include "[a-z0-9_/]+' |
        sed -E 's#^lib/([^:]*)\.[ch]:\#include "#\1 #' | awk -v in_folder="$folder/" '$1 != $2 && index($2, in_folder) == 1' |
        sort -u | tsort 2>&1 >/dev/null | sed 's/^tsort: //' | tr '\n' ' ')
    [ -z "$circle" ] || complain "a circle of includes: ${circle#*loop: }"
done

# A name belongs to one type.  Those without cm_ are a file's own.
for name in $(git ls-files -co --exclude-standard 'lib/*.[ch]' 'tools/*.[ch]' 'include/*.h' |
    xargs sed -nE 's/^(typedef )?(struct|union|enum) (cm_[a-z0-9_]+) \{.*/\3/p' | sort | uniq -d); do
    complain "two types are called $name: $(git grep -lE "^(typedef )?(struct|union|enum) $name \{" -- lib tools include | tr '\n' ' ')"
done

for word in 'printf(' 'fprintf(' 'exit(' 'getenv(' 'setenv(' 'abort('; do
    git grep -nwF -- "$word" -- 'lib/*.c' | grep -vE '(sn|vsn|as|vas|buf_)printf\(|_exit\(|object_abort|://' |
        grep -vE '^[^:]+:[0-9]+: *\*' >&2 && complain "the library calls $word" || :
done

for file in $(git ls-files 'lib/*.[ch]' 'tools/*.[ch]' 'include/*.h'); do
    [ "$(wc -l <"$file")" -le 600 ] || complain "$file has more than 600 lines"
done

if scripts/clang-format.sh --version >/dev/null 2>&1; then
    git ls-files '*.c' '*.h' | xargs scripts/clang-format.sh --dry-run -Werror || complain "run make format"
else
    echo "lint: clang-format 14 is not installed, formatting not checked" >&2
fi

[ $fail -eq 0 ] && echo "lint: clean"
exit $fail
