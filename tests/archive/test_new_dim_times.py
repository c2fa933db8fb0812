"""Times that names of files say: their units, and those that were asked for."""

import netCDF4
import numpy as np
import pytest
import xarray as xr

from support import tool

from . import files as F
from . import stores

NAMES = {"w_20000101_0000.nc": "2000-01-01T00", "w_20000101_0600.nc": "2000-01-01T06", "w_20000103_1800.nc": "2000-01-03T18"}


def write(folder, n):
    for name in list(NAMES)[:n]:
        F.write(F.File(name, {"v": F.Var(("x",), np.arange(2, dtype="f4"))}, unlimited=()), folder)
    return [folder / name for name in list(NAMES)[:n]]


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("units", ["hours since 1970-01-01", "seconds since 2000-01-02 00:00:00", "nanoseconds since 2000-01-01"])
def test_units_that_are_asked_for(tmp_path, n, units):
    paths = write(tmp_path, n)
    stores.convert("--verify", "full", "--new-dim", "time=%Y%m%d_%H%M", "--time-units", units, *paths, tmp_path / "out.zarr").ok()
    with xr.open_zarr(tmp_path / "out.zarr") as ds:
        np.testing.assert_array_equal(ds.time.values, np.array(list(NAMES.values())[:n], "datetime64[ns]"))
        assert ds.time.encoding["units"] == units and ds.time.encoding["dtype"] == np.int64


def test_units_that_count_no_whole_number_are_refused(tmp_path):
    paths = write(tmp_path, 3)
    r = stores.convert("--new-dim", "time=%Y%m%d_%H%M", "--time-units", "days since 2000-01-01", *paths, tmp_path / "out.zarr")
    assert r.status == 2 and "w_20000101_0600.nc" in r.err and "--time-units days since 2000-01-01" in r.err


def test_a_store_of_midnights_grows_by_hours(tmp_path):
    """The coarsest unit of the first file would be days."""
    first, *more = write(tmp_path, 3)
    options = ("--new-dim", "time=%Y%m%d_%H%M")
    stores.convert(*options, "--time-units", "hours since 2000-01-01", first, tmp_path / "out.zarr").ok()
    stores.convert("--append", "time", *options, *more, tmp_path / "out.zarr").ok()
    tool.nc2zarr("--check", *options, "--time-units", "hours since 2000-01-01", first, *more, tmp_path / "out.zarr").ok()


def test_places_that_no_file_has_in_two_dimensions(tmp_path):
    """Integers without _FillValue, in units of their own: holes are counted in places, not in rows."""
    for i, (name, member) in enumerate([("a", 0), ("b", 1)]):
        with netCDF4.Dataset(tmp_path / f"{name}.nc", "w") as nc:
            n = 3 - i
            for dim, length in (("time", n), ("member", 1)):
                nc.createDimension(dim, length)
            time = nc.createVariable("time", "f8", ("time",))
            time.units, time[:] = "days since 2000-01-01", np.arange(n)
            nc.createVariable("member", "i4", ("member",))[:] = member
            seen = nc.createVariable("seen", "i4", ("time", "member"))
            seen.units, seen[:] = f"seconds since 2000-01-0{i + 1}", np.arange(n)[:, None]
    stores.convert("--missing", "fill", "--verify", "full", tmp_path / "a.nc", tmp_path / "b.nc", tmp_path / "out.zarr").ok()
    with xr.open_zarr(tmp_path / "out.zarr") as ds:
        assert int(ds.seen.isnull().sum()) == 1
