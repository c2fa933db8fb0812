#!/usr/bin/env bash
# Runs the tests where a machine is at its worst: what fails there is a defect of the product or of a test.
#
#     tests/conditions.sh BUILD [CONDITION...]
#
# CONDITIONS are, and by default all of them, TIMES (1) times each:
#     busy       two processes per CPU that compute for ever
#     nice       the lowest priority, beside one such process per CPU
#     one-cpu    one CPU
#     memory     512 MiB of memory, page cache included, and one test at a time
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
    local group=$groups/$1/chunkmill-$$ status
    mkdir "$group" && echo "$3" >"$group/$2" || return 2
    bash -c 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"' bash "$group" "${@:4}"
    status=$?
    rmdir "$group"
    return $status
}

device() {
    lsblk -no MAJ:MIN "$(df --output=source "$build" | tail -n 1)" | tr -d ' '
}

# A checkout of the other user's, with what is built here.
as_user() {
    local home
    home=$(mktemp -d /var/tmp/chunkmill-user.XXXXXX)
    git clone -q . "$home/tree" && cp -a "$build" "$home/tree/build" && ln -s "$(realpath ../shared)" "$home/shared"
    rm -rf "$home/tree/build/tests/tmp" "$home/tree/build/tests/logs"
    chown -R nobody "$home"
    (cd "$home/tree" && setpriv --reuid nobody --clear-groups env -u HOME tests/run.sh build "$mode")
    rm -rf "$home"
}

under() { # CONDITION
    local run=(tests/run.sh "$build" "$mode")
    case $1 in
    busy) load $((2 * $(nproc))) && "${run[@]}" ;;
    nice) load "$(nproc)" && nice -n 19 "${run[@]}" ;;
    one-cpu) taskset -c 0 "${run[@]}" ;;
    memory) CHUNKMILL_WORKERS=1 in_group memory memory.limit_in_bytes $((512 << 20)) "${run[@]}" ;;
    disk) in_group blkio blkio.throttle.write_bps_device "$(device) $((5 << 20))" "${run[@]}" ;;
    tmpfs) TMPDIR=/dev/shm CHUNKMILL_TESTS_TMP=/dev/shm "${run[@]}" ;;
    ext4) TMPDIR=/var/tmp "${run[@]}" ;;
    clock) CHUNKMILL_PRELOAD=$build/tests/lib/jumpclock.so "${run[@]}" ;;
    offline) unshare --net bash -c 'ip link set lo up 2>/dev/null || ifconfig lo up; exec "$@"' bash "${run[@]}" ;;
    user) as_user ;;
    *) echo "conditions.sh: unknown condition $1" >&2 && exit 2 ;;
    esac
}

for condition in "${conditions[@]}"; do
    for ((i = 1; i <= times; i++)); do
        start=$SECONDS log=$logs/$condition-$i.log
        printf '\n== %s, %d of %d (log %s)\n' "$condition" "$i" "$times" "$log"
        under "$condition" >"$log" 2>&1
        stop_loads
        grep -aE '^(FAILED|ERROR)' "$log" | cut -c1-200
        last=$(tail -n 1 "$log")
        printf '%-9s %s, %d s\n' "$condition" "$last" $((SECONDS - start)) | tee -a "$table"
    done
done
printf '\n'
cat "$table"
! grep -qvE ', 0 failed, ' "$table"
