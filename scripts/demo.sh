#!/bin/sh
# demo.sh BUILD [FOLDER]: surveys and converts an archive whose files do not agree, makes a sample
# file, converts it twice, rechunks it, and measures which of them feeds a training best.  FOLDER
# (BUILD/demo) then holds the files of the README's tour and comparison/report.html, one page that
# compares NetCDF, Zarr, and Zarr made for the sample.
set -eu
build=$(cd "${1:?usage: scripts/demo.sh BUILD [FOLDER]}" && pwd)
demo=${2:-$build/demo}
PATH=$build/bin:$PATH
mkdir -p "$demo"
cd "$demo"

# What a training reads at once: 4 time steps of 32 by 32 points, at random places.
sample=time=4,lat=32,lon=32

title() {
    printf '\n== %s\n' "$1"
}

# run COMMAND...: shows it, then runs it.
run() {
    printf '$ %s\n' "$*"
    "$@"
}

title 'An archive: twelve files, two days each, written by software that changed on the way'
"$build/bin/make_sample" --archive archive
ls archive

title 'Look first: what disagrees, since which file, and which option decides'
status=0
run nc2zarr --survey archive || status=$?
[ $status -eq 4 ] # something needs a decision, and nothing was written

title 'Decide, and convert'
run nc2zarr --overwrite --packing unpack --missing fill archive archive.zarr

title 'A sample file: 24 days of made-up weather, 100 MB decoded'
"$build/bin/make_sample" weather.nc
ls -l weather.nc

title 'Convert it'
run nc2zarr --overwrite --progress always weather.nc weather.zarr

title 'Convert it for the training: chunks that suit the sample'
run nc2zarr --overwrite --sample $sample weather.nc training.zarr

title 'Maps to time series within 64 MiB; equal digests: every value is the same'
run rechunk --overwrite --memory 64MiB --variable z --chunks time=full,lat=16,lon=16 --verify full \
    weather.zarr series.zarr
run rechunk --digest weather.nc::z series.zarr::z

title 'Which of the three feeds a training that takes 16 samples every 5 ms?'
run readbench --overwrite --variable z --sample $sample --batch 16 --batches 15 --step-time 5ms \
    --out comparison weather.nc weather.zarr training.zarr

cat <<END

== Look at the page: $demo/comparison/report.html

== Go on here
  export PATH=$build/bin:\$PATH; cd $demo
  nc2zarr --help
  nc2zarr --dry-run -v weather.nc all.zarr
  chunkcalc --sample $sample --variable z weather.nc
  readbench --no-out --variable z --sample $sample --step-time 5ms --batches 10 --tune training.zarr
END
