#!/bin/sh
# pack.sh FOLDER ARCH OUT: what build.sh made as a wheel, a tarball and a .deb in OUT.  All three hold
# the same programs and libraries, which run wherever they lie.
set -eu
[ $# -eq 3 ] || { echo "usage: scripts/packaging/pack.sh FOLDER ARCH OUT" >&2; exit 2; }
mkdir -p "$3"
top=$1 arch=$2 out=$(cd "$3" && pwd)
cd "$(dirname "$0")/../.."
version=$(cat VERSION) work=$top/$arch/pack
name=chunkmill-$version-linux-$arch
rm -rf "$work"
mkdir -p "$work/$name"

RUN=$top/$arch/tools/run scripts/install.sh "$top/$arch/build" "$work/$name" >/dev/null
licences=$work/$name/share/doc/chunkmill/licences
mkdir -p "$licences"
cp "$top/$arch"/prefix/licences/* "$licences"
# The tests alone have cmocka; zig adds functions of its own to programs.
rm "$licences/cmocka"
cp "$top/zig/ziglang/LICENSE" "$licences/zig"
# Files have the date of the commit, and one owner, so that equal trees give equal packages.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || echo 315532800)
export SOURCE_DATE_EPOCH
find "$work" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +

tarball=$out/$name.tar.gz
tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner -c "$name" | gzip -9n >"$tarball"

# wheel.py's layout.
mkdir "$work/wheel"
ln -s "../$name/bin" "../$name/share/man" "$work/wheel"
ln -s "../$name/share/doc/chunkmill/licences" "$work/wheel/doc"
mkdir "$work/wheel/lib"
cp "$work/$name"/lib/libchunkmill_deps.so "$work/$name"/lib/libchunkmill_loader.so.1 "$work/wheel/lib"
scripts/wheel.py "$work/wheel" "$out" >/dev/null

debian=$(scripts/packaging/debian_arch.sh "$arch")
deb=$work/deb
mkdir -p "$deb/DEBIAN"
cp -a "$work/$name" "$deb/usr"
find "$deb/usr/share/man" -type f -exec gzip -9n {} +
{
    echo "Chunkmill is under the Apache License 2.0, which /usr/share/common-licenses/Apache-2.0 has in full."
    echo "The libraries inside are under the licences in /usr/share/doc/chunkmill/licences."
} >"$deb/usr/share/doc/chunkmill/copyright"
cat >"$deb/DEBIAN/control" <<EOF
Package: chunkmill
Version: $version
Architecture: $debian
Maintainer: Chunkmill maintainers
Installed-Size: $(du -sk "$deb/usr" | cut -f1)
Depends: libc6 (>= 2.17)
Recommends: ca-certificates
Section: science
Priority: optional
Description: NetCDF to Zarr, and batches of Zarr stores for training
 Command-line programs that convert NetCDF files to Zarr stores (nc2zarr),
 recommend and change chunk shapes (chunkcalc, rechunk) and measure whether
 storage can feed training (readbench), and a library that loads batches.
EOF
dpkg-deb --build --root-owner-group -Zxz -z9 "$deb" "$out/chunkmill_${version}_$debian.deb" >/dev/null
