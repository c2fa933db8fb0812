"""A source that another program replaces while it is being opened."""

import shutil

import h5py
import netCDF4
import numpy as np
import pytest

from support import paths, tool

pytestmark = pytest.mark.skipif(paths.SANITIZED, reason="the sanitizers' own wrappers come first")


def make(path, seed, fmt):
    """Two of these differ in their values alone, so that the one's index fits the other."""
    rng = np.random.default_rng(seed)
    if fmt == "hdf5":
        with h5py.File(path, "w") as f:
            f.create_dataset("v", data=rng.random((64, 64)), chunks=(8, 8), compression="gzip")
        return
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as ds:
        ds.createDimension("x", 1000)
        ds.createVariable("v", "f8", ("x",))[:] = rng.random(1000)


@pytest.mark.parametrize("fmt", ["hdf5", "classic"])
def test_replaced_between_openings(swapfile, tmp_path, out, fmt):
    one, other, path = (tmp_path / name for name in ("one.nc", "other.nc", "in.nc"))
    make(one, 1, fmt)
    make(other, 2, fmt)
    refused = 0
    for nth in range(1, 12):
        shutil.copy(one, path)
        shutil.copy(other, tmp_path / "with.nc")
        env = {"SWAP_PATH": path, "SWAP_WITH": tmp_path / "with.nc", "SWAP_NTH": nth, "LD_PRELOAD": swapfile}
        done = tool.nc2zarr("--overwrite", path, out, env={k: str(v) for k, v in env.items()})
        if (tmp_path / "with.nc").exists():  # it was not opened that often
            done.ok()
            break
        if done.status:
            done.fails(1, "in.nc", "was replaced")
            refused += 1
        else:  # before the first opening, or after the last
            tool.nc2zarr("--check", path, out).ok()
    else:
        pytest.fail("opened more often than looked at")
    assert refused >= 1
