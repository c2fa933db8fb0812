#!/usr/bin/env bash
# Runs what takes too long for `make check`, one part after another, and counts.
#
#     tests/check_long.sh BUILD [PART...]
#
# PARTS are
#     long    every test, in its long version
#     asan    a build under AddressSanitizer and UBSan: all unit tests, hostile and failing input
#     tsan    a build under ThreadSanitizer: all unit tests, the engine's conversions
# and by default all of these.  .ci/run takes samples (tests/support/sampling.py):
#     ci-long, ci-asan, ci-tsan
# The last line is `N passed, N failed, N skipped` of all parts; the exit status is 1 when anything
# failed.  With CHUNKMILL_FULL=1 (`make check-long FULL=1`) tests try the most: hours instead of minutes.
set -u
cd "$(dirname "$0")/.." || exit 1
build=${1:?usage: tests/check_long.sh BUILD [PART...]}
shift
parts=("$@")
[ $# -gt 0 ] || parts=(long asan tsan)
jobs=$(nproc)
mkdir -p "$build"
passed=0 failed=0 skipped=0

# One part: its output is shown, and its last line counted.
part() {
    local name=$1 log=$build/check-long-$1.log start=$SECONDS status p f s
    shift
    printf '\n== %s\n' "$name"
    "$@" 2>&1 | tee "$log"
    status=${PIPESTATUS[0]}
    if [[ $(tail -n 1 "$log") =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
        p=${BASH_REMATCH[1]} f=${BASH_REMATCH[2]} s=${BASH_REMATCH[3]}
    else
        p=0 f=0 s=0
    fi
    # What did not build, or came to no count, is a failure of its own.
    if [ "$f" -eq 0 ] && { [ "$status" -ne 0 ] || [ $((p + s)) -eq 0 ]; }; then f=1; fi
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    printf '== %s: %d passed, %d failed, %d skipped in %d s\n' "$name" "$p" "$f" "$s" $((SECONDS - start))
}

# The faults that tests/fault/test_io_torture.py injected.
count_faults() {
    cat "$build"/tests/torture/*.json 2>/dev/null | grep -o '"tried": [0-9]*' |
        awk '{ n += $2 } END { if (n) printf "torture: %d faults injected in %d small runs\n", n, NR }'
}

run_plain() { # MODE
    rm -rf "$build/tests/torture"
    make --no-print-directory -j"$jobs" BUILD="$build" test-programs >/dev/null || return 1
    tests/run.sh "$build" "$1"
}

# Builds what a part tests: its NAME, SAN, and the layers whose unit tests run, or all.
build_sanitizer() {
    local layers=()
    [ $# -lt 3 ] || layers=(UNIT_LAYERS="$3")
    # Line numbers are all that reports need of debugging information; with the rest, linking takes longer than tests.
    make --no-print-directory -j"$jobs" SAN="$2" BUILD="$build/$1" CFLAGS="-O1 -g1" "${layers[@]}" test-programs >/dev/null
}

run_sanitizer() { # NAME, SAN, LAYERS
    build_sanitizer "$@" || return 1
    CHUNKMILL_LAYERS=${3:-} tests/run.sh "$build/$1" "$1"
}

threaded="store watch engine load archive convert bench" # where threads meet

# The tests of the part that comes first wait for deadlines and servers half of their time: the sanitizers are
# built meanwhile, by what they leave.  Each part builds what is not there yet, and says what does not build.
ahead=
build_ahead() {
    renice -n 19 $BASHPID >/dev/null
    for name in "${parts[@]}"; do
        case $name in
        asan | ci-asan) build_sanitizer asan address ;;
        tsan) build_sanitizer tsan thread ;;
        ci-tsan) build_sanitizer tsan thread "$threaded" ;;
        esac
    done
} 2>/dev/null
end_ahead() {
    [ -z "$ahead" ] || { kill -- "-$ahead" && wait "$ahead"; } 2>/dev/null
    ahead=
}
case ${parts[0]} in
long | ci-long)
    set -m # a process group of its own, which ends with this script
    build_ahead &
    ahead=$!
    set +m
    trap end_ahead EXIT
    ;;
esac

for name in "${parts[@]}"; do
    case $name in *asan | *tsan) end_ahead ;; esac
    case $name in
    long) part "$name" run_plain long ;;
    ci-long) part "$name" run_plain ci ;;
    asan) CHUNKMILL_ALL=1 part "$name" run_sanitizer asan address ;;
    ci-asan) part "$name" run_sanitizer asan address ;;
    tsan) CHUNKMILL_ALL=1 part "$name" run_sanitizer tsan thread ;;
    ci-tsan) part "$name" run_sanitizer tsan thread "$threaded" ;;
    *)
        echo "check_long: unknown part $name" >&2
        exit 2
        ;;
    esac
done

echo
count_faults
printf '%d passed, %d failed, %d skipped\n' $passed $failed $skipped
[ $failed -eq 0 ]
