#!/usr/bin/env python3
"""wheel.py BUNDLE DIST: one wheel of the Python package, the programs, the loader's library and
the libraries that they need.  Needs nothing but Python's own library."""
import base64
import hashlib
import re
import sys
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ("chunkcalc", "nc2zarr", "readbench", "rechunk")


def newest_glibc(files):
    """The newest version of glibc that any of FILES asks for."""
    found = {(2, 17)}
    for file in files:
        found |= {(int(a), int(b)) for a, b in re.findall(rb"GLIBC_(\d+)\.(\d+)", file.read_bytes())}
    return max(found)


def machine(program):
    """The architecture that an ELF file is for, as wheels name it."""
    return {62: "x86_64", 183: "aarch64"}[int.from_bytes(program.read_bytes()[18:20], "little")]


def platforms(glibc, arch):
    """The names of a platform with GLIBC: pip before 20.3, which Red Hat 8 has, knows the second alone."""
    yield f"manylinux_{glibc[0]}_{glibc[1]}_{arch}"
    if glibc <= (2, 17):
        yield f"manylinux2014_{arch}"


def metadata(version):
    words = (ROOT / "tools/python/chunkmill/loader.py").read_text().split("class Loader:")[1].split('"' * 3)[1]
    return "\n".join(["Metadata-Version: 2.1", "Name: chunkmill", f"Version: {version}",
                      "Summary: Zarr stores from NetCDF files, and batches of them for training",
                      "License-File: LICENSE", "Requires-Python: >=3.9", "Description-Content-Type: text/plain", "",
                      words])


def contents(bundle, version):
    """(name in the wheel, file, whether it is run)."""
    for file in sorted([*(ROOT / "tools/python/chunkmill").glob("*.py"), ROOT / "tools/python/chunkmill/py.typed"]):
        yield f"chunkmill/{file.name}", file, False
    for name in PROGRAMS:
        yield f"chunkmill/bin/{name}", bundle / "bin" / name, True
    for file in sorted((bundle / "lib").iterdir()):
        yield f"chunkmill/lib/{file.name}", file, False
    for file in sorted((bundle / "doc").iterdir()):
        yield f"chunkmill/licences/{file.name}", file, False
    for file in sorted((bundle / "man").rglob("*.[1-9]")):
        yield f"chunkmill-{version}.data/data/share/man/{file.parent.name}/{file.name}", file, False


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: scripts/wheel.py BUNDLE DIST")
    bundle, dist = Path(sys.argv[1]), Path(sys.argv[2])
    version = (ROOT / "VERSION").read_text().strip()
    files = list(contents(bundle, version))
    glibc = newest_glibc(file for name, file, _ in files if name.startswith(("chunkmill/bin/", "chunkmill/lib/")))
    arch = machine(bundle / "bin" / PROGRAMS[0])
    tag = f"py3-none-{'.'.join(platforms(glibc, arch))}"
    info = f"chunkmill-{version}.dist-info"
    texts = {
        f"{info}/METADATA": metadata(version),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: chunkmill\nRoot-Is-Purelib: false\n" +
        "".join(f"Tag: py3-none-{name}\n" for name in platforms(glibc, arch)),
        f"{info}/entry_points.txt": "[console_scripts]\n" + "".join(
            f"{name} = chunkmill.programs:main\n" for name in PROGRAMS),
        f"{info}/LICENSE": (ROOT / "LICENSE").read_text(),
    }
    dist.mkdir(parents=True, exist_ok=True)
    for old in dist.glob(f"chunkmill-*_{arch}.whl"):
        old.unlink()
    wheel = dist / f"chunkmill-{version}-{tag}.whl"
    records = []
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as z:
        def add(name, data, mode):
            entry = zipfile.ZipInfo(name, date_time=time.gmtime(315532800)[:6])
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            z.writestr(entry, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            records.append(f"{name},sha256={digest},{len(data)}\n")

        for name, file, runs in files:
            add(name, file.read_bytes(), 0o755 if runs else 0o644)
        for name, text in texts.items():
            add(name, text.encode(), 0o644)
        record = f"{info}/RECORD"
        entry = zipfile.ZipInfo(record, date_time=time.gmtime(315532800)[:6])
        entry.external_attr = 0o100644 << 16
        z.writestr(entry, "".join(records) + f"{record},,\n")
    print(f"{wheel}: {wheel.stat().st_size / 1e6:.1f} MB, for glibc {glibc[0]}.{glibc[1]} or newer")


main()
