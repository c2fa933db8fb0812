#!/usr/bin/env bash
# Measures nc2zarr, rechunk and readbench against their peers and the roofline.
#
#     scripts/bench/run.sh BUILD [QUICK] [bench.py's options]
#     scripts/bench/run.sh BUILD scale [QUICK] [cores.py's options]
#
# With `scale` the programs alone, beside bare loops, on one core up to all of them.
# Writes BUILD/bench/report.md and report.json.  QUICK=1: under two minutes once
# the virtual environment is there.  CHUNKMILL_VENV names one that has what
# requirements.txt lists; otherwise one is made in BUILD/bench/venv.
set -eu
cd "$(dirname "$0")/../.."
build=${1:?usage: scripts/bench/run.sh BUILD [QUICK]}
shift
program=bench.py
[ "${1:-}" != scale ] || { program=cores.py && shift; }
options=()
case ${1:-} in
    1) options+=(--quick) && shift ;;
    0 | "") shift $(($# > 0)) ;;
esac
mkdir -p "$build/bench"
build=$(cd "$build" && pwd)

# For this machine: the roofline is the best that it can do.
# shellcheck disable=SC2046 # words
"${CC:-cc}" -std=c11 -D_GNU_SOURCE -O3 -march=native -Wall -Wextra -pthread -o "$build/bench/roofline" \
    scripts/bench/roofline.c scripts/bench/roofline_plan.c scripts/bench/loops.c $(pkg-config --cflags --libs libdeflate libzstd)
# shellcheck disable=SC2046 # words
"${CC:-cc}" -std=c11 -D_GNU_SOURCE -O3 -march=native -Wall -Wextra -pthread -o "$build/bench/read_roofline" \
    scripts/bench/read_roofline.c scripts/bench/loops.c $(pkg-config --cflags --libs libzstd)
# shellcheck disable=SC2046 # words
"${CC:-cc}" -std=c11 -D_GNU_SOURCE -O3 -march=native -Wall -Wextra -o "$build/bench/survey_loop" \
    scripts/bench/survey_loop.c $(pkg-config --cflags --libs netcdf)

# fill FOLDER REQUIREMENTS: a virtual environment that has them, made once.
fill() {
    local stamp
    stamp=$({ python3 -c 'import sys; print(sys.version)'; cat "$2"; } | sha256sum)
    [ "$(cat "$1/chunkmill-stamp" 2>/dev/null)" != "$stamp" ] || return 0
    echo "bench: filling the virtual environment $1 (once)"
    python3 -m venv --clear "$1" &&
        "$1/bin/python" -m pip install --quiet --disable-pip-version-check -r "$2" &&
        echo "$stamp" >"$1/chunkmill-stamp"
}

venv=${CHUNKMILL_VENV:-$build/bench/venv}
[ -n "${CHUNKMILL_VENV:-}" ] || fill "$venv" scripts/bench/requirements.txt
# rechunker knows Zarr version 2 only, and needs an older zarr-python; without it one contender is missing.
if [ "$program" = cores.py ]; then
    :
elif fill "$build/bench/venv-rechunker" scripts/bench/requirements-rechunker.txt; then
    export BENCH_RECHUNKER_PYTHON="$build/bench/venv-rechunker/bin/python"
else
    echo "bench: rechunker could not be installed"
fi

export BENCH_PYTHON="$venv/bin/python"
# The system's own Python starts in less memory than one with packages.
exec python3 -B "scripts/bench/$program" "$build" ${options[@]+"${options[@]}"} "$@"
