#!/usr/bin/env bash
# Runs tests and counts.
#
#     tests/run.sh BUILD          all unit tests, the fuzzers' inputs, then of all pytest suites what
#                                 tests/support/sampling.py chooses
#     tests/run.sh BUILD long     the same without a choice, in long versions; with CHUNKMILL_FULL=1 in the longest
#     tests/run.sh BUILD asan     all unit tests, the fuzzers' inputs, and the pytest suites that meet hostile or failing input
#     tests/run.sh BUILD tsan     all unit tests, and the pytest tests marked `engine`
#     tests/run.sh BUILD ci       the pytest tests that are long, and a sample of which .ci/run takes
#
# The last line is `N passed, N failed, N skipped`; the exit status is 1 when
# anything failed.  Logs are kept in BUILD/tests/logs.  CHUNKMILL_VENV names a
# virtual environment to use (or to make) instead of BUILD/venv; the servers that `long`
# starts lie in another beside it, CHUNKMILL_VENV-servers.  CHUNKMILL_TESTS_TMP is where the
# tests' files are made (BUILD/tests), CHUNKMILL_WORKERS how many pytest processes run (the CPUs and one or two; 0: a single
# one for each folder of tests, in turn, for machines of little memory), CHUNKMILL_LAYERS the layers whose unit tests run (all).
set -u
cd "$(dirname "$0")/.." || exit 1
build=${1:?usage: tests/run.sh BUILD [long|asan|tsan|ci]}
mode=${2:-all}
logs=$build/tests/logs
layers=${CHUNKMILL_LAYERS:-base model codec store plan format gpu watch options engine chunkcalc load archive convert bench tools}
suites=(tests) select=()
case $mode in
all) ;;
long) logs=$logs-long ;;
ci) logs=$logs-ci layers="" ;;
# Hostile files and failing systems are where memory errors hide; that good input converts
# well is checked without a sanitizer, and by `make asan`, which runs everything.
asan)
    suites=(tests/fault tests/cli/nc2zarr/test_hostile_shapes.py tests/cli/nc2zarr/test_long_elements.py tests/cli/nc2zarr/test_names.py
        tests/cli/common/test_refusals.py tests/cli/rechunk/test_rechunk.py tests/cli/rechunk/test_rechunk_edges.py tests/cli/nc2zarr/test_nc2zarr.py
        tests/interop/test_zarr_roundtrip.py tests/interop/test_checkers.py)
    ;;
tsan)
    mapfile -t suites < <(grep -rlF 'pytest.mark.engine' tests --include='test_*.py')
    select=(-m engine)
    ;;
