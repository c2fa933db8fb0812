"""Input that takes long to convert, disks that are soon full, memory that is refused."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import netCDF4
import numpy as np
import pytest

from support import paths, preload, tool

NOBODY = 65534


@pytest.fixture(scope="session")
def noise(tmp_path_factory):
    """48 MiB that nothing compresses, in many chunks."""
    path = tmp_path_factory.mktemp("noise") / "noise.nc"
    rng = np.random.default_rng(5)
    with netCDF4.Dataset(path, "w") as ds:
        for d, n in (("t", 48), ("y", 512), ("x", 512)):
            ds.createDimension(d, n)
        for name, n in (("v", 32), ("w", 16)):
            v = ds.createVariable(
                name, "f4", ("t", "y", "x"), contiguous=name == "w", chunksizes=None if name == "w" else (1, 256, 512)
            )
            v[:n] = rng.random((n, 512, 512), "f4")
    return path


@pytest.fixture
def small_disk(tmp_path):
    """mount(options) -> a folder on a tmpfs of its own."""
    mounted = []

    def mount(options):
        folder = tmp_path / "disk"
        folder.mkdir()
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "none", str(folder)], capture_output=True, text=True
        )
        if done.returncode:
            pytest.skip(f"no tmpfs can be mounted here: {done.stderr.strip()}")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def as_nobody():
    """(folder, run): a place and a way to run programs there without privileges."""
    folder = Path(tempfile.mkdtemp(prefix="chunkmill-"))
    before = None
    if os.geteuid() == 0:
        folder.chmod(0o755)

        def before():
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)

    (folder / "bin").mkdir(mode=0o755)
    for name in "nc2zarr", "rechunk":
        shutil.copy(tool.program(name), folder / "bin" / name)
        (folder / "bin" / name).chmod(0o755)
    beside = paths.BUILD / "lib" / "libchunkmill_deps.so"  # of a portable build
    if beside.exists():
        (folder / "lib").mkdir(mode=0o755)
        shutil.copy(beside, folder / "lib")

    def run(name, *args):
        command = [str(folder / "bin" / name), *map(str, args)]
        done = subprocess.run(command, capture_output=True, text=True, preexec_fn=before, cwd=folder)
        return tool.Result(command, done.returncode, done.stdout, done.stderr)

    yield folder, run
    shutil.rmtree(folder)


def preloaded(name):
    """The library that the Makefile builds of tests/fault/NAME.c."""
    if paths.SANITIZED:
        pytest.skip("a sanitizer's library has to be the first one")
    return preload.library(name)


@pytest.fixture(scope="session")
def failmalloc():
    """Makes one allocation of a program fail."""
    return preloaded("failmalloc")


@pytest.fixture(scope="session")
def swapfile():
    """Replaces a file between two openings of it."""
    return preloaded("swapfile")


@pytest.fixture(scope="session")
def failread():
    """Makes reading fail when the output is complete."""
    return preloaded("failread")


@pytest.fixture(scope="session")
def badlibrary():
    """Makes netCDF-C fail as it does on some damaged files."""
    return preloaded("badlibrary")
