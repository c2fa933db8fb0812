"""Input that takes long to convert, disks that are soon full, memory that is refused."""

import subprocess

import netCDF4
import numpy as np
import pytest

from support import paths, preload


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