*) echo "tests/run.sh: unknown mode $mode" >&2 && exit 2 ;;
esac
mkdir -p "$logs"
rm -f "$logs"/*
echo "testing $build ($mode); logs in $logs"
passed=0 failed=0 skipped=0

# Exit status 99 is a sanitizer's alone, so that no expected failure hides one.
export ASAN_OPTIONS="exitcode=99:detect_leaks=1:allocator_may_return_null=1${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
export UBSAN_OPTIONS="exitcode=99:print_stacktrace=1:halt_on_error=1${UBSAN_OPTIONS:+:$UBSAN_OPTIONS}"
export TSAN_OPTIONS="exitcode=99${TSAN_OPTIONS:+:$TSAN_OPTIONS}"
export LSAN_OPTIONS="suppressions=$PWD/tests/support/lsan.supp:print_suppressions=0${LSAN_OPTIONS:+:$LSAN_OPTIONS}"
export CHUNKMILL_BUILD
# Tests read these where they have a short and a long version, and tests/support/sampling.py does.
unset CHUNKMILL_LONG CHUNKMILL_CI
case $mode in
long) export CHUNKMILL_LONG=1 ;;
ci) export CHUNKMILL_CI=1 ;;
esac
case $build in /*) CHUNKMILL_BUILD=$build ;; *) CHUNKMILL_BUILD=$PWD/$build ;; esac

# ThreadSanitizer cannot place its shadow under the wider address randomisation
# of new kernels.
wrap=()
if [ "$mode" = tsan ]; then
    if setarch "$(uname -m)" -R true 2>/dev/null; then wrap=(setarch "$(uname -m)" -R); fi
fi

# ---- unit tests: cmocka speaks TAP --------------------------------------------------------------

# LOG -> "passed failed skipped"; tests that were announced and never reported count as failed.
count_tap() {
    awk '/^1\.\.[0-9]+/ { split($0, p, /\.\./); plan += p[2] }
         /^(not )?ok .*# ?SKIP/ { s++; next }
         /^ok / { ok++ }
         /^not ok / { bad++ }
         END { lost = plan - ok - bad - s; print ok + 0, bad + (lost > 0 ? lost : 0), s + 0 }' "$1"
}

# As many programs at once as there are CPUs.  xargs runs them, for jobs of this shell would ignore SIGINT.
try_unit() { # BIN LOG
    # shellcheck disable=SC2086 # words
    CMOCKA_MESSAGE_OUTPUT=tap timeout "$unit_limit" $wrapped "$1" >"$2" 2>&1
    echo $? >"$2.status"
}
try_fuzzer() { # NAME LOG
    timeout 1800 "$build/tests/fuzz/$1" "tests/fuzz/corpus/$1" >"$2" 2>&1 </dev/null
    echo $? >"$2.status"
}
# A line every ten seconds while programs run, with counts; each writes a .status when it is done.
tell_progress() { # WHAT COUNT
    local start=$SECONDS
    while sleep 10 >/dev/null 2>&1; do # a sleep that outlives this holds nobody's pipe
        printf '  %d of %d %s, %d s\n' "$(find "$logs" -name '*.status' | wc -l)" "$2" "$1" $((SECONDS - start))
    done
}
stop_progress() {
    [ -z "$teller" ] || { kill "$teller" && wait "$teller"; } 2>/dev/null
    teller=
}
teller=
trap stop_progress EXIT
at_once() { # FUNCTION, WHAT it runs and how many; the arguments of each call come on two lines
    tell_progress "$2" "$3" &
    teller=$!
    xargs -r -d '\n' -n 2 -P "$(nproc)" bash -c "$1"' "$@"' bash
    stop_progress
}
wrapped=${wrap[*]-}
# For what hangs, and for nothing else: with a sanitizer, on a busy machine, a program may take minutes.
unit_limit=1800
export build wrapped unit_limit
export -f try_unit try_fuzzer

unit_name() {
    local name=${1#"$build"/tests/}
    echo "${name#unit/}"
}

unit_log() {
    local name
    name=$(unit_name "$1")
    echo "$logs/unit-${name//\//-}.log"
}

# What is said once more at the end, for a log of which only that was kept: each test that failed
# with what it said, or how a program ended that did not say which.
note_failure() { # NAME LOG
    local said
    said=$({ grep -aE -A 4 '^not ok ' "$2"; grep -aE '^ERROR: |Sanitizer: |runtime error: ' "$2"; } |
        grep -avE '^(ok |--$)' | head -n 40)
    [ -n "$said" ] || said=$(tail -n 8 "$2")
    { printf 'FAILED %s\n' "$1" && printf '%s\n' "$said" | cut -c1-400 | sed 's/^/    /'; } >>"$logs/failures"
}

judge_unit() {
    local bin=$1 name log status p f s
    name=$(unit_name "$bin") log=$(unit_log "$bin")
    status=$(cat "$log.status" 2>/dev/null || echo 1)
    rm -f "$log.status"
    read -r p f s < <(count_tap "$log")
    # A binary that crashed, leaked or printed no result is a failure of its own.
    if [ $((p + f + s)) -eq 0 ] || { [ "$status" -ne 0 ] && [ "$f" -eq 0 ]; }; then f=$((f + 1)); fi
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    if [ "$f" -gt 0 ]; then
        printf '\nFAILED unit %s (exit status %d, log %s)\n' "$name" "$status" "$log"
        grep -vE '^(ok |1\.\.)' "$log" | head -n 60
        note_failure "unit $name (exit status $status)" "$log"
    fi
    grep -E '^(not )?ok .*# ?SKIP' "$log" | sed "s|^|skipped unit $name: |"
}

units=()
for layer in $layers; do
    for source in tests/unit/"$layer"/test_*.c tests/"$layer"/test_*.c; do
        [ -e "$source" ] || continue
        bin=$build/${source%.c}
        if [ -x "$bin" ]; then
            units+=("$bin")
        else
            echo "FAILED unit $layer: $bin was not built" | tee -a "$logs/failures"
            failed=$((failed + 1))
        fi
    done
done
at_once try_unit "unit test programs" ${#units[@]} < <(
    for bin in ${units[@]+"${units[@]}"}; do printf '%s\n%s\n' "$bin" "$(unit_log "$bin")"; done
)
for bin in ${units[@]+"${units[@]}"}; do judge_unit "$bin"; done

# ---- fuzzers: their committed inputs ------------------------------------------------------------

judge_fuzzer() {
    local name=$1 log=$logs/$1.log
    if [ "$(cat "$log.status" 2>/dev/null)" = 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf '\nFAILED %s (log %s)\n' "$name" "$log"
        tail -n 30 "$log"
        note_failure "$name" "$log"
    fi
    rm -f "$log.status"
}

fuzzers=()
case $mode in
all | long | asan) for source in tests/fuzz/fuzz_*.c; do fuzzers+=("$(basename "$source" .c)"); done ;;
esac
at_once try_fuzzer "fuzzers' inputs" ${#fuzzers[@]} < <(
    for name in ${fuzzers[@]+"${fuzzers[@]}"}; do printf '%s\n%s\n' "$name" "$logs/$name.log"; done
)
for name in ${fuzzers[@]+"${fuzzers[@]}"}; do judge_fuzzer "$name"; done
[ ${#units[@]} -eq 0 ] || printf 'unit tests and fuzzers: %d passed, %d failed, %d skipped\n' $passed $failed $skipped

# ---- pytest: in a virtual environment that is made here -----------------------------------------

venv=${CHUNKMILL_VENV:-$build/venv}

# Fills the environment $1 from the file $2, or says in $reason why not.  The stamp is a hash of what was asked for.
make_venv() {
    local folder=$1 requirements=$2 log=$logs/$(basename "$1").log stamp
    if ! command -v python3 >/dev/null; then reason="python3 is not installed"; return 1; fi
    stamp=$({ python3 -c 'import sys; print(sys.version)'; cat "$requirements"; } | sha256sum | cut -c1-64)
    [ "$(cat "$folder/chunkmill-stamp" 2>/dev/null)" = "$stamp" ] && return 0
    if [ ! -x "$folder/bin/python" ] || ! "$folder/bin/python" -m pip --version >/dev/null 2>&1; then
        rm -f "$folder/chunkmill-stamp"
        python3 -m venv --clear "$folder" >"$log" 2>&1 || { reason="python3 -m venv failed, see $log"; return 1; }
    fi
    echo "filling the virtual environment $folder (once)"
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check -r "$requirements" >>"$log" 2>&1 ||
        { reason="pip could not install $requirements, see $log"; return 1; }
    echo "$stamp" >"$folder/chunkmill-stamp"
}

# A sanitizer's build lies inside another's, whose environment serves it too.
if [ -z "${CHUNKMILL_VENV:-}" ] && [ -f "$build/../venv/chunkmill-stamp" ]; then venv=$build/../venv; fi
mkdir -p "$(dirname "$venv")"
reason=
exec 9>"$(dirname "$venv")/.venv.lock"
flock 9
make_venv "$venv" tests/interop/requirements.txt
have_venv=$?
# Servers have one of their own: tests that miss one are skipped, each by itself.
if [[ $mode = long || $mode = ci ]] && [ $have_venv -eq 0 ]; then
    make_venv "$venv-servers" tests/store/requirements.txt || echo "servers of objects are missing: $reason"
    case $venv in /*) CHUNKMILL_SERVERS=$venv-servers/bin ;; *) CHUNKMILL_SERVERS=$PWD/$venv-servers/bin ;; esac
    export CHUNKMILL_SERVERS
fi
flock -u 9

if [ $have_venv -ne 0 ]; then
    n=$(find "${suites[@]}" -name 'test_*.py' -exec cat {} + | grep -cE '^ *def test_')
    echo "skipped: all pytest suites ($n tests): $reason"
    skipped=$((skipped + n))
else
    log=$logs/pytest.log status=0
    # A folder that the user names holds other things; in it one is made.
    tmp=$build/tests/tmp
    [ -z "${CHUNKMILL_TESTS_TMP:-}" ] || tmp=$(mktemp -d "$CHUNKMILL_TESTS_TMP/chunkmill-tests.XXXXXX") || exit 2
    rm -rf "$tmp"
    export CHUNKMILL_PROGRESS=3 # tests/support/progress.py
    # More than CPUs: some tests wait for a scheduler or a deadline, and those that are long do so half of their time.
    more=1
    [ "$mode" != ci ] || more=2
    workers=${CHUNKMILL_WORKERS:-$(($(nproc) + more))}
    try_pytest() { # WHAT of the suites
        ${wrap[@]+"${wrap[@]}"} "$venv/bin/python" -m pytest -n "$workers" --dist worksteal -q --no-header --tb=short -rsfE \
            --basetemp="$tmp" --durations=15 --junitxml="$logs/pytest-$1.xml" -o junit_family=xunit1 \
            ${select[@]+"${select[@]}"} "${@:2}" 3>&1 >>"$log" 2>&1
        local rc=$?
        # 5: of this folder no test was chosen.
        { [ "$rc" -eq 5 ] && [ "$workers" = 0 ]; } || [ "$rc" -le "$status" ] || status=$rc
        rm -rf "$tmp"
    }
    if [ "$workers" != 0 ]; then
        try_pytest all "${suites[@]}"
    else
        mapfile -t folders < <(find "${suites[@]}" -name 'test_*.py' -printf '%h\n' | sort -u)
        for folder in "${folders[@]}"; do
            mapfile -t files < <(find "${suites[@]}" -name 'test_*.py' | grep -x "$folder/[^/]*" | sort)
            try_pytest "${folder//\//-}" "${files[@]}"
        done
    fi
    read -r p f s < <("$venv/bin/python" - "$logs"/pytest-*.xml <<'PY'
import sys, xml.etree.ElementTree as tree
passed = failed = skipped = 0
for path in sys.argv[1:]:
    try:
        suite = tree.parse(path).getroot().find("testsuite")
        bad, skip = (sum(int(suite.get(k)) for k in keys) for keys in (("failures", "errors"), ("skipped",)))
        passed, failed, skipped = passed + int(suite.get("tests")) - bad - skip, failed + bad, skipped + skip
    except Exception:
        failed += 1
print(passed, failed, skipped)
PY
    )
    if [ $status -gt 1 ] && [ "$f" -eq 0 ]; then f=1; fi
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    if [ "$f" -gt 0 ]; then
        sed -n '/^=\+ \(FAILURES\|ERRORS\)/,/^=\+ \(slowest\|short test\)/p' "$log" | head -n 300
        grep -E '^(FAILED|ERROR)' "$log" | head -n 100
        [ "$p" -gt 0 ] || tail -n 40 "$log"
        echo "the whole log: $log"
    fi
    grep '^SKIPPED' "$log" | sed 's/^SKIPPED/skipped/'
    printf 'pytest: %d passed, %d failed, %d skipped\n' "$p" "$f" "$s"
fi

if [ $failed -gt 0 ]; then
    # pytest's own list has them with the assertion.
    [ ! -e "$logs/pytest.log" ] || grep -aE '^(FAILED|ERROR) ' "$logs/pytest.log" | cut -c1-600 >>"$logs/failures"
    echo
    echo "failures:"
    head -n 200 "$logs/failures" 2>/dev/null
fi
printf '%d passed, %d failed, %d skipped\n' $passed $failed $skipped
[ $failed -eq 0 ]
