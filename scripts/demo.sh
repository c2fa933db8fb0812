#!/bin/sh
# demo.sh BUILD [FOLDER]: surveys and converts an archive whose files do not agree, makes a sample
# file, converts it twice, rechunks it, and measures which of them feeds a training best.  A line
# for each; FOLDER/demo.log has what the programs said.  FOLDER (BUILD/demo) then holds the files of
# the README's tour and comparison/report.html, one page that compares NetCDF, Zarr made for the
# sample, and Zarr made for no reader in particular.
set -eu
build=$(cd "${1:?usage: scripts/demo.sh BUILD [FOLDER]}" && pwd)
demo=${2:-$build/demo}
PATH=$build/bin:$PATH
mkdir -p "$demo"
cd "$demo"
: >demo.log

# What a training reads at once: 4 time steps of both levels of 32 by 32 points, at random places.
sample=time=4,level=2,lat=32,lon=32

# run STATUS COMMAND...: into the log, behind its command line; another status ends the demo.
run() {
    wanted=$1
    shift
    printf '\n$ %s\n' "$*" >>demo.log
    status=0
    "$@" >out 2>&1 || status=$?
    cat out >>demo.log
    [ $status -eq "$wanted" ] && return
    cat out >&2
    echo "demo.sh: $*: status $status" >&2
    exit 1
}

# say LABEL TEXT
say() {
    printf '%-14s %s\n' "$1" "$2"
}

"$build/bin/make_sample" --archive archive
run 4 nc2zarr --survey --overwrite archive archive.zarr
decide=$(tail -1 out)
say archive "12 files, written by software that changed on the way; $(grep 'need a decision' out)"
say '' "and the survey's last line decides: $decide"

# shellcheck disable=SC2086 # the line is words
run 0 $decide
say archive.zarr "that line, pasted:$(grep '^  Verified' out | cut -d: -f2), verified against libnetcdf"

"$build/bin/make_sample" weather.nc
run 0 nc2zarr --overwrite weather.nc weather.zarr
say weather.nc '24 days of made-up weather, 96 MiB decoded, in chunks of one map'
say weather.zarr "converted in $(grep ' of memory$' out | sed 's/^ *//'); chunks for maps and series alike"

run 0 nc2zarr --overwrite --sample $sample weather.nc windows.zarr
say windows.zarr "the same with --sample $sample: chunks for random windows"

run 0 rechunk --overwrite --memory 64MiB --variable z --chunks time=full,lat=16,lon=16 --verify full \
    weather.zarr series.zarr
run 0 rechunk --digest weather.nc::z series.zarr::z
[ "$(awk '/  z  /{print $1}' out | sort -u | wc -l)" -eq 1 ]
say series.zarr "maps to time series by rechunk within 64 MiB; the digest is that of weather.nc"

run 0 readbench --overwrite --variable z --sample $sample --batch 16 --batches 15 --step-time 5ms \
    --out comparison weather.nc windows.zarr weather.zarr
say training "$(grep ' in [0-9]* rounds' out)"
say 'the page' "$demo/comparison/report.html; what was run: $demo/demo.log"
rm -f out
