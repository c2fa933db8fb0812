"""A worker's buffers stay from variable to variable: --memory counts the largest of each kind, not of one variable."""

import netCDF4
import numpy as np
import pytest
import zarr

from support import paths, tool

pytestmark = pytest.mark.skipif(paths.SANITIZED, reason="a sanitizer's own memory would be counted")

MIB = 1 << 20
SHAPE, LARGE, SMALL = (48, 256, 512), (24, 256, 512), (1, 256, 512)


@pytest.fixture(scope="module")
def opposite(tmp_path_factory):
    """One variable has large chunks and the other small ones; the store has them the other way round."""
    path = tmp_path_factory.mktemp("opposite") / "opposite.nc"
    data = np.random.default_rng(4).random(SHAPE, dtype="f4")
    with netCDF4.Dataset(path, "w") as nc:
        for name, n in zip("tyx", SHAPE):
            nc.createDimension(name, n)
        for name, chunk in (("large", LARGE), ("small", SMALL)):
            nc.createVariable(name, "f4", tuple("tyx"), zlib=True, complevel=1, chunksizes=chunk)[:] = data
    return path, data


@pytest.mark.long(ci=1)
@pytest.mark.parametrize("memory", [110, 120, 160])
def test_peak_with_opposite_chunks(opposite, out, memory):
    path, data = opposite
    chunks = ["--chunks", "large:" + "x".join(map(str, SMALL)), "--chunks", "small:" + "x".join(map(str, LARGE))]
    done = tool.nc2zarr("--memory", f"{memory}MiB", "-j", "2", *chunks, path, out, peak=True).ok()
    assert done.peak <= memory * MIB, f"peak {done.peak / MIB:.0f} MiB, limit {memory} MiB\n{done}"
    for name in ("large", "small"):
        assert np.array_equal(zarr.open_group(out, mode="r")[name][...], data)


def test_too_little_is_refused(opposite, out):
    path, _ = opposite
    chunks = ["--chunks", "large:" + "x".join(map(str, SMALL)), "--chunks", "small:" + "x".join(map(str, LARGE))]
    done = tool.nc2zarr("--memory", "80MiB", "-j", "2", *chunks, path, out)
    done.fails(done.status or 1, "the limit is 80.00 MiB")
    assert not out.exists()
