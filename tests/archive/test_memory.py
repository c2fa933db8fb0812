"""Memory does not grow with the number of files, beyond 16 bytes a chunk and 320 a file."""

import resource

import netCDF4
import numpy as np
import pytest

from support import paths
from support.tool import nc2zarr

pytestmark = pytest.mark.skipif(paths.SANITIZED, reason="a sanitizer's own memory would be counted")

FILES = 4000


@pytest.fixture(scope="module", params=["NETCDF4", "NETCDF3_64BIT_OFFSET"])
def folders(request, tmp_path_factory):
    """Files whose units of time and history differ each, and a hundredth of them."""
    root = tmp_path_factory.mktemp("many")
    # Values without chunks are read in long pieces.
    time, maps = ({"chunksizes": (16,)}, {"chunksizes": (1, 6), "zlib": True}) if request.param == "NETCDF4" else ({}, {})
    for n in (FILES, FILES // 100):
        (root / str(n)).mkdir()
        for i in range(n):
            with netCDF4.Dataset(root / str(n) / f"t_{i:05}.nc", "w", format=request.param) as nc:
                nc.history = f"made as number {i}"
                nc.createDimension("time", None)
                nc.createDimension("x", 6)
                t = nc.createVariable("time", "f8", ("time",), **time)
                t.units = f"hours since {2000 + i // 1000}-01-01 00:{i // 60 % 60:02}:{i % 60:02}"
                t[:] = np.arange(2) + 2.0 * (i % 1000)
                nc.createVariable("v", "f4", ("time", "x"), **maps)[:] = np.arange(12).reshape(2, 6) + i
    return root


def few_files():
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))


def peak(folder, out, *args):
    return nc2zarr("-q", "-j", "2", *args, folder, out, peak=True, before=few_files).ok().peak


@pytest.mark.long
@pytest.mark.parametrize("args", [["--dry-run"], ["--verify", "none", "--chunks", "v:time=10,x=6"], ["--chunks", "v:time=10,x=6"]])
def test_memory_of_many_files(folders, tmp_path, args):
    # The peaks of two runs of the same command differ by up to 0.3 MB.
    few = max(peak(folders / str(FILES // 100), tmp_path / f"few{i}.zarr", *args) for i in range(3))
    many = min(peak(folders / str(FILES), tmp_path / f"many{i}.zarr", *args) for i in range(3))
    chunks = 3 * FILES  # two of v, one of time
    # Pages of lists that are in use, as many as the system maps at once: up to 240 bytes a file were measured.
    assert many - few < 16 * chunks + 320 * FILES, (few, many)
