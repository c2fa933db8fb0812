"""A file with a bit of everything that options choose from, and a server of buckets."""

import netCDF4
import numpy as np
import pytest

from support import objects


@pytest.fixture
def bucket():
    server = objects.Server()
    yield server
    server.close()


@pytest.fixture(scope="session")
def grid(tmp_path_factory):
    path = tmp_path_factory.mktemp("grid") / "grid.nc"
    with netCDF4.Dataset(path, "w") as ds:
        ds.set_auto_mask(False)
        for d, n in (("time", None), ("lat", 9), ("lon", 12), ("bnds", 2), ("station", 3), ("len", 8)):
            ds.createDimension(d, n)
        time = ds.createVariable("time", "f8", ("time",))
        time.setncatts({"units": "days since 1999-12-20", "calendar": "noleap", "bounds": "time_bnds"})
        time[:] = np.arange(40) + 0.5
        ds.createVariable("time_bnds", "f8", ("time", "bnds"))[:] = np.stack([np.arange(40), np.arange(40) + 1], 1)
        ds.createVariable("lat", "f8", ("lat",))[:] = np.linspace(80, -80, 9)
        ds.createVariable("lon", "f4", ("lon",))[:] = np.arange(12) * 30
        ds.createVariable("height", "f8", ())[...] = 2.0
        ds.createVariable("crs", "S1", ()).grid_mapping_name = "latitude_longitude"
        field = 280 + 10 * np.sin(np.arange(40 * 9 * 12).reshape(40, 9, 12) / 50.0)
        tas = ds.createVariable("tas", "f4", ("time", "lat", "lon"), fill_value=1e20, zlib=True, chunksizes=(7, 4, 5))
        tas.setncatts({"units": "K", "coordinates": "height", "grid_mapping": "crs", "long_name": "temperature"})
        field[3, 2] = 1e20
        tas[:] = field
        pr = ds.createVariable("pr", "i2", ("time", "lat", "lon"), fill_value=-32767)
        pr.set_auto_maskandscale(False)
        pr.setncatts({"scale_factor": 0.25, "add_offset": 10.0, "units": "mm"})
        pr[:] = (np.arange(40 * 9 * 12) % 3000).reshape(40, 9, 12)
        pr[0, 0] = -32767
        ds.createVariable("mask", "i1", ("lat", "lon"))[:] = np.arange(108).reshape(9, 12)
        ds.createVariable("a:b", "f8", ("lat", "lon"))[:] = np.arange(108).reshape(9, 12) / 3
        name = ds.createVariable("name", "S1", ("station", "len"))
        name.set_auto_chartostring(False)
        name[:] = np.array([b"Kiel", b"a b", b""], "S8").view("S1").reshape(3, 8)
    return path
