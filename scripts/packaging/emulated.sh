#!/bin/sh
# emulated.sh FOLDER ARCH OUT FILE: what `make portable` made for another architecture, under qemu: the unit
# tests, and programs of the tarball in OUT, which convert the NetCDF file FILE and check the result.
set -eu
[ $# -eq 4 ] || { echo "usage: scripts/packaging/emulated.sh FOLDER ARCH OUT FILE" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$1" && pwd) arch=$2 out=$(cd "$3" && pwd) file=$(realpath "$4")
run=$top/$arch/tools/run
# Tests of these fail there, of qemu's making: it has no process_vm_readv, by which mappings are read (conformance,
# io_faults, open); knows no limit of memory, of a file's size or of processes (outstream, dir, pool_deaths); has no [heap]
# among the mappings of a process, whose memory it counts as its own (trial, paged); says of a process other things in
# /proc/self than in /proc/PID (lock); and starts no program of its machine from another (memory).
beyond="outstream paged trial memory lock pool_deaths conformance dir io_faults open"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
tar -xzf "$out"/chunkmill-*"-linux-$arch.tar.gz"
bin=$(echo chunkmill-*/bin)
"$run" "$bin/nc2zarr" -q --verify full "$file" out.zarr
"$run" "$bin/nc2zarr" -q --check "$file" out.zarr
echo "  trial   $arch: converted and checked"

"$here/build.sh" "$top" "$arch" unit
for test in "$top/$arch"/build/tests/unit/*/test_*; do
    name=$(basename "$test")
    case " $beyond " in *" ${name#test_} "*) continue ;; esac
    case $name in *.o | *.d) continue ;; esac
    echo "$test"
done >programs
# shellcheck disable=SC2016 # for the other shell
xargs -P "${JOBS:-$(nproc)}" -n 1 sh -c '"$0" "$1" >"$(basename "$1").log" 2>&1 || { cat "$(basename "$1").log" && exit 1; }' \
    "$run" <programs >&2
echo "  trial   $arch: $(wc -l <programs) unit test programs, $(cat test_*.log | grep -c '^\[       OK') tests passed"
