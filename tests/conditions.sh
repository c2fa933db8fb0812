#!/usr/bin/env bash
# Runs the tests where a machine is at its worst: what fails there is a defect of the product or of a test.
#
#     tests/conditions.sh BUILD [CONDITION[+CONDITION...]...]
#
# Those joined by + rule at once, which finds in one run what each of them finds; all of them one by one is
# the default, TIMES (1) times each:
#     busy       two processes per CPU that compute for ever
#     nice       the lowest priority, beside one such process for every other CPU
#     one-cpu    one CPU
#     memory     512 MiB of memory, page cache included, and one test at a time, in a process for each folder of tests
#     disk       a disk of 5 MB/s
#     tmpfs      temporary files in memory
#     ext4       temporary files on the disk
#     clock      a wall clock that jumps by an hour, forth and back, from call to call
#     offline    no network but loopback
#     user       another user, without HOME
#
# Needs root, for control groups (version 1), namespaces and the other user.  MODE (all) is run.sh's.
# The last lines are a table: condition, passed, failed, skipped, seconds.
set -u
cd "$(dirname "$0")/.." || exit 1
build=$(realpath "${1:?usage: tests/conditions.sh BUILD [CONDITION...]}")
shift
conditions=("$@")
[ $# -gt 0 ] || conditions=(busy nice one-cpu memory disk tmpfs ext4 clock offline user)
[ "$(id -u)" = 0 ] || { echo "conditions.sh: needs root" >&2; exit 2; }
times=${TIMES:-1} mode=${MODE:-all}
groups=/sys/fs/cgroup
logs=$build/tests/conditions
mkdir -p "$logs"
table=$logs/table
: >"$table"
loads=()

stop_loads() {
    [ ${#loads[@]} -eq 0 ] || kill "${loads[@]}" 2>/dev/null
    loads=()
}
trap stop_loads EXIT

# Processes that compute until they are stopped.
load() { # COUNT
    local i
    for ((i = 0; i < $1; i++)); do
        bash -c 'while :; do :; done' &
        loads+=($!)
    done
}

# Runs COMMAND in a control group of CONTROLLER with FILE set to VALUE.
in_group() { # CONTROLLER FILE VALUE COMMAND...
    local group=$groups/$1/chunkmill-$$ status i
    mkdir "$group" && echo "$3" >"$group/$2" || return 2
    (echo "$BASHPID" >"$group/cgroup.procs" && "${@:4}")
    status=$?
    for ((i = 0; i < 100; i++)); do # the kernel may still be ending the last process
        rmdir "$group" 2>/dev/null && return $status
        sleep 0.1
    done
    {
        echo "left over in $group:"
        xargs -r ps -o pid,ppid,etimes,args -p <"$group/cgroup.procs"
    } >&2
    return $status
}

device() {
    lsblk -no MAJ:MIN "$(df --output=source "$build" | tail -n 1)" | tr -d ' '
}

# Runs COMMAND in a checkout of the other user's, with what is built here.
in_checkout() { # COMMAND...
    local home
    home=$(mktemp -d /var/tmp/chunkmill-user.XXXXXX)
    git clone -q . "$home/tree" && cp -a "$build" "$home/tree/build" && ln -s "$(realpath ../shared)" "$home/shared"
    rm -rf "$home/tree/build/tests/tmp" "$home/tree/build/tests/logs"
    chown -R nobody "$home"
    (cd "$home/tree" && "$@")
    rm -rf "$home"
}

# The tests under all of the conditions at once.  Functions, which only this shell can start, stand in front of
# programs; and the user changes last, for namespaces are root's.
under() { # CONDITION[+CONDITION...]
    local run=(tests/run.sh "$build" "$mode") of_groups=() environment=() other_user part i
    [[ +$1+ = *+user+* ]] && other_user=1 || other_user=0
    [ $other_user = 0 ] || run=(setpriv --reuid nobody --clear-groups env -u HOME tests/run.sh build "$mode")
    for part in ${1//+/ }; do
        case $part in
        busy) load $((2 * $(nproc))) ;;
        nice) load $(($(nproc) / 2)) && run=(nice -n 19 "${run[@]}") ;;
        one-cpu) run=(taskset -c 0 "${run[@]}") ;;
        memory) environment+=(CHUNKMILL_WORKERS=0) of_groups+=(memory memory.limit_in_bytes $((512 << 20))) ;;
        disk) of_groups+=(blkio blkio.throttle.write_bps_device "$(device) $((5 << 20))") ;;
        tmpfs) environment+=(TMPDIR=/dev/shm CHUNKMILL_TESTS_TMP=/dev/shm) ;;
        ext4) environment+=(TMPDIR=/var/tmp) ;;
        clock) environment+=("CHUNKMILL_PRELOAD=$build/tests/lib/jumpclock.so") ;;
        offline) run=(unshare --net bash -c 'ip link set lo up 2>/dev/null || ifconfig lo up; exec "$@"' bash "${run[@]}") ;;
        user) ;;
        *) echo "conditions.sh: unknown condition $part" >&2 && exit 2 ;;
        esac
    done
    run=(env ${environment[@]+"${environment[@]}"} "${run[@]}")
    [ $other_user = 0 ] || run=(in_checkout "${run[@]}")
    for ((i = 0; i < ${#of_groups[@]}; i += 3)); do
        run=(in_group "${of_groups[@]:i:3}" "${run[@]}")
    done
    "${run[@]}"
}

for condition in "${conditions[@]}"; do
    for ((i = 1; i <= times; i++)); do
        start=$SECONDS log=$logs/$condition-$i.log
        printf '\n== %s, %d of %d (log %s)\n' "$condition" "$i" "$times" "$log"
        under "$condition" >"$log" 2>&1
        stop_loads
        grep -aE '^(FAILED|ERROR)' "$log" | cut -c1-200
        last=$(grep -aE '^[0-9]+ passed, [0-9]+ failed' "$log" | tail -n 1)
        printf '%-32s %s, %d s\n' "$condition" "$last" $((SECONDS - start)) | tee -a "$table"
    done
done
printf '\n'
cat "$table"
! grep -qvE ', 0 failed, ' "$table"
