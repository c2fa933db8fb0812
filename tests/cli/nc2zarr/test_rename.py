"""--rename: the new name everywhere that a variable or its dimension is said."""

import json

import netCDF4
import numpy as np
import pytest
import xarray as xr

from support import tool

# CF 1.11, appendix A; what each says when lat, lon, crs, area and orog are renamed.
NEW = {"lat": "latitude", "lon": "longitude", "crs": "mercator", "area": "cells", "orog": "height", "flag": "quality"}
SAYS = {
    "coordinates": ("lat lon  scalar", "latitude longitude  scalar"),
    "bounds": ("lat", "latitude"),
    "climatology": ("lon", "longitude"),
    "grid_mapping": ("crs", "mercator"),
    "ancillary_variables": ("flag other", "quality other"),
    "cell_measures": ("area: area volume: other", "area: cells volume: other"),
    "formula_terms": ("lat: orog b: lat", "lat: height b: latitude"),
    "cell_methods": (
        "lat: lon: mean (interval: 1 lat comment: lat: x) time: sum",
        "latitude: longitude: mean (interval: 1 lat comment: lat: x) time: sum",
    ),
    "node_coordinates": ("lon lat", "longitude latitude"),
    "geometry": ("flag", "quality"),
    "compress": ("lat lon", "latitude longitude"),
    "sample_dimension": ("lat", "latitude"),
    "long_name": ("lat of lon", "lat of lon"),  # which names nothing
    "units": ("lat", "lat"),
}


@pytest.fixture
def named(tmp_path):
    """A variable whose attributes name others; another whose grid mapping is of the longer form."""
    path = tmp_path / "named.nc"
    with netCDF4.Dataset(path, "w") as ds:
        ds.createDimension("lat", 3)
        ds.createDimension("lon", 4)
        for name in ("lat", "lon"):
            ds.createVariable(name, "f8", (name,))[:] = np.arange(len(ds.dimensions[name]))
        for name in ("crs", "scalar", "other"):
            ds.createVariable(name, "i4")[:] = 1
        for name in ("area", "orog", "flag"):
            ds.createVariable(name, "f4", ("lat", "lon"))[:] = 2
        v = ds.createVariable("v", "f4", ("lat", "lon"))
        v[:] = np.arange(12).reshape(3, 4)
        v.setncatts({name: old for name, (old, _) in SAYS.items()})
        w = ds.createVariable("w", "f4", ("lat",))
        w[:] = 1
        w.grid_mapping = "crs: lat lon other: scalar"
        ds.coordinates = "lat lon"  # as xarray writes it for what no variable has
        below = ds.createGroup("below")
        u = below.createVariable("u", "f4", ("lon", "lat"))
        u[:] = 3
        u.coordinates = "lat /lon"
        below.createDimension("lat2", 2)
        below.createVariable("lat2", "f4", ("lat2",))[:] = 1
    return path


def renames(names):
    return [word for old, new in names.items() for word in ("--rename", f"{old}={new}")]


def attrs(store, path=""):
    return json.loads((store / path / "zarr.json").read_text())["attributes"]


def dims(store, path):
    return json.loads((store / path / "zarr.json").read_text())["dimension_names"]


def test_every_attribute_that_names_variables(named, out):
    tool.nc2zarr(*renames(NEW), named, out).ok()
    got = attrs(out, "v")
    assert {name: got[name] for name in SAYS} == {name: new for name, (_, new) in SAYS.items()}
    assert attrs(out, "w")["grid_mapping"] == "mercator: latitude longitude other: scalar"
    assert attrs(out)["coordinates"] == "latitude longitude"
    assert attrs(out, "below/u")["coordinates"] == "latitude /longitude"
    assert dims(out, "v") == ["latitude", "longitude"]
    assert dims(out, "latitude") == ["latitude"]
    assert dims(out, "below/u") == ["longitude", "latitude"]
    tool.nc2zarr("--check", *renames(NEW), named, out).ok()
    with xr.open_zarr(out, decode_coords="all") as ds:
        assert ds.v.dims == ("latitude", "longitude") and "latitude" in ds.indexes
        assert ds.w.encoding["grid_mapping"] == "mercator: latitude longitude other: scalar"


def test_nothing_else_is_renamed(named, out):
    """Words of other attributes, longer names, and dimensions of variables that are no coordinate."""
    tool.nc2zarr("--rename", "orog=o", named, out).ok()
    got = attrs(out, "v")
    for name, (old, _) in SAYS.items():
        assert got[name] == (old.replace("orog", "o") if name == "formula_terms" else old)
    assert dims(out, "v") == ["lat", "lon"]


@pytest.mark.parametrize("names, words", [
    ({"lat": "lon"}, "two variables would be named lon"),
    ({"lat": "lon", "lon": "x"}, None),
    ({"lat": "lon", "lon": "lat"}, None),
])
def test_taken_and_exchanged(named, out, names, words):
    done = tool.nc2zarr(*renames(names), named, out)
    if words:
        done.fails(2, words)
        return
    done.ok()
    assert dims(out, "v") == [names["lat"], names["lon"]]
    assert attrs(out, "v")["compress"] == f"{names['lat']} {names['lon']}"


def test_dimension_that_is_taken(tmp_path, out):
    """x would become a dimension that another variable has, of another length."""
    path = tmp_path / "taken.nc"
    with netCDF4.Dataset(path, "w") as ds:
        ds.createDimension("x", 3)
        ds.createDimension("station", 5)
        ds.createVariable("x", "f4", ("x",))[:] = 1
        ds.createVariable("v", "f4", ("x", "station"))[:] = 1
    tool.nc2zarr("--rename", "x=station", path, out).fails(2, "dimension x", "station", "variable v has")
    assert not out.exists()


def test_a_coordinate_of_a_group(named, out):
    tool.nc2zarr("--rename", "below/lat2=row", named, out).ok()
    assert dims(out, "below/row") == ["row"]
    assert dims(out, "v") == ["lat", "lon"]


# ---- numbers that readers take for signed ones ---------------------------------------------------


@pytest.mark.parametrize("zarr_format", ["2", "3"])
@pytest.mark.parametrize("fill", [None, 3, "largest"])
@pytest.mark.parametrize("dtype, says", [("u1", "false"), ("u2", "false"), ("u4", "false"), ("i1", "true"), ("i2", "true")])
def test_unsigned_attribute(tmp_path, out, dtype, says, fill, zarr_format):
    """xarray shows of the store what it shows of the file."""
    path, last = tmp_path / "unsigned.nc", np.iinfo(dtype).max if says == "false" else -1
    with netCDF4.Dataset(path, "w") as ds:
        ds.createDimension("x", 4)
        v = ds.createVariable("v", dtype, ("x",), fill_value=last if fill == "largest" else fill)
        v.set_auto_maskandscale(False)
        v.setncattr("_Unsigned", says)
        v[:] = np.array([0, 1, 3, last], dtype)
    tool.nc2zarr("--zarr-format", zarr_format, path, out).ok()
    with xr.open_dataset(path) as want, xr.open_zarr(out) as got:
        assert got.v.dtype == want.v.dtype
        np.testing.assert_array_equal(got.v.values, want.v.values)
