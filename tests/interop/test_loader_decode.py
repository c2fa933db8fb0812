"""Numbers that the loader delivers are those that xarray decodes."""

import os

import netCDF4
import numpy as np
import pytest
import xarray
import zarr

from support import paths, tool

pytestmark = [pytest.mark.skipif(paths.SANITIZED, reason="a sanitizer's library cannot be loaded into a plain Python"),
              pytest.mark.filterwarnings("ignore")]  # of xarray, about fill values that differ

os.environ["CHUNKMILL_LIBRARY"] = str(paths.BUILD / "lib" / "libchunkmill_loader.so.1")
import chunkmill  # noqa: E402

RNG = np.random.default_rng(8)
SHAPE = (6, 5)


def numbers(kind):
    kind = np.dtype(kind)
    if kind.kind == "f":
        return RNG.standard_normal(SHAPE).astype(kind)
    return RNG.integers(np.iinfo(kind).min, np.iinfo(kind).max, SHAPE, dtype=kind, endpoint=True)


def with_value(kind, value):
    values = numbers(kind)
    values[::2, 1] = value
    return values


# Stored numbers, and their attributes.
FIELDS = {
    "plain float32": (numbers("f4"), {}),
    "plain int16": (numbers("i2"), {}),
    "packed, both": (numbers("i2"), {"scale_factor": 0.01, "add_offset": 273.15}),
    "packed, single": (numbers("i2"), {"scale_factor": np.float32(0.01), "add_offset": np.float32(273.15)}),
    "packed, with fill": (with_value("i2", -32767), {"scale_factor": 0.5, "add_offset": -2.0, "_FillValue": np.int16(-32767)}),
    "packed int32": (numbers("i4"), {"scale_factor": np.float32(0.5), "add_offset": np.float32(1)}),
    "packed int64": (numbers("i8"), {"scale_factor": 0.125, "add_offset": 1.0}),
    "scale alone": (numbers("u1"), {"scale_factor": np.float32(0.1)}),
    "scale alone, double": (numbers("u1"), {"scale_factor": 0.1}),
    "offset alone": (numbers("i2"), {"add_offset": np.float32(2)}),
    "packed floats": (numbers("f4"), {"scale_factor": 2.0, "add_offset": 1.0}),
    **{f"f{size}, NaN by {name}, {packing}": (with_value(f"f{size}", np.nan), {name: np.dtype(f"f{size}").type("nan"), **packing})
       for size, packing in [(4, {"scale_factor": 0.1}), (4, {"scale_factor": np.float32(0.1)}), (4, {"add_offset": 2.0}),
                             (8, {"scale_factor": np.float32(0.1)}), (8, {"scale_factor": 0.5, "add_offset": 1.0})]
       for name in ("_FillValue", "missing_value")},
    "packed floats, NaN and another": (with_value("f8", 9), {"_FillValue": np.float64("nan"), "missing_value": 9., "scale_factor": np.float32(2)}),
    "float with fill": (with_value("f4", 1e20), {"_FillValue": np.float32(1e20)}),
    "double with fill": (with_value("f8", -999), {"_FillValue": np.float64(-999)}),
    "float with NaN": (with_value("f4", np.nan), {"_FillValue": np.float32("nan")}),
    "int16 with fill": (with_value("i2", -1), {"_FillValue": np.int16(-1)}),
    "int32 with fill": (with_value("i4", 7), {"_FillValue": np.int32(7)}),
    "int64 with fill": (with_value("i8", 7), {"_FillValue": np.int64(7)}),
    "missing value": (with_value("i2", 9), {"missing_value": np.int16(9)}),
    "missing value, float": (with_value("f4", 9), {"missing_value": np.float32(9)}),
    "two of them": (with_value("i2", 9), {"missing_value": np.int16(9), "_FillValue": np.int16(10)}),
    "_Unsigned": (numbers("i1"), {"_Unsigned": "true"}),
    "_Unsigned, with fill": (with_value("i1", -1), {"_Unsigned": "true", "_FillValue": np.int8(-1)}),
    "signed": (numbers("u2"), {"_Unsigned": "false"}),
    "signed, packed": (numbers("u1"), {"_Unsigned": "false", "scale_factor": np.float32(0.5)}),
    "_Unsigned, packed": (with_value("i2", -1), {"_Unsigned": "true", "_FillValue": np.int16(-1), "scale_factor": np.float32(0.5)}),
    "a missing value that is text": (numbers("i2"), {"missing_value": "none"}),
}


def netcdf(path, values, attrs):
    with netCDF4.Dataset(path, "w") as ds:
        for name, length in zip(("time", "x"), SHAPE):
            ds.createDimension(name, length)
        rest = dict(attrs)
        v = ds.createVariable("v", values.dtype, ("time", "x"), fill_value=rest.pop("_FillValue", None))
        v.set_auto_maskandscale(False)
        v.setncatts(rest)
        v[...] = values
    return path


def zarr_store(path, values, attrs, fmt):
    group = zarr.create_group(str(path), zarr_format=fmt)
    plain = {k: v.item() if isinstance(v, np.generic) else v for k, v in attrs.items()}
    if isinstance(plain.get("_FillValue"), float) and fmt == 3:  # as xarray writes it
        plain["_FillValue"] = xarray.backends.zarr.FillValueCoder.encode(plain["_FillValue"], values.dtype)
    if fmt == 3:
        more = {"dimension_names": ("time", "x"), "attributes": plain}
    else:  # the fill value of the array is the one that masks
        more = {"attributes": {**plain, "_ARRAY_DIMENSIONS": ["time", "x"]}, "fill_value": plain.pop("_FillValue", None)}
        more["attributes"].pop("_FillValue", None)
    group.create_array("v", shape=SHAPE, chunks=(2, 3), dtype=values.dtype, **more)[...] = values
    return path


