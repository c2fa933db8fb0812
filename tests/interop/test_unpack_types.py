"""--unpack of both programs and --packing unpack make what xarray decodes, bit for bit; --dtype computes in double."""

import re

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


# ---- kept packed: who sees another type is named --------------------------------------------------


def many_packings(path, dtype, day=0):
    """A variable of each packing, with a fill value and without."""
    with netCDF4.Dataset(path, "w") as nc:
        nc.createDimension("time", None)
        nc.createDimension("x", 50)
        t = nc.createVariable("time", "f8", ("time",))
        t.units = "days since 2000-01-01"
        t[:] = [day]
        for i, attrs in enumerate(PACKINGS.values()):
            for fill in (None, 7):
                v = nc.createVariable(f"v{i}" if fill is None else f"f{i}", dtype, ("time", "x"), fill_value=fill)
                v.set_auto_maskandscale(False)
                v.setncatts(attrs)
                v[:] = np.arange(50)[None] + day
    return path


def seen_otherwise(paths, store):
    """The variables of which xarray shows other types or numbers."""
    with (
        xr.open_mfdataset(paths, combine="by_coords", chunks=None, data_vars="all") as files,
        xr.open_zarr(store, chunks=None) as made,
    ):
        return {
            n for n, v in files.data_vars.items() if v.dtype != made[n].dtype or not v.equals(made[n].astype(v.dtype, copy=False))
        }


def told(done):
    """The variables that the one warning about packing names."""
    lines = [line for line in done.warnings if "packed variable" in line]
    assert len(lines) <= 1, str(done)
    if not lines:
        return set()
    count, names = re.search(r"(\d+) packed variables? \(([^)]*)\)", lines[0]).groups()
    assert "--unpack" in lines[0] and int(count) == len(names.split(", ")), lines[0]
    return set(names.split(", "))


@pytest.mark.few
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "f4"])
def test_who_sees_another_type_is_told_once(dtype, zarr_format, tmp_path):
    paths = [many_packings(tmp_path / f"{i}.nc", dtype, day=i) for i in range(2)]
    store, form = tmp_path / "made.zarr", ["--zarr-format", zarr_format, "--overwrite"]
    for name, files in (("nc2zarr", paths[:1]), ("rechunk", paths[:1]), ("nc2zarr", paths)):
        done = tool.run(name, *form, *files, store).ok()
        expected = seen_otherwise(files, store)
        assert told(done) == expected and expected, name
        done = tool.run(name, *form, "--unpack", "all", *files, store).ok()
        assert told(done) == seen_otherwise(files, store) == set(), name
    # The description of a store agrees with its conversion.
    tool.nc2zarr("-q", *form, paths[0], store).ok()
    assert told(tool.run("rechunk", "--chunks", "1x7", store, tmp_path / "again.zarr").ok()) == set()


def test_a_warning_names_ten_variables_at_most(tmp_path):
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as nc:
        nc.createDimension("x", 2)
        for i in range(12):
            nc.createVariable(f"v{i}", "i2", ("x",)).scale_factor = S(0.1)
    done = tool.nc2zarr("--dry-run", tmp_path / "a.nc", tmp_path / "a.zarr").ok()
    assert len(done.warnings) == 1 and "12 packed variables (v0, v1, v2, v3, v4, v5, v6, v7, v8, v9, ...)" in done.err
