#!/usr/bin/env python3
"""lint.py PACKAGE...: whether wheels, tarballs and .debs of the portable build run where they should.

Of every program and library inside: the machine of the package's name, no symbol of a glibc newer
than GLIBC, no library but those of glibc and of the package, no path to libraries of this machine, no
executable stack.
Of the package: its size, the four programs, the loader's library, the man pages and the licence of
each library of deps.txt.  Needs readelf, and dpkg-deb for a .deb.
"""
import argparse
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

GLIBC = (2, 17)
# The package's own, and the libraries of glibc that the manylinux rules allow.
ALLOWED = {"libchunkmill_deps.so", "libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1",
           "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
MACHINES = {"x86_64": "Advanced Micro Devices X86-64", "amd64": "Advanced Micro Devices X86-64",
            "aarch64": "AArch64", "arm64": "AArch64"}
MEGABYTES = {".whl": 15, ".gz": 15, ".xz": 15, ".deb": 15}
PROGRAMS = ("chunkcalc", "nc2zarr", "readbench", "rechunk")
NEEDED = (*(f"bin/{program}" for program in PROGRAMS), "lib/libchunkmill_deps.so", "lib/libchunkmill_loader.so.1",
          *(f"man1/{program}.1" for program in PROGRAMS), "man7/chunkmill-stores.7")
DEPS = Path(__file__).resolve().parent / "deps.txt"


def unpack(package, folder):
    if package.suffix == ".whl":
        with zipfile.ZipFile(package) as z:
            z.extractall(folder)
    elif package.suffix == ".deb":
        subprocess.run(["dpkg-deb", "-x", package, folder], check=True)
    else:
        with tarfile.open(package) as t:
            # Python before 3.11.4 may have no filters, and 3.12 warns where none is named.
            t.extraction_filter = getattr(tarfile, "data_filter", None)
            t.extractall(folder)


def readelf(option, file):
    return subprocess.run(["readelf", "-W", option, file], check=True, capture_output=True, text=True,
                          env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}).stdout


def elf_problems(file, machine):
    """Faults of one program or library, sentence by sentence."""
    found = re.search(r"Machine:\s+(.*)", readelf("-h", file))[1]
    if found != machine:
        yield f"is for {found}, not {machine}"
    dynamic = readelf("-d", file)
    for library in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic):
        if library not in ALLOWED:
            yield f"needs {library}"
    for path in re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", dynamic):
        if not all(part.startswith("$ORIGIN") for part in path.split(":")):
            yield f"looks for libraries in {path}"
    for glibc in sorted(set(re.findall(r"Name: GLIBC_(\d+)\.(\d+)", readelf("-V", file)))):
        if tuple(map(int, glibc)) > GLIBC:
            yield f"needs glibc {'.'.join(glibc)}; {'.'.join(map(str, GLIBC))} is the newest allowed"
    if re.search(r"GNU_STACK.* RWE ", readelf("-l", file)):
        yield "has an executable stack"


def licences():
    """Names of what is inside: the libraries, but for that of the tests, and functions of the compiler."""
    rows = [line.split()[0] for line in DEPS.read_text().splitlines() if line and not line.startswith("#")]
    return [name for name in [*rows, "zig"] if name != "cmocka"]


def problems(package):
    megabytes = package.stat().st_size / 1e6
    if megabytes > MEGABYTES[package.suffix]:
        yield f"{megabytes:.1f} MB, more than {MEGABYTES[package.suffix]}"
    word = next((word for word in MACHINES if word in package.name), None)
    if word is None:
        yield "the name has no machine"
        return
    with tempfile.TemporaryDirectory() as folder:
        unpack(package, folder)
        files = sorted(path for path in Path(folder).rglob("*") if path.is_file() and not path.is_symlink())
        names = [str(path.relative_to(folder)).removesuffix(".gz") for path in files]
        for wanted in (*NEEDED, *(f"licences/{name}" for name in licences())):
            if not any(f"/{name}".endswith(f"/{wanted}") for name in names):
                yield f"has no {wanted}"
        for path, name in zip(files, names):
            with path.open("rb") as f:
                is_elf = f.read(4) == b"\x7fELF"
            if is_elf:
                yield from (f"{name}: {problem}" for problem in elf_problems(path, MACHINES[word]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", nargs="+", type=Path)
    bad = 0
    for package in parser.parse_args().package:
        found = list(problems(package))
        for problem in found:
            print(f"lint: {package}: {problem}", file=sys.stderr)
        if not found:
            print(f"{package}: {package.stat().st_size / 1e6:.1f} MB, glibc {'.'.join(map(str, GLIBC))} or newer")
        bad += len(found)
    sys.exit(bad > 0)


main()
