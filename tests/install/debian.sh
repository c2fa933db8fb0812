#!/usr/bin/env bash
# debian.sh BUILD RELEASE [FOLDER]: the wheel, and the bundle if there is one, on another Debian.
#
# Installs RELEASE (bookworm, trixie) into FOLDER, a new one, and in it the wheel in
# BUILD/dist into a fresh virtual environment: converts, reads batches with NumPy, runs the four
# programs.  Nothing of the system's netCDF, HDF5, curl or blosc is there.  Needs root,
# debootstrap, unshare, and a network.  Mounts are made in a namespace of their own; FOLDER is
# removed.
set -euo pipefail
build=$(realpath "${1:?usage: tests/install/debian.sh BUILD RELEASE [FOLDER]}") release=${2:?RELEASE}
root=${3:-$(mktemp -d)/root}
[ ! -e "$root" ] || { echo "debian.sh: $root exists" >&2; exit 1; }
trap 'rm -rf --one-file-system "$root"' EXIT
debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates "$release" "$root" \
    http://deb.debian.org/debian >/dev/null
work=$root/trial
mkdir "$work" "$work/numpy"
cp "$build"/dist/chunkmill-*.whl "$work"
[ ! -d "$build/bundle" ] || cp -a "$build/bundle" "$work"
"$build/bin/make_sample" "$work/weather.nc"
minor=$(chroot "$root" python3 -c 'import sys; print(sys.version_info[1])')
python3 -m pip download --quiet --dest "$work/numpy" --only-binary=:all: --no-deps --implementation cp \
    --python-version "3.$minor" --platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64 \
    --platform manylinux2014_x86_64 numpy

cat >"$work/check.py" <<'PYTHON'
import chunkmill
import numpy as np

shape = {"time": 2, "lat": 16, "lon": 16}
done = [chunkmill.convert("weather.nc", "weather.zarr", variable="z,t2m", verify="full"),
        chunkmill.convert("weather.nc", "stacked.zarr", stack="x=t2m,z@level", unpack="x", verify="full"),
        chunkmill.rechunk("weather.zarr", "other.zarr", chunks="time=4", verify="full"),
        chunkmill.chunkcalc("weather.zarr", variable="z", sample=shape)]
assert all(report["error"] is None for report in done)
chunkmill.readbench("weather.zarr", variable="z", sample=shape, batch=4, batches=3, step_time="1ms")
totals = []
for path, name, how in (("weather.zarr", "z", "map"), ("weather.zarr", "z", "planned"), ("stacked.zarr", "x", "planned")):
    with chunkmill.Loader(path, variables=name, sample=shape, batches=5, loader=how) as loader:
        totals.append(sum(float(np.from_dlpack(batch[name]).astype("f8").sum()) for batch in loader))
assert totals[0] == totals[1] != 0, totals
foreign = [line.split()[-1] for line in open("/proc/self/maps") if not line.split()[-1].startswith("/trial/")]
assert not [path for path in foreign if any(w in path for w in ("netcdf", "hdf5", "blosc", "curl", "zstd"))], foreign
PYTHON
cat >"$work/check.sh" <<'SHELL'
set -euo pipefail
cd /trial
python3 -m venv fresh
fresh/bin/pip install --quiet --no-index /trial/*.whl /trial/numpy/*.whl
fresh/bin/python check.py
for p in nc2zarr rechunk chunkcalc readbench; do fresh/bin/$p --version >/dev/null; done
echo "Debian $(cat /etc/debian_version), $(python3 --version), $(ldd --version | sed -n '1s/.* //p;q'): the wheel works"
[ -d bundle ] || exit 0
bundle/bin/nc2zarr -q --verify full weather.nc b.zarr
bundle/bin/rechunk -q --verify full --chunks time=4 b.zarr c.zarr
bundle/bin/chunkcalc --variable z --sample time=2,lat=16,lon=16 b.zarr >/dev/null
bundle/bin/readbench --no-out --variable z --sample time=2,lat=16,lon=16 --batches 3 --step-time 1ms b.zarr >/dev/null
echo "the programs of the bundle run"
SHELL
# shellcheck disable=SC2016 # for the other shell
unshare --mount --fork bash -c '
    mount --make-rprivate /
    mount -t proc proc "$0/proc"
    mount -t tmpfs dev "$0/dev"
    mkdir "$0/dev/shm"
    mknod -m 666 "$0/dev/null" c 1 3
    mknod -m 666 "$0/dev/urandom" c 1 9
    exec chroot "$0" bash /trial/check.sh' "$root"
