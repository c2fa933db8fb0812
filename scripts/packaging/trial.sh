#!/bin/sh
# trial.sh FOLDER SUITE OUT FILE: installs the wheel, the tarball and the .deb in OUT in a Debian of another
# age (SUITE: bullseye, trixie), converts the NetCDF file FILE with each, and checks the results.  That
# Debian is unpacked into FOLDER/SUITE from the archive that this system uses, and entered by a user
# namespace: no root, and nothing of netCDF, HDF5, curl or compression libraries beyond zlib is there.
set -eu
if [ $# -ne 4 ] || [ -z "$2" ]; then
    echo "usage: scripts/packaging/trial.sh FOLDER SUITE OUT FILE" >&2
    exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$1" && pwd) suite=$2 out=$3 file=$4
root=$top/$suite debian=$(dpkg --print-architecture)

if [ ! -e "$root/ready" ]; then
    APT_CONFIG=$("$here/apt.sh" "$top" deb "$debian" "$suite")
    export APT_CONFIG
    # Removed is only a try of this script that was stopped.
    if [ -e "$root" ] && [ ! -e "$root/begun" ]; then
        echo "trial.sh: $root: exists and is not of this script" >&2
        exit 1
    fi
    rm -rf "$root"
    mkdir "$root"
    touch "$root/begun"
    mkdir -p "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates" "$root/tmp" "$root/proc" "$root/dev"
    apt-get install -qq -y --download-only --no-install-recommends bash coreutils diffutils dpkg findutils grep gzip libc-bin \
        python3 python3-pip python3-venv sed tar >/dev/null
    for package in "$(dirname "$APT_CONFIG")"/cache/archives/*.deb; do
        dpkg-deb -x "$package" "$root"
        # No script of a package is run: dpkg is told that they are installed.
        { dpkg-deb -f "$package" && printf 'Status: install ok installed\n\n'; } >>"$root/var/lib/dpkg/status"
    done
    ln -sf bash "$root/bin/sh"
    cat "$root"/usr/share/ca-certificates/mozilla/*.crt >"$root/etc/ssl/certs/ca-certificates.crt"
    touch "$root/ready"
fi

trial=$root/trial
rm -rf "$trial"
mkdir "$trial"
cp "$out"/chunkmill-*"_$(uname -m).whl" "$out"/chunkmill-*"-linux-$(uname -m).tar.gz" "$out"/chunkmill_*"_$debian.deb" "$trial"
cp "$file" "$trial/in.nc"
cat >"$trial/run.sh" <<'EOF'
set -eu
cd /trial
convert() { # NAME FOLDER
    "$2/nc2zarr" -q --verify full in.nc "$1.zarr"
    "$2/nc2zarr" -q --check in.nc "$1.zarr"
    "$2/rechunk" -q --verify full --zarr-format 2 "$1.zarr" "$1-2.zarr"
    for program in chunkcalc readbench; do "$2/$program" --version >/dev/null; done
    echo "  trial   $1: $(getconf GNU_LIBC_VERSION)"
}
tar -xzf chunkmill-*.tar.gz
convert tarball "$(echo chunkmill-*-linux-*/bin)"
dpkg -i --force-script-chrootless chunkmill_*.deb >dpkg.log 2>&1 || { cat dpkg.log >&2 && exit 1; }
convert deb /usr/bin
python3 -m venv venv
venv/bin/pip install --quiet --no-index chunkmill-*.whl
convert wheel venv/bin
test -s venv/share/man/man1/nc2zarr.1
venv/bin/python - <<PYTHON
import chunkmill
sample = {"time": 2, "lat": 16, "lon": 16}
assert chunkmill.rechunk("wheel.zarr", "python.zarr", verify="full")["error"] is None
chunkmill.readbench("python.zarr", variable="z", sample=sample, batch=4, batches=3, step_time="1ms")
for how in ("map", "planned"):
    with chunkmill.Loader("python.zarr", variables="z", sample=sample, batches=5, loader=how) as loader:
        assert sum(len(batch) for batch in loader) == 5 * 32
mapped = {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}
assert not [path for path in mapped if any(name in path for name in ("netcdf", "hdf5", "curl", "zstd"))], mapped
print("  trial   the Python package", chunkmill.__version__)
PYTHON
EOF
# shellcheck disable=SC2016 # for the other shell
unshare --user --map-root-user --mount --pid --fork sh -c '
    mount --rbind /dev "$0/dev"
    mount -t proc proc "$0/proc"
    exec chroot "$0" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LC_ALL=C.UTF-8 bash /trial/run.sh' "$root"
