#!/bin/sh
# demo.sh BUILD: makes a sample file, converts it and shows what came out.
set -eu
build=${1:?usage: scripts/demo.sh BUILD}
demo=$build/demo
nc2zarr=$build/bin/nc2zarr
chunkcalc=$build/bin/chunkcalc

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

cat <<END

== What to try next
  $nc2zarr --help
  $nc2zarr --dry-run -v $demo/weather.nc $demo/weather.zarr
  $nc2zarr --overwrite --variable t2m --chunks time=full,lat=16,lon=16 $demo/weather.nc $demo/series.zarr
  $nc2zarr --overwrite --zarr-format 2 --codec zstd $demo/weather.nc $demo/weather-v2.zarr
  $nc2zarr --overwrite --chunks z:time=4,lat=64,lon=64 --shards auto --verify full $demo/weather.nc $demo/sharded.zarr
  $chunkcalc --sample 64x64
  $chunkcalc --sample time=4,lat=32,lon=32 --variable z --recommend $demo/weather.zarr
  make check
END
