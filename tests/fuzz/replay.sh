#!/usr/bin/env bash
# Gives every fuzzer its committed inputs, and variants of them, without a fuzzer's engine.
#
#     tests/fuzz/replay.sh BUILD
#
# The fuzzers are those that `make fuzzers` builds.  The last line counts.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${1:?usage: tests/fuzz/replay.sh BUILD}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0 failed=0 inputs=0
for source in tests/fuzz/fuzz_*.c; do
    name=$(basename "$source" .c)
    if "$build/tests/fuzz/$name" "tests/fuzz/corpus/$name" >"$log" 2>&1 </dev/null &&
        n=$(sed -n 's/^\([0-9]\+\) inputs from .*/\1/p' "$log") && [ -n "$n" ]; then
        passed=$((passed + 1)) inputs=$((inputs + n))
    else
        failed=$((failed + 1))
        echo "FAILED $name"
        tail -n 20 "$log"
    fi
done
echo "fuzz replay: $passed passed, $failed failed, $inputs inputs"
[ $failed -eq 0 ]
