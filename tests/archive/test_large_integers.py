"""Coordinates of integers that no double holds, as cells of H3 and HEALPix are: compared as integers, or refused."""

import netCDF4
import numpy as np
import pytest
import zarr

from support import tool

H3 = 622236750694711295


def write(path, time, cell, dtype="u8"):
    with netCDF4.Dataset(path, "w") as ds:
        for name, values, kind in (("time", time, "i4"), ("cell", cell, dtype)):
            ds.createDimension(name, len(values))
            v = ds.createVariable(name, kind, (name,))
            v.set_auto_maskandscale(False)
            v[:] = np.array(values, kind)
        ds["time"].units = "days since 2000-01-01"
        ds.createVariable("v", "f4", ("time", "cell"))[:] = np.arange(len(time) * len(cell)).reshape(len(time), -1)
    return path


@pytest.mark.parametrize("dtype", ["u8", "i8"])
def test_cells_that_differ_in_the_last_digit_are_a_finding(tmp_path, dtype):
    files = [write(tmp_path / f"{k}.nc", [k], [H3 + k, H3 + 100000], dtype) for k in range(2)]
    done = tool.nc2zarr("-q", "--along", "time", "--verify", "none", *files, tmp_path / "out.zarr")
    assert done.status == 4 and "cell: its values are not those of 0.nc" in done.err, str(done)
    assert not (tmp_path / "out.zarr").exists()


@pytest.mark.parametrize("dtype", ["u8", "i8"])
def test_cells_are_joined_one_by_one(tmp_path, dtype):
    files = [write(tmp_path / f"{k}.nc", [0], [H3 + k], dtype) for k in range(3)]
    tool.nc2zarr("-q", "--along", "cell", "--verify", "full", *files[:2], tmp_path / "out.zarr").ok()
    tool.nc2zarr("-q", "--append", "cell", "--verify", "full", files[2], tmp_path / "out.zarr").ok()
    assert zarr.open_group(tmp_path / "out.zarr", mode="r")["cell"][...].tolist() == [H3 + k for k in range(3)]


@pytest.mark.parametrize(
    "cells, types",
    [([2**63 + 1, 2**63 + 2], ["u8", "u8"]), ([2**53 + 1, 2**53], ["i8", "f8"])],
    ids=["above 2^63", "beside fractions"],
)
def test_others_are_refused(tmp_path, cells, types):
    files = [write(tmp_path / f"{k}.nc", [0], [cells[k]], types[k]) for k in range(2)]
    options = ["--along", "cell", "--dtype", "cell:int64"] if "f8" in types else ["--along", "cell"]
    tool.nc2zarr("-q", *options, *files, tmp_path / "out.zarr").fails(1, "cell", "too large to be compared exactly")
    assert not (tmp_path / "out.zarr").exists()
