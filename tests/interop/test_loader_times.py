"""Coordinates of time: datetime64 as xarray has them, objects in other calendars."""

import os
import subprocess
import sys

import cftime
import netCDF4
import numpy as np
import pytest
import xarray

from support import paths

pytestmark = [pytest.mark.skipif(paths.SANITIZED, reason="a sanitizer's library cannot be loaded into a plain Python"),
              pytest.mark.filterwarnings("ignore")]

os.environ["CHUNKMILL_LIBRARY"] = str(paths.BUILD / "lib" / "libchunkmill_loader.so.1")
import chunkmill  # noqa: E402

TIMES = {
    # name: (units, calendar, values)
    "hours": ("hours since 1900-01-01 00:00:00.0", "gregorian", np.arange(8, dtype="i4") * 6 + 876000),
    "no calendar": ("days since 2000-01-01", None, np.arange(8, dtype="i8")),
    "fractions": ("days since 1850-1-1", "standard", np.arange(8) / 4 + 51000.125),
    "single fractions": ("days since 1990-1-1", "proleptic_gregorian", (np.arange(8) / 8).astype("f4")),
    "a time zone": ("hours since 2000-01-01 00:00 +05:30", "standard", np.arange(8)),
    "a zone without a sign": ("seconds since 2011-05-10 00:00:00 0:00", None, np.arange(8) * 3600),
    "a zero for a zone": ("days since 2011-05-10 00:00:00.0 00:00", "gregorian", np.arange(8)),
    "milliseconds": ("milliseconds since 1970-01-01T00:00:00Z", "standard", np.arange(8) * 86_400_123 + 10**12),
    "from the year 1": ("days since 0001-01-01", "standard", np.arange(8) + 730000),
    "beyond nanoseconds": ("days since 2500-01-01", "proleptic_gregorian", np.arange(8)),
    "before the reform": ("days since 1500-01-01", "standard", np.arange(8)),
    "no leap years": ("days since 2000-02-27", "noleap", np.arange(8) + 0.5),
    "leap years": ("days since 1999-02-27", "366_day", np.arange(8)),
    "equal months": ("hours since 2000-02-29 12:00", "360_day", np.arange(8) * 12),
    "Julian": ("days since 1900-02-27", "julian", np.arange(8)),
    "months": ("months since 2000-01-01", "standard", np.arange(8)),
    "not a time": ("hours", None, np.arange(8)),
}


def netcdf(path, units, calendar, values):
    with netCDF4.Dataset(path, "w") as ds:
        ds.createDimension("time", 8)
        ds.createVariable("v", "f4", ("time",))[...] = np.arange(8)
        v = ds.createVariable("time", values.dtype, ("time",))
        v.units = units
        if calendar:
            v.calendar = calendar
        v[...] = values
    return path


def fields(times):
    return [(t.year, t.month, t.day, t.hour, t.minute, t.second, t.microsecond) for t in times]


@pytest.mark.every
@pytest.mark.parametrize("name", TIMES)
def test_times(tmp_path, name):
    units, calendar, values = TIMES[name]
    path = netcdf(tmp_path / "a.nc", *TIMES[name])
    with chunkmill.Loader(path, variables="v", sample={"time": 3}, batch=6) as loader:
        (dim,) = loader.dims
        got = dim.coords
        (batch,) = loader
        for k, first in enumerate(batch.index[:, 0].tolist()):
            assert (batch.coords["time"][k] == got[first:first + 3]).all()
    with chunkmill.Loader(path, variables="v", sample={"time": 3}, batch=6, decode=False) as loader:
        assert (loader.dims[0].coords == values).all() and loader.dims[0].coords.dtype == values.dtype
        assert loader.dims[0].attributes["units"] == units
    if units.startswith("months") or "since" not in units:
        assert (got == values).all() and got.dtype == values.dtype
        return
    want = cftime.num2date(values.astype("f8") if values.dtype == "f4" else values, units, calendar or "standard", only_use_cftime_datetimes=True)
    if got.dtype == object:
        assert calendar not in (None, "gregorian", "proleptic_gregorian") and (got == want).all()
        since = chunkmill._dates.parse(units)
        assert fields(chunkmill._dates.date_of(since, v, calendar) for v in values.tolist()) == fields(want)
    else:
        assert (got == np.array([t.isoformat().split("+")[0] for t in want], got.dtype)).all()
        assert got.dtype == ("M8[us]" if name == "beyond nanoseconds" else "M8[ns]")
        with xarray.open_dataset(path) as ds:
            if ds["time"].dtype.kind == "M":
                assert (got == ds["time"].values).all()
                with chunkmill.Loader(ds[["v"]], sample={"time": 3}) as again:
                    assert (again.dims[0].coords == got).all()


def test_dates_without_cftime(tmp_path):
    path = netcdf(tmp_path / "a.nc", *TIMES["equal months"])
    script = ("import sys; sys.modules['cftime'] = None\n"
              "import chunkmill\n"
              "loader = chunkmill.Loader(sys.argv[1], variables='v', sample={'time': 3})\n"
              "print(loader.dims[0].coords[1])\n")
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True,
                          env={**os.environ, "PYTHONPATH": str(paths.ROOT / "tools" / "python")})
    assert done.stdout == ("Date(year=2000, month=2, day=30, hour=0, minute=0, second=0, microsecond=0, "
                           "calendar='360_day')\n")


def test_packed_coordinates(tmp_path):
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as ds:
        ds.createDimension("lat", 8)
        ds.createVariable("v", "f4", ("lat",))[...] = np.arange(8)
        lat = ds.createVariable("lat", "i2", ("lat",))
        lat.scale_factor, lat.add_offset = 0.25, -10.0
        lat[...] = np.linspace(-10, 10, 8)
    with xarray.open_dataset(tmp_path / "a.nc") as ds, chunkmill.Loader(tmp_path / "a.nc", variables="v", sample={"lat": 3}) as loader:
        assert (loader.dims[0].coords == ds["lat"].values).all()
