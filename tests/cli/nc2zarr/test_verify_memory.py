"""Verification keeps the promise that --memory is, whatever the chunks of the file and of the store."""
import re

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


@pytest.fixture(scope="module")
def noise(folder):
    """Nothing of it compresses: what is stored of a chunk is as large as the chunk."""
    path = folder / "noise.nc"
    with netCDF4.Dataset(path, "w") as ds:
        ds.createDimension("x", 32 * MIB)
        ds.createVariable("a", "i4", ("x",), contiguous=True)[:] = np.random.default_rng(1).integers(0, 1 << 31, 32 * MIB)
    return path


@pytest.mark.long
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


CHUNK = ("--chunks", "a:16777216")  # 64 MiB, of which a thread holds three when it decodes blosc


@pytest.mark.long
@pytest.mark.parametrize("verify", ["sample", "full"])
@pytest.mark.parametrize("threads, limit", [(1, 240), (4, 240), (4, 500)])
def test_a_verifying_thread_is_counted(noise, out, threads, limit, verify):
    """Verification holds more than the conversion, which needs 210 MiB: fewer threads, smaller boxes."""
    options = ["--memory", f"{limit}MiB", "-j", threads, "--verify", verify, *CHUNK]
    done = tool.nc2zarr(*options, noise, out, peak=True).ok()
    assert 180 * MIB < done.peak <= limit * MIB, f"peak {done.peak / MIB:.0f} MiB\n{done}"


def least_of(done):
    return float(re.search(r"at least ([\d.]+) MiB", done.err)[1])


@pytest.mark.long(ci=1)
def test_what_verification_cannot_hold_is_refused_before(noise, out):
    """With the least that would do; and without verification less does."""
    tool.nc2zarr("--memory", "226MiB", *CHUNK, noise, out).fails(1, "noise.nc", "for verification", "--memory")
    assert not out.exists()
    least = least_of(tool.nc2zarr("--memory", "60MiB", *CHUNK, noise, out))
    assert 226 < least < 250  # the libraries differ in size
    tool.nc2zarr("--memory", f"{least + 1:.0f}MiB", *CHUNK, noise, out).ok()
    tool.nc2zarr("--memory", f"{least - 5:.0f}MiB", "--verify", "none", "--overwrite", *CHUNK, noise, out).ok()
    refused = tool.nc2zarr("--check", "--memory", f"{least - 3:.0f}MiB", noise, out)
    refused.fails(1, "noise.nc", "to compare", "at least")
    assert least_of(refused) == pytest.approx(least, abs=2)
    tool.nc2zarr("--check", noise, out).ok()  # no limit: what it needs
