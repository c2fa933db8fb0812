"""Verification keeps the promise that --memory is, whatever the chunks of the file and of the store."""
import h5py
import netCDF4
import numpy as np
import pytest
import zarr

from support import paths, tool

MIB = 1 << 20
pytestmark = pytest.mark.skipif(paths.SANITIZED, reason="a sanitizer's own memory would be counted")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("memory")


@pytest.fixture(scope="module")
def tiny_chunks(folder):
    """HDF5 takes 6 KiB for each chunk of a read: 2 GiB for all of these."""
    path = folder / "tiny.h5"
    with h5py.File(path, "w") as f:
        f.create_dataset("a", data=np.arange(1200000, dtype="i2").reshape(-1, 4), chunks=(1, 4), maxshape=(None, 4))
    return path


@pytest.fixture(scope="module")
def tiny_strings(folder):
    path = folder / "strings.nc"
    with netCDF4.Dataset(path, "w") as ds:
        ds.createDimension("t", 100000)
        ds.createVariable("s", str, ("t",), chunksizes=(1,))[:] = np.array([f"a{i}" for i in range(100000)], object)
    return path


@pytest.fixture(scope="module")
def contiguous(folder):
    path = folder / "contiguous.nc"
    with netCDF4.Dataset(path, "w") as ds:
        ds.createDimension("x", 48 * MIB)
        ds.createVariable("a", "f4", ("x",), contiguous=True)[:] = np.arange(48 * MIB, dtype="f4")
    return path


@pytest.mark.parametrize("verify", ["sample", "full"])
@pytest.mark.parametrize("source, limit, options", [
    ("tiny_chunks", 120, []), ("tiny_chunks", 120, ["--chunks", "10000x1"]), ("tiny_strings", 120, []),
    ("tiny_strings", 120, ["--subset", "t=::50"]), ("contiguous", 240, ["--chunks", "a:16777216"]),
    ("contiguous", 150, ["--chunks", "a:16777216", "--codec", "none"]),
])
def test_peak(request, out, source, limit, options, verify):
    path = request.getfixturevalue(source)
    done = tool.nc2zarr("--memory", f"{limit}MiB", "-j", "4", "--verify", verify, *options, path, out, peak=True).ok()
    assert done.peak <= limit * MIB, f"peak {done.peak / MIB:.0f} MiB, limit {limit} MiB\n{done}"


def test_a_long_coordinate_is_searched_in_little_memory(folder, out):
    path = folder / "coordinate.nc"
    with netCDF4.Dataset(path, "w") as ds:
        ds.createDimension("x", 6000000)
        ds.createVariable("x", "f8", ("x",))[:] = np.arange(6000000)
        for name in "abc":
            ds.createVariable(name, "i1", ("x",))[:] = 1
    done = tool.nc2zarr("--memory", "60MiB", "--subset", "x=100..5000", path, out, peak=True).ok()
    assert zarr.open(str(out))["a"].shape == (4901,)
    assert done.peak <= 60 * MIB, f"peak {done.peak / MIB:.0f} MiB\n{done}"
