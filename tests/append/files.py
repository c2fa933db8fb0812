"""Files of a daily archive, and stores that other programs make of them."""

import json
from pathlib import Path

import netCDF4
import numpy as np
import xarray as xr

from support import paths

NLAT, NLON = 5, 7
UNITS = "days since 2000-01-01"

# Stores whose writing is killed before calls of some classes.
KILLED = {
    "v3": ["--chunks", "time=4,lat=3"],
    "v2": ["--zarr-format", "2", "--chunks", "time=4,lat=3"],
    "shards": ["--chunks", "time=2,lat=3", "--shards", "time=8,lat=6"],
    # An append gives the coordinate one chunk, and leaves the old ones to readers.
    "repaired": ["--chunks", "time=4,lat=3", "--chunks", "time:time=1"],
}
ANOTHER_LAYOUT = ("shards", "repaired")  # than one conversion has, or other bytes


def beside(layout):
    """Files left beside a store that grew."""
    return ["append-left", "ledger"] if layout == "repaired" else ["ledger"]


def listed(store):
    """Paths of the ledger's lines, in order."""
    lines = (store.parent / f"{store.name}.chunkmill" / "ledger").read_text().splitlines()[1:-1]
    return [json.loads(line.split(" ", 1)[1])["path"] for line in lines]


KILLED_BEFORE = ("rename", "unlink", "write") if paths.LONG else ("rename", "unlink")
MOST_KILLS = 1000 if paths.LONG else 14  # of each class


def values(first, n):
    """Of n days from the first on; every element of an archive is another."""
    days = np.arange(first, first + n, dtype="f4")
    return days[:, None, None] * 100 + np.arange(NLAT * NLON, dtype="f4").reshape(NLAT, NLON)


def day(
    path,
    first,
    n=1,
    units=UNITS,
    calendar="standard",
    dtype="f8",
    data=None,
    deflate=True,
    bounds=True,
    fill=np.float32(1e20),
    attrs=None,
    static=None,
    lat=None,
    extra=(),
    type="f4",
    dims=("time", "lat", "lon"),
    format="NETCDF4",
):
    """One file: n days from the first on."""
    data = values(first, n) if data is None else data
    when = netCDF4.date2num(netCDF4.num2date(np.arange(first, first + n + 1), UNITS), units, calendar)
    with netCDF4.Dataset(path, "w", format=format) as nc:
        nc.createDimension("time", None)
        nc.createDimension("lat", NLAT)
        nc.createDimension("lon", NLON)
        nc.createDimension("nv", 2)
        nc.history = f"made as {Path(path).name}"
        t = nc.createVariable("time", dtype, ("time",))
        t.units, t.calendar, t.standard_name = units, calendar, "time"
        t[:] = when[:-1]
        if bounds:
            t.bounds = "time_bnds"
            nc.createVariable("time_bnds", "f8", ("time", "nv"))[:] = np.stack([when[:-1], when[1:]], 1)
        y = nc.createVariable("lat", "f8", ("lat",))
        y.units = "degrees_north"
        y[:] = np.linspace(-60, 60, NLAT) if lat is None else lat
        x = nc.createVariable("lon", "f8", ("lon",))
        x.units = "degrees_east"
        x[:] = np.arange(NLON) * 10.0
        v = nc.createVariable("tas", type, dims, zlib=deflate and format == "NETCDF4", fill_value=fill)
        v.units, v.standard_name = "K", "air_temperature"
        for name, value in (attrs or {}).items():
            v.setncattr(name, value)
        axes = [d for d in ("time", "lat", "lon") if d in dims]
        v[:] = np.transpose(data, [axes.index(d) for d in dims])
        nc.createVariable("ground", "f4", ("lat", "lon"))[:] = (
            np.arange(NLAT * NLON).reshape(NLAT, NLON) if static is None else static
        )
        for name in extra:
            nc.createVariable(name, "f4", ("time", "lat", "lon"))[:] = data
    return path


def days(folder, first, n, each=1, **kw):
    """The files of n days."""
    return [day(folder / f"day{i:05}.nc", i, min(each, first + n - i), **kw) for i in range(first, first + n, each)]


def open_all(paths):
    return xr.open_mfdataset(paths, combine="by_coords", data_vars="minimal", compat="override", coords="minimal")


def by_xarray(paths, store, chunks=None, shards=None, **kw):
    """The store as xarray and zarr-python write it."""
    with open_all(paths) as ds:
        ds = ds.load()
        encoding = {}
        if chunks:
            encoding["tas"] = {"chunks": chunks}
            if shards:
                encoding["tas"]["shards"] = shards
        for v in ds.variables.values():
            for key in ("chunksizes", "preferred_chunks", "zlib", "shuffle", "complevel", "fletcher32", "szip", "zstd",
                        "bzip2", "blosc", "contiguous", "original_shape", "source", "unlimited_dims", "chunks"):
                v.encoding.pop(key, None)
        ds.to_zarr(store, encoding=encoding, **kw)
    return store


def same(store, paths, **kw):
    """The store, as xarray sees it, is what the files say."""
    with xr.open_zarr(store, chunks=None, **kw) as got, open_all(paths) as want:
        want = want.load()
        got = got.load()
        assert set(got.variables) == set(want.variables)
        for name in want.variables:
            np.testing.assert_array_equal(got[name].values, want[name].values, err_msg=name)
            assert got[name].dims == want[name].dims
