"""Attributes that name what is missing: xarray shows of the store what it shows of the file, and writes it as a file again."""

import itertools

import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr

from support import tool

pytestmark = pytest.mark.filterwarnings("ignore:variable .* has multiple fill values", "ignore:invalid value encountered in cast")
NAN = np.float32("nan")
TYPES = {"int": np.int32(2), "short": np.int16(2), "single": np.float32(0.5), "double": np.float64(0.1)}
FORMATS = pytest.mark.parametrize("zarr_format", [2, 3])


PACKINGS = [(None, None), ("int", None), ("short", None), ("single", None), ("double", None), (None, "double"), (None, "int"),
            ("single", "single"), ("double", "double"), ("int", "double"), ("double", "single")]  # fmt: skip
# _FillValue and missing_value.
NAMED = [(None, None), (None, NAN), (NAN, None), (NAN, NAN), (None, [NAN, NAN]), (4, NAN), (None, [NAN, 9])]


def floats(path):
    """Variables of each kind."""
    with netCDF4.Dataset(path, "w") as nc:
        nc.createDimension("x", 5)
        for i, (dtype, (scale, offset), (fill, missing)) in enumerate(itertools.product(["f4", "f8"], PACKINGS, NAMED)):
            named = [x for x in (fill, *np.ravel(missing)) if x is not None]
            if scale in ("int", "short") and offset is None and (not named or not np.isnan(named).all()):
                continue  # xarray makes integers of these, or fails
            v = nc.createVariable(f"v{i}", dtype, ("x",), fill_value=fill)
            v.set_auto_maskandscale(False)
            if missing is not None:
                v.missing_value = np.array(missing, dtype)
            for name, type in (("scale_factor", scale), ("add_offset", offset)):
                if type:
                    v.setncattr(name, TYPES[type])
            v[:] = [1, np.nan, 1 / 3, 4, 9]
    return path


def keeps_type(v):
    """Whether xarray decodes floats in their own type: nothing but NaN is missing."""
    named = [v.encoding[n] for n in ("_FillValue", "missing_value") if n in v.encoding]
    return bool(named) and np.isnan(np.concatenate([np.ravel(n) for n in named])).all()


@FORMATS
def test_floats(zarr_format, tmp_path):
    nc = floats(tmp_path / "in.nc")
    done = tool.nc2zarr("--zarr-format", zarr_format, "--verify", "full", nc, tmp_path / "packed.zarr").ok()
    tool.nc2zarr("-q", "--zarr-format", zarr_format, "--verify", "full", "--unpack", "all", nc, tmp_path / "plain.zarr").ok()
    with (
        xr.open_dataset(nc) as file,
        xr.open_zarr(tmp_path / "packed.zarr", chunks=None) as packed,
        xr.open_zarr(tmp_path / "plain.zarr", chunks=None) as plain,
    ):
        assert len(file) > 100
        for name, v in file.items():
            np.testing.assert_array_equal(plain[name], v, str(v.encoding), strict=True)
            np.testing.assert_allclose(packed[name], v, rtol=1e-6, err_msg=str(v.encoding))
            if "scale_factor" not in v.encoding and "add_offset" not in v.encoding or keeps_type(v):
                assert packed[name].dtype == v.dtype, v.encoding
        plainly = {n for n, v in file.items() if "scale_factor" not in v.encoding and "add_offset" not in v.encoding}
        for name in plainly:  # the attribute stays, as JSON's text
            named = file[name].encoding.get("missing_value")
            if np.ndim(named) == 0 and named is not None:
                assert str(packed[name].encoding["missing_value"]).lower() == str(named).lower(), file[name].encoding
        # xarray writes no list, and no floats that a text may stand for.
        packed[[n for n, v in file.items() if keeps_type(v) and np.ndim(v.encoding.get("missing_value", 0)) == 0
                and n not in plainly]].to_netcdf(tmp_path / "back.nc")  # fmt: skip
    assert sum("add_offset is float64" in line for line in done.warnings) == 1, done.err


