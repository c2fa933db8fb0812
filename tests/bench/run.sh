#!/usr/bin/env bash
# Measures nc2zarr against its peers and the roofline.
#
#     tests/bench/run.sh BUILD [QUICK] [bench.py's options]
#
# Writes BUILD/bench/report.md and report.json.  QUICK=1: under two minutes once
# the virtual environment is there.  CHUNKMILL_VENV names one that has what
# requirements.txt lists; otherwise one is made in BUILD/bench/venv.
set -eu
cd "$(dirname "$0")/../.."
build=${1:?usage: tests/bench/run.sh BUILD [QUICK]}
shift
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
    tests/bench/roofline.c tests/bench/loops.c $(pkg-config --cflags --libs libdeflate libzstd)

venv=${CHUNKMILL_VENV:-$build/bench/venv}
if [ -z "${CHUNKMILL_VENV:-}" ]; then
    stamp=$({ python3 -c 'import sys; print(sys.version)'; cat tests/bench/requirements.txt; } | sha256sum)
    if [ "$(cat "$venv/chunkmill-stamp" 2>/dev/null)" != "$stamp" ]; then
        echo "bench: filling the virtual environment $venv (once)"
        python3 -m venv --clear "$venv"
        "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r tests/bench/requirements.txt
        echo "$stamp" >"$venv/chunkmill-stamp"
    fi
fi

export BENCH_PYTHON="$venv/bin/python"
# The system's own Python starts in less memory than one with packages.
exec python3 -B tests/bench/bench.py "$build" ${options[@]+"${options[@]}"} "$@"
