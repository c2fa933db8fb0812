"""Times of several dimensions that are counted from other dates: each element at its place, as xarray decodes the files."""

import netCDF4
import numpy as np
import pytest
import xarray as xr

from support import tool


def month(path, i, dims):
    with netCDF4.Dataset(path, "w") as ds:
        ds.createDimension("time", 3)
        ds.createDimension("bnds", 2)
        t = ds.createVariable("time", "f8", ("time",))
        t.units, t.bounds = f"days since 2000-0{i + 1}-01", "time_bnds"
        t[:] = np.arange(3) + 0.5
        bounds = np.arange(3)[:, None] + np.array([0.0, 1.0])
        ds.createVariable("time_bnds", "f8", dims)[:] = bounds if dims[0] == "time" else bounds.T


@pytest.mark.parametrize("turned", [{0}, {1}, {0, 2}, {0, 1, 2}], ids=str)
def test_bounds_of_another_order(tmp_path, turned):
    (tmp_path / "in").mkdir()
    for i in range(3):
        month(tmp_path / "in" / f"m{i}.nc", i, ("bnds", "time") if i in turned else ("time", "bnds"))
    tool.nc2zarr(tmp_path / "in", tmp_path / "out.zarr").ok()
    parts = [xr.open_dataset(p).transpose("time", "bnds") for p in sorted((tmp_path / "in").iterdir())]
    with xr.open_zarr(tmp_path / "out.zarr") as made:
        xr.testing.assert_equal(made.transpose("time", "bnds").load(), xr.concat(parts, "time").load())


def test_times_along_two_joined_dimensions(tmp_path):
    """A forecast's valid_time(time, step), in files of one start and some steps each."""
    (tmp_path / "in").mkdir()
    for i in range(2):
        for k in range(3):
            time = np.datetime64("2024-01-01T00", "ns") + i * np.timedelta64(12, "h")
            step = (np.array([k * 6, k * 6 + 3]) * np.timedelta64(1, "h")).astype("m8[ns]")
            ds = xr.Dataset({"u": (("time", "step"), [[i * 10.0 + k, i * 10.0 + k + 0.5]])}, {"time": [time], "step": step})
            ds["valid_time"] = (("time", "step"), time + step[None])
            ds.set_coords("valid_time").to_netcdf(tmp_path / "in" / f"{i}{k}.nc")
    tool.nc2zarr(tmp_path / "in", tmp_path / "out.zarr").ok()
    with xr.open_mfdataset(str(tmp_path / "in" / "*.nc"), combine="by_coords") as want, xr.open_zarr(tmp_path / "out.zarr") as made:
        xr.testing.assert_equal(made.load(), want.load())