@FORMATS
def test_texts(zarr_format, tmp_path):
    """Strings with both attributes, and characters, whose only one is _FillValue."""
    texts = ["a", "", "NA", "-"]
    with netCDF4.Dataset(tmp_path / "in.nc", "w") as nc:
        for name, n in (("x", 4), ("n", 2), ("one", 1)):
            nc.createDimension(name, n)
        for i, (fill, missing) in enumerate([("", None), (None, "NA"), ("", "NA"), ("-", "-"), ("NA", ["a", "-"])]):
            v = nc.createVariable(f"s{i}", str, ("x",), fill_value=fill)
            for k, text in enumerate(texts):
                v[k] = text
            if missing:
                v.setncattr_string("missing_value", missing)
        nc.createVariable("c", "S1", ("x", "n"), fill_value=b"\0")[:] = netCDF4.stringtochar(np.array(texts, "S2"))
        nc.createVariable("flag", "S1", ("x", "one"), fill_value=b" ")[:] = np.array([[b"1"], [b" "], [b"4"], [b" "]])
        nc.createVariable("unnamed", "S1", ("x", "one"))[:] = np.array([[b"1"], [b" "], [b"4"], [b" "]])

    def shown(source):
        return {n: [t.decode() if isinstance(t, bytes) else t for t in v.values.tolist()] for n, v in source.items()}

    for char in ("keep", "join"):
        done = tool.nc2zarr("--zarr-format", zarr_format, "--char", char, "--verify", "full", tmp_path / "in.nc", tmp_path / f"{char}.zarr").ok()
        lost = zarr_format == 3 and char == "keep"
        named = [line for line in done.warnings if "2 variables of characters (c, flag): _FillValue" in line]
        assert len(named) == lost, done.err
        with xr.open_dataset(tmp_path / "in.nc") as file, xr.open_zarr(tmp_path / f"{char}.zarr", chunks=None) as made:
            want, got = shown(file), shown(made)
        assert want["c"][1] is np.nan or np.isnan(want["c"][1])
        if lost:
            assert (got["c"], got["flag"]) == (texts, ["1", " ", "4", " "])
            want |= {n: got[n] for n in ("c", "flag")}
        np.testing.assert_equal(got, want)


@FORMATS
def test_a_fill_value_that_no_element_equals(zarr_format, tmp_path):
    fills = {
        "signed": ("i1", np.uint8(255), "255 (uint8) is left out, no int8 equals it"),
        "unsigned": ("u1", np.int16(-9999), "-9999 (int16) is left out, no uint8 equals it"),
        "large": ("f4", np.float64(1e40), "1e+40 (float64) is left out, no float32 equals it"),
        "nan": ("i2", NAN, "NaN is left out, an integer cannot be NaN"),
        "text": ("i2", np.bytes_(b"9"), "is left out, its type is not the variable's"),
        "string": ("i2", "9", "is left out, its type is not the variable's"),
    }
    with h5py.File(tmp_path / "in.h5", "w") as f:
        for name, (dtype, fill, _) in fills.items():
            f.create_dataset(name, data=np.array([1, 2, 255 if dtype == "u1" else -1], dtype)).attrs["_FillValue"] = fill
        f.create_dataset("bits", data=np.array([1, 2, -1], "i1")).attrs.update({"_FillValue": np.uint8(255), "_Unsigned": "true"})
    done = tool.nc2zarr("--zarr-format", zarr_format, "--verify", "full", tmp_path / "in.h5", tmp_path / "out.zarr").ok()
    for name, (_, _, why) in fills.items():
        assert any(line.endswith(f"variable {name}: _FillValue {why}") for line in done.warnings), done.err
    with xr.open_dataset(tmp_path / "in.h5") as file, xr.open_zarr(tmp_path / "out.zarr", chunks=None) as made:
        for name in [*fills, "bits"]:
            np.testing.assert_array_equal(made[name].values.astype("f8"), file[name].values.astype("f8"), name)
        assert np.isnan(made.bits.values[2])


def test_nan_is_added_to_a_store_without_a_fill_value(tmp_path):
    """NaN is missing, whether the store says so or not."""
    for i, fill in enumerate([None, NAN]):
        with netCDF4.Dataset(tmp_path / f"{i}.nc", "w") as nc:
            nc.createDimension("time", None)
            t = nc.createVariable("time", "f8", ("time",))
            t.units = "days since 2000-01-01"
            t[:] = [i]
            nc.createVariable("v", "f4", ("time",), fill_value=fill)[:] = np.array([np.nan])
    tool.nc2zarr("-q", tmp_path / "0.nc", tmp_path / "out.zarr").ok()
    tool.nc2zarr("-q", "--append", "time", "--verify", "full", tmp_path / "1.nc", tmp_path / "out.zarr").ok()
    with xr.open_zarr(tmp_path / "out.zarr", chunks=None) as made:
        assert made.v.shape == (2,) and np.isnan(made.v.values).all()
