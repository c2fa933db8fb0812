#!/usr/bin/env bash
# Builds the fuzzers with clang and runs them one after the other.
#
#     tests/fuzz/run.sh BUILD [SECONDS [FUZZER...]]
#
# SECONDS are those of all runs together.  Inputs that find something new are kept in
# BUILD/fuzz/corpus/NAME and start the next run; what fails is left in BUILD/fuzz/failed.
# The last lines count executions.
set -eu
cd "$(dirname "$0")/../.."
build=${1:?usage: tests/fuzz/run.sh BUILD [SECONDS [FUZZER...]]}/fuzz
seconds=${2:-600}
shift $(($# > 1 ? 2 : 1))
[ $# -gt 0 ] || set -- $(basename -s .c tests/fuzz/fuzz_*.c)
command -v clang >/dev/null || {
    echo "fuzz: clang is not installed (packages clang and libclang-rt-dev)" >&2
    exit 1
}
flags="-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined"
make --no-print-directory -j"${JOBS:-$(nproc)}" CC=clang CFLAGS="$flags -fsanitize=fuzzer-no-link" LDFLAGS="$flags -fsanitize=fuzzer" \
    BUILD="$build" NODEPS=1 FUZZ_ENGINE=1 fuzzers
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export LSAN_OPTIONS=suppressions=$PWD/tests/support/lsan.supp:print_suppressions=0
each=$((seconds / $# > 0 ? seconds / $# : 1))
mkdir -p "$build/failed" "$build/logs"
total=0 failed=0
for name; do
    dictionary=
    for dict in tests/fuzz/dict/*.dict; do
        case " $(sed -n 's/^# for: //p' "$dict") " in *" $name "*) dictionary=-dict=$dict ;; esac
    done
    mkdir -p "$build/corpus/$name"
    # Documents and chunks that people write by hand are small; a plain NetCDF-4 file is not.
    longest=4096
    [ "$name" != fuzz_h5plain ] || longest=65536
    if "$build/tests/fuzz/$name" -max_total_time="$each" -max_len=$longest -timeout=20 -rss_limit_mb=2048 \
        -malloc_limit_mb=512 -print_final_stats=1 -artifact_prefix="$build/failed/$name-" $dictionary \
        "$build/corpus/$name" "tests/fuzz/corpus/$name" </dev/null >"$build/logs/$name.log" 2>&1; then
        word=passed
    else
        word=FAILED failed=$((failed + 1))
        tail -n 30 "$build/logs/$name.log"
    fi
    n=$(sed -n 's/^stat::number_of_executed_units: *//p' "$build/logs/$name.log")
    total=$((total + ${n:-0}))
    printf '%-20s %s %12s executions, %s s\n' "$name" "$word" "${n:-unknown}" "$each"
done
printf '%d fuzzers, %d failed, %d executions\n' $# $failed $total
[ $failed -eq 0 ]