def delivered(path, name, shape, **options):
    """All of a variable, by samples in order."""
    dims = {dim: 1 if i == 0 else length for i, (dim, length) in enumerate(shape.items())}
    with chunkmill.Loader(path, variables=name, sample=dims, batch=shape[next(iter(shape))], order="sequential", workers=1,
                          **options) as loader:
        parts = [batch[loader.keys()[0]].numpy().copy() for batch in loader]
    whole = np.concatenate(parts)
    return whole.reshape(tuple(shape.values()))


def assert_same_numbers(got, want, what):
    """Products and sums may differ in the last place: xarray rounds each in the type that it decodes to."""
    assert got.dtype == want.dtype, what
    if want.dtype.kind == "f":
        digits = 4 * np.finfo(want.dtype).eps
        np.testing.assert_allclose(got, want, rtol=digits, atol=digits * np.nanmax(np.abs(want), initial=0), err_msg=what)
    else:
        np.testing.assert_array_equal(got, want, err_msg=what)


@pytest.mark.parametrize("kind", ["nc", "v2", "v3"])
def test_as_xarray_decodes(tmp_path, kind):
    for i, (what, (values, attrs)) in enumerate(FIELDS.items()):
        path = tmp_path / f"{i}.{kind}"
        if kind == "nc":
            netcdf(path, values, attrs)
            ds = xarray.open_dataset(path, engine="netcdf4")
        else:
            zarr_store(path, values, attrs, int(kind[1]))
            ds = xarray.open_zarr(path, consolidated=False, chunks=None)
        with ds:
            assert_same_numbers(delivered(path, "v", {"time": 6, "x": 5}), ds["v"].values, f"{kind}: {what}")
            raw = delivered(path, "v", {"time": 6, "x": 5}, decode=False)
            assert raw.dtype == values.dtype
            np.testing.assert_array_equal(raw, values, err_msg=what)


def test_one_type_for_all(tmp_path):
    """A cast comes with what is decoded; parts of it may be left out."""
    values = with_value("i2", -1)
    path = zarr_store(tmp_path / "a.zarr", values, {"scale_factor": 0.5, "add_offset": 1.0, "_FillValue": -1}, 3)
    shape = {"time": 6, "x": 5}
    with xarray.open_zarr(path, consolidated=False, chunks=None) as ds:
        want = ds["v"].values.astype("f4")
    np.testing.assert_array_equal(delivered(path, "v", shape, cast="float32"), want)
    got = delivered(path, "v", shape, fill_to_nan=False)
    np.testing.assert_array_equal(got, values * 0.5 + 1)
    got = delivered(path, "v", shape, decode=False, cast="float64")
    assert got.dtype == "f8"
    np.testing.assert_array_equal(got, values)


@pytest.mark.parametrize("path", paths.shared_files("netcdf", suffixes=(".nc", ".nc4")))
def test_real_files(path):
    """Every field of numbers that xarray and the loader read, a few steps of it."""
    try:
        ds = xarray.open_dataset(path, engine="netcdf4", decode_times=False, decode_timedelta=False, decode_coords=False)
    except (OSError, ValueError, TypeError, AttributeError) as problem:
        pytest.skip(f"xarray does not open it: {problem}")
    with ds:
        for name, v in ds.data_vars.items():
            if v.dtype.kind not in "iuf" or v.ndim == 0 or 0 in v.shape or v.nbytes > 1 << 20:
                continue
            got = delivered(path, name, dict(zip(v.dims, v.shape)))
            assert_same_numbers(got, v.values, f"{path.name}: {name}")


@pytest.mark.every
@pytest.mark.parametrize("form", ["nc", 2, 3])
@pytest.mark.parametrize("kind, attrs", [("i2", {}), ("i4", {"units": "days since 2000-01-01"}), ("i8", {"units": "hours since 2000-01-01"}),
                                         ("f4", {}), ("i2", {"scale_factor": 0.5, "add_offset": 2.0}), ("f8", {"missing_value": -7.0})])
def test_missing_coordinates(tmp_path, form, kind, attrs):
    """Not a number, not a time, as xarray shows them; with `decode=False` what is stored."""
    path, stored = tmp_path / "c.nc", np.array([1, -7, 3, 4], kind)
    with netCDF4.Dataset(path, "w") as nc:
        nc.createDimension("x", 4)
        x = nc.createVariable("x", kind, ("x",), fill_value=None if "missing_value" in attrs else stored[1])
        x.set_auto_maskandscale(False)
        x.setncatts(attrs)
        x[:] = stored
        nc.createVariable("v", "f4", ("x",))[:] = np.arange(4)
    if form != "nc":
        tool.nc2zarr("-q", "--zarr-format", str(form), path, tmp_path / "c.zarr").ok()
    where = path if form == "nc" else tmp_path / "c.zarr"
    with xarray.open_dataset(path) if form == "nc" else xarray.open_zarr(where) as ds:
        want = ds.x.values
    with chunkmill.Loader(where, variables="v", sample={"x": 2}) as loader:
        got = loader.dims[0].coords
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)
    assert np.isnan(got).tolist() == [False, True, False, False]
    with chunkmill.Loader(where, variables="v", sample={"x": 2}, decode=False) as loader:
        np.testing.assert_array_equal(loader.dims[0].coords, stored)
