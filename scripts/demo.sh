#!/bin/sh
# demo.sh BUILD: makes a sample file, converts it, shows what came out, rechunks it, and
# measures whether file and store would feed a training.
set -eu
build=${1:?usage: scripts/demo.sh BUILD}
demo=$build/demo
nc2zarr=$build/bin/nc2zarr
chunkcalc=$build/bin/chunkcalc
rechunk=$build/bin/rechunk
readbench=$build/bin/readbench

mkdir -p "$demo"
echo "== A sample file: 24 days of made-up weather, 100 MB decoded"
"$build/bin/make_sample" "$demo/weather.nc"
ls -l "$demo/weather.nc"

echo
echo "== Convert it: $nc2zarr $demo/weather.nc $demo/weather.zarr"
"$nc2zarr" --overwrite --progress always "$demo/weather.nc" "$demo/weather.zarr"

echo
echo "== On disk"
du -sh "$demo/weather.nc" "$demo/weather.zarr"
ls "$demo/weather.zarr"

echo
echo "== What one training sample of z meets, by chunk size: $chunkcalc --sample time=4,lat=32,lon=32"
"$chunkcalc" --sample time=4,lat=32,lon=32 --variable z "$demo/weather.zarr"

echo
echo "== Maps to time series, in 64 MiB: $rechunk --memory 64MiB --chunks time=full,lat=16,lon=16 --verify full ..."
"$rechunk" --overwrite --memory 64MiB --variable z --chunks time=full,lat=16,lon=16 --verify full \
    "$demo/weather.zarr" "$demo/series.zarr"
echo "The digest is that of the file:"
"$rechunk" --digest "$demo/weather.nc::z"

echo
echo "== Would they feed a training? $readbench --sample time=4,lat=32,lon=32 --step-time 20ms ..."
rm -rf "$demo/readbench"
"$readbench" --variable z --sample time=4,lat=32,lon=32 --batch 16 --batches 15 --step-time 20ms \
    --out "$demo/readbench" "$demo/weather.nc" "$demo/weather.zarr"

cat <<END

== What to try next
  $nc2zarr --help
  $nc2zarr --dry-run -v $demo/weather.nc $demo/weather.zarr
  $nc2zarr --overwrite --variable t2m --chunks time=full,lat=16,lon=16 $demo/weather.nc $demo/t2m.zarr
  $nc2zarr --overwrite --zarr-format 2 --codec zstd $demo/weather.nc $demo/weather-v2.zarr
  $nc2zarr --overwrite --chunks z:time=4,lat=64,lon=64 --shards auto --verify full $demo/weather.nc $demo/sharded.zarr
  $rechunk --dry-run --chunks time=full,lat=16,lon=16 $demo/weather.zarr $demo/all-series.zarr
  $rechunk --overwrite --shards auto --codec zstd:9 $demo/weather.zarr $demo/archive.zarr
  $readbench --no-out --variable z --sample time=4,lat=32,lon=32 --step-time 5ms --batches 10 --tune $demo/weather.zarr
  $readbench --no-out --variable z --sample time=4,lat=32,lon=32 --step-time 5ms --loader planned --accelerators 2 $demo/weather.zarr
  $chunkcalc --sample 64x64
  $chunkcalc --sample time=4,lat=32,lon=32 --variable z --recommend $demo/weather.zarr
  make check
END
