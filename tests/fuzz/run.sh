#!/usr/bin/env bash
# Builds the fuzzers with clang and runs each for a while.
#
#     tests/fuzz/run.sh BUILD [SECONDS]
#
# Inputs that find something new are kept in BUILD/fuzz/corpus/NAME and start the
# next run; what crashes is left in BUILD/fuzz.
set -eu
cd "$(dirname "$0")/../.."
build=${1:?usage: tests/fuzz/run.sh BUILD [SECONDS]}/fuzz
seconds=${2:-60}
command -v clang >/dev/null || {
    echo "fuzz: clang is not installed (packages clang and libclang-rt-dev)" >&2
    exit 1
}
flags="-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -fsanitize=fuzzer-no-link"
make --no-print-directory -j"$(nproc)" CC=clang CFLAGS="$flags" BUILD="$build" NODEPS=1 lib
archives=
for layer in job exec format codec store plan model base; do
    archives="$archives $build/lib/libcm_$layer.a"
done
libraries="$(pkg-config --cflags --libs netcdf hdf5 libzstd blosc libdeflate json-c liblz4) -lbz2 -laec -lm -ldl -pthread"
for source in tests/fuzz/fuzz_*.c; do
    name=$(basename "$source" .c)
    mkdir -p "$build/corpus/$name"
    echo "== $name, $seconds seconds"
    # shellcheck disable=SC2086 # lists of words
    clang -std=c11 -D_GNU_SOURCE -Iinclude -Ilib $flags -fsanitize=fuzzer -o "$build/$name" "$source" $archives $libraries
    (cd "$build" && ASAN_OPTIONS=detect_leaks=1 "./$name" -max_total_time="$seconds" -rss_limit_mb=2048 "corpus/$name")
done
