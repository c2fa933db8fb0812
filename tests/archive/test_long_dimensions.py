"""Dimensions that are longer than all that a file stores: small files, whose surveys end soon and in their memory."""

import netCDF4
import pytest

from support import paths, tool

MEMORY = 128 << 20


def write(path, length, coordinate=None):
    """LENGTH elements along x, of which nothing is stored."""
    with netCDF4.Dataset(path, "w") as ds:
        ds.createDimension("x", length)
        ds.createDimension("y", 3)
        for name, dtype in (("v", "f4"), ("x", coordinate)):
            if dtype:
                ds.createVariable(name, dtype, ("x",), chunksizes=(min(length, 1 << 20),))
        ds.createVariable("w", "f4", ("y",))[:] = 1
    return path


def survey(*args):
    # A child that opens a file of a survey may have 256 MiB at least.
    done = tool.nc2zarr("-q", "--survey", "--memory", str(MEMORY), *args, peak=True, timeout=120)
    assert paths.SANITIZED or done.peak < max(MEMORY, 256 << 20), f"{done.peak >> 20} MiB\n{done}"
    return done


@pytest.mark.few
@pytest.mark.parametrize("lengths", [(2**40, 2**40 + 5), (2**40, 5), (2**60, 2**60), (2**32 - 1, 2**32 - 1), (2**26, 2**26)])
def test_steps_without_a_coordinate(tmp_path, lengths):
    """The first file that makes too many is named: each step would take memory until its file is known."""
    files = [write(tmp_path / f"{i}.nc", n) for i, n in enumerate(lengths)]
    assert survey(*files).status == 4
    done = survey("--along", "x", *files)
    done.fails(1, ".nc: has", "are joined; raise --memory")


def test_steps_that_fit(tmp_path):
    """As many as the memory allows are joined, within it."""
    files = [write(tmp_path / f"{i}.nc", 5_000_000) for i in range(2)]
    done = survey("--along", "x", *files)
    assert done.status == 0 and "10000000" in done.said.replace(",", ""), str(done)


@pytest.mark.long(ci=1)
def test_coordinates_of_which_nothing_is_stored(tmp_path):
    """Read by a child that has its time, and gives up."""
    long, short = write(tmp_path / "long.nc", 2**40, "f8"), write(tmp_path / "short.nc", 5, "f8")
    done = survey(long, short)
    assert done.status == 4 and "long.nc" in done.said, str(done)
