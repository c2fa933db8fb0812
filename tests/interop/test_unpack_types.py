"""--unpack of both programs and --packing unpack make what xarray decodes, bit for bit; --dtype computes in double."""

import netCDF4
import numpy as np
import pytest
import xarray as xr

from support import tool

S, D = np.float32, np.float64
PACKINGS = {
    "single": {"scale_factor": S(0.1), "add_offset": S(273.15)},
    "scale alone, single": {"scale_factor": S(0.7)},
    "offset alone, single": {"add_offset": S(0.1)},
    "double": {"scale_factor": D(0.1), "add_offset": D(273.15)},
    "one of each": {"scale_factor": S(0.1), "add_offset": D(273.15)},
    "integers": {"scale_factor": np.int32(2), "add_offset": S(0.5)},
    "unsigned": {"scale_factor": S(0.3), "add_offset": S(1), "_Unsigned": "true"},
}


def packed(path, dtype, attrs, day=0):
    info = np.iinfo(dtype)
    r = np.random.default_rng(info.bits + day)
    # xarray takes what float32 does not tell from the fill value for missing.
    values = np.concatenate([[info.min, info.max // 2, 0, 1, -1], r.integers(info.min // 2, info.max // 2, 195)]).astype(dtype)
    with netCDF4.Dataset(path, "w") as nc:
        nc.createDimension("time", None)
        nc.createDimension("x", 20)
        t = nc.createVariable("time", "f8", ("time",))
        t.units = "days since 2000-01-01"
        t[:] = np.arange(10) + day
        v = nc.createVariable("v", dtype, ("time", "x"), fill_value=info.min)
        v.set_auto_maskandscale(False)
        v.setncatts(attrs)
        v[:] = values.reshape(10, 20)
    return path


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4"])
@pytest.mark.parametrize("name", PACKINGS)
def test_types(name, dtype, tmp_path):
    attrs = PACKINGS[name]
    a = packed(tmp_path / "a.nc", dtype, attrs)
    with xr.open_dataset(a) as ds:
        want = ds.v.values
    tool.nc2zarr("-q", "--verify", "full", "--unpack", "v", a, tmp_path / "one.zarr").ok()
    tool.run("rechunk", "-q", "--unpack", "all", a, tmp_path / "two.zarr").ok()
    for store in ("one", "two"):
        with xr.open_zarr(tmp_path / f"{store}.zarr", chunks=None) as made:
            assert made.v.dtype == want.dtype, store
            np.testing.assert_array_equal(made.v.values, want, err_msg=store)
    # A store says the attributes in double precision, and so xarray decodes it.
    tool.nc2zarr("-q", a, tmp_path / "packed.zarr").ok()
    tool.run("rechunk", "-q", "--unpack", "v", tmp_path / "packed.zarr", tmp_path / "three.zarr").ok()
    with xr.open_zarr(tmp_path / "three.zarr", chunks=None) as made:
        assert made.v.dtype == "f8"
        np.testing.assert_allclose(made.v.values, want, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4"])
@pytest.mark.parametrize("to", ["float64", "float32"])
def test_a_type_that_is_asked_for_is_computed_in_double(dtype, to, tmp_path):
    """Of one file and of many."""
    first, second = ({"scale_factor": S(s), "add_offset": S(273.15)} for s in (0.1, 0.3))
    paths = [packed(tmp_path / "a.nc", dtype, first), packed(tmp_path / "b.nc", dtype, second, day=10)]
    parts = []
    for path, attrs in zip(paths, (first, second)):
        with xr.open_dataset(path, mask_and_scale=False) as ds:
            raw = ds.v.values
        x = raw.astype("f8") * D(attrs["scale_factor"]) + D(attrs["add_offset"])
        parts.append(np.where(raw == np.iinfo(dtype).min, np.nan, x).astype(to))
    tool.nc2zarr("-q", "--verify", "full", "--unpack", "v", "--dtype", f"v:{to}", paths[0], tmp_path / "one.zarr").ok()
    tool.nc2zarr("-q", "--verify", "full", "--packing", "unpack", "--dtype", f"v:{to}", *paths, tmp_path / "both.zarr").ok()
    for store, want in (("one", parts[0]), ("both", np.concatenate(parts))):
        with xr.open_zarr(tmp_path / f"{store}.zarr", chunks=None) as made:
            assert made.v.dtype == to
            np.testing.assert_array_equal(made.v.values, want, err_msg=store)
