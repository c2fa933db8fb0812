"""Changed numbers: the elements that xarray shows as missing are the same before and after, or the tool refuses."""

import netCDF4
import numpy as np
import pytest
import xarray as xr

from support import tool

# Type, _FillValue, missing_value (one or a list), scale and offset, elements.
FLOATS = [1.23, 2.3, 5.7, 0.0, -3.1, 4.0]
FILES = {
    "fill": ("f4", 1e20, None, None, [*FLOATS, 1e20]),
    "only-missing": ("f4", None, 1e20, None, [*FLOATS, 1e20]),
    "both": ("f4", 1e20, -999.0, None, [*FLOATS, 1e20, -999.0]),
    "list": ("f4", -9.0, [-999.0, 1e20], None, [*FLOATS, 1e20, -999.0, -9.0]),
    "only-list": ("f8", None, [-999.0, 1e20], None, [*FLOATS, 1e20, -999.0]),
    "nan": ("f8", np.nan, -999.0, None, [*FLOATS, -999.0, np.nan]),
    "packed-fill": ("i2", -1, None, (0.5, 10.0), [1, 2, 3, -1, 0, 7]),
    "packed-missing": ("i2", None, -999, (0.5, 10.0), [1, 2, 3, -999, 0, 7]),
    "packed-both": ("i2", -1, -999, (0.5, 10.0), [1, 2, 3, -999, -1, 7]),
    "integers": ("i4", -999, None, None, [1, 2, 3, -999, 0, 100]),
    "large-integers": ("i8", 2**63 - 1, None, None, [1, 2, 3, 2**63 - 1, 0, 100]),
}
CHANGES = [["--keepbits", "v:3"], ["--unpack", "v"], *(["--dtype", f"v:{t}"] for t in ("float16", "float64", "int16", "int8", "uint64")),
           ["--dtype", "v:float32", "--keepbits", "v:2"], ["--unpack", "v", "--dtype", "v:float32"],
           ["--dtype", "v:uint8", "--overflow", "saturate"]]  # fmt: skip


def write(path, dtype, fill, missing, packing, data):
    with netCDF4.Dataset(path, "w") as ds:
        ds.createDimension("x", len(data))
        v = ds.createVariable("v", dtype, ("x",), fill_value=False if fill is None else fill)
        v.set_auto_maskandscale(False)
        if missing is not None:
            v.missing_value = np.array(missing, dtype)
        if packing:
            v.scale_factor, v.add_offset = packing
        v[:] = np.array(data, dtype)
    return path


@pytest.mark.filterwarnings("ignore:variable 'v' has multiple fill values")
@pytest.mark.parametrize("change", CHANGES, ids=" ".join)
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("name", FILES)
def test_missing_values_are_missing_and_others_are_not(name, zarr_format, change, tmp_path):
    nc, out = write(tmp_path / "in.nc", *FILES[name]), tmp_path / "out.zarr"
    done = tool.run("nc2zarr", "--zarr-format", zarr_format, "--chunks", "x=4", "--verify", "full", *change, nc, out)
    if done.status != 0:  # nothing could stand for them, a number does not fit, or nothing is packed
        assert any(why in done.err for why in ("nothing to stand for", "does not fit", "neither scale_factor", "rounds floating point")), done.err
        assert not out.exists()
        return
    with xr.open_dataset(nc) as before, xr.open_zarr(out, consolidated=False) as after:
        np.testing.assert_array_equal(np.isnan(after.v.values), np.isnan(before.v.values))


HIDDEN = [
    ("i2", 255, [1, 2, 255, 300], ["--dtype", "v:uint8", "--overflow", "saturate"], "element 3: 300 would become 255", "a larger --dtype"),
    ("f4", -9, [1, -8.75], ["--dtype", "v:int16"], "element 1: -8.75 would become -9", "a larger --dtype"),
    ("f4", -9, [1, -8.75], ["--keepbits", "v:3"], "element 1: -8.75 would become -9.0", "a greater --keepbits"),
    ("f8", 2049, [1, 2048.75], ["--dtype", "v:float32", "--keepbits", "v:11"], "element 1: 2048.75 would become 2049.0", "a greater --keepbits"),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "fill", "data", "change", "element", "advice"), HIDDEN, ids=[" ".join(row[3]) for row in HIDDEN])
def test_a_number_that_would_be_missing_is_refused(dtype, fill, data, change, element, advice, tmp_path):
    for at, marks in enumerate([(fill, None), (None, fill)]):
        nc, out = write(tmp_path / f"{at}.nc", dtype, *marks, None, data), tmp_path / f"{at}.zarr"
        done = tool.run("nc2zarr", *change, nc, out).fails(2)
        assert element in done.err and "which stands for missing values; " + advice in done.err
        assert not out.exists()


def test_what_lies_past_the_end_of_an_array_is_not_converted(tmp_path):
    nc, out = write(tmp_path / "in.nc", "i2", None, None, (1.0, 300.0), [-250, -240, -100]), tmp_path / "out.zarr"
    tool.run("nc2zarr", "--unpack", "v", "--dtype", "v:uint8", "--chunks", "x=2", nc, out).ok()
    with xr.open_zarr(out, consolidated=False) as ds:
        assert ds.v.values.tolist() == [50, 60, 200]
