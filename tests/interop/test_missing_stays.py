"""Changed numbers: the elements that xarray shows as missing are the same before and after, or the tool refuses."""

import base64
import json

import netCDF4
import numpy as np
import pytest
import xarray as xr
import zarr

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


@pytest.mark.filterwarnings("ignore:variable 'v' has multiple fill values")
@pytest.mark.parametrize("program", ["nc2zarr", "rechunk"])
@pytest.mark.parametrize("name", ["fill", "only-missing", "both", "list", "nan", "packed-fill", "packed-both", "integers"])
def test_another_fill_value_of_zarr_2(name, program, tmp_path):
    """Readers mask it, and what they masked before."""
    nc, out = write(tmp_path / "in.nc", *FILES[name]), tmp_path / "out.zarr"
    source = nc
    if program == "rechunk":
        source = tmp_path / "in.zarr"
        tool.run("nc2zarr", "-q", "--zarr-format", "2", nc, source).ok()
    tool.run(program, "--zarr-format", "2", "--fill-value", "v:77", "--verify", "full", source, out).ok()
    with xr.open_dataset(nc) as before, xr.open_zarr(out, consolidated=False) as after:
        np.testing.assert_array_equal(after.v.values, before.v.values)
    for value in ("3", "4"):  # FLOATS have 4.0, integers 3
        done = tool.run(program, "--zarr-format", "2", "--overwrite", "--fill-value", f"v:{value}", source, out)
        if float(value) in FILES[name][4]:
            done.fails(2, "variable v", f"an element is {value}, the --fill-value asked for, which readers take for missing")
        else:
            done.ok()


UNSIGNED = [
    ("i2", "true", [-2, 5, 3, -1], None), ("u2", "false", [65534, 5, 3, 40000], None),
    ("i1", "true", [-2, 5, 127], (0.5, 0.0)), ("u1", "false", [254, 5, 3], None),
]  # fmt: skip


@pytest.mark.parametrize("to", ["int32", "float32", "uint16", "int16", "uint8 saturate"])
@pytest.mark.parametrize("row", UNSIGNED, ids=lambda r: f"{r[0]}-{r[1]}")
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_cast_is_of_the_numbers_that_unsigned_makes(row, to, zarr_format, tmp_path):
    dtype, unsigned, data, packing = row
    nc, out = write(tmp_path / "in.nc", dtype, 5, None, packing, data), tmp_path / "out.zarr"
    with netCDF4.Dataset(nc, "a") as ds:
        ds["v"].setncattr("_Unsigned", unsigned)
    to, *saturate = to.split()
    done = tool.run("nc2zarr", "--zarr-format", zarr_format, "--dtype", f"v:{to}", "--verify", "full",
                    *(["--overflow", "saturate"] if saturate else []), nc, out)
    with xr.open_dataset(nc) as before:
        want = before.v.values
    scale, offset = packing or (1, 0)
    stored = (want - offset) / scale
    if saturate:
        want = np.clip(stored, 0, 255) * scale + offset
    elif to != "float32" and not all(np.iinfo(to).min <= x <= np.iinfo(to).max for x in stored[~np.isnan(stored)]):
        done.fails(2, f"does not fit {to}")
        return
    done.ok()
    with xr.open_zarr(out, consolidated=False) as after:
        np.testing.assert_array_equal(after.v.values, want)


@pytest.mark.filterwarnings("ignore:variable 'v' has multiple fill values")
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize(("dtype", "marks"), [("f4", [np.nan, -999]), ("f8", [-999, np.nan, 4]), ("i2", [np.nan, -999]), ("f4", [np.nan]), ("i4", [np.nan, np.nan])])
def test_nan_in_a_list_of_missing_values(dtype, marks, zarr_format, tmp_path):
    nc, out = tmp_path / "in.nc", tmp_path / "out.zarr"
    write(nc, dtype, None, None, None, [1, 2, -999, 4, 5])
    with netCDF4.Dataset(nc, "a") as ds:
        ds["v"].setncattr("missing_value", np.array(marks, "f8"))
    tool.run("nc2zarr", "--zarr-format", zarr_format, nc, out).ok()
    with xr.open_dataset(nc) as before, xr.open_zarr(out, consolidated=False) as after:
        np.testing.assert_array_equal(after.v.values, before.v.values)


def test_an_infinite_missing_value_is_told(tmp_path):
    nc = write(tmp_path / "in.nc", "f4", None, [np.inf, -999], None, [1, -999, np.inf])
    done = tool.run("nc2zarr", nc, tmp_path / "out.zarr").ok()
    assert "variable v: missing_value is infinite" in done.err
    with xr.open_zarr(tmp_path / "out.zarr", consolidated=False) as after:
        np.testing.assert_array_equal(after.v.values, [1, np.nan, np.inf])


def test_statistics_of_more_missing_values_than_there_is_room_for(tmp_path):
    nc = write(tmp_path / "in.nc", "f4", None, list(range(30)), None, [1, 2, 99])
    tool.run("nc2zarr", "--statistics", nc, tmp_path / "s.zarr").fails(1, "variable v: more than 8 values stand for missing ones")
    tool.run("nc2zarr", nc, tmp_path / "s.zarr").ok()


@pytest.mark.parametrize("fill", ["-", ""])
@pytest.mark.parametrize("formats", [(2,), (3,), (2, 3), (3, 2)], ids=str)
def test_texts(fill, formats, tmp_path):
    """xarray masks the text of a file's _FillValue; in a store it does so by missing_value."""
    source = nc = tmp_path / "in.nc"
    with netCDF4.Dataset(nc, "w") as ds:
        ds.createDimension("x", 3)
        ds.createVariable("v", str, ("x",), fill_value=fill)[:] = np.array(["a", "-", ""], object)
    for at, zarr_format in enumerate(formats):
        out = tmp_path / f"{at}.zarr"
        tool.run("rechunk" if at else "nc2zarr", "-q", "--zarr-format", zarr_format, "--verify", "full", source, out).ok()
        source = out
    with xr.open_dataset(nc) as before, xr.open_zarr(source, consolidated=False) as after:
        assert [x if isinstance(x, str) else None for x in after.v.values] == [x if isinstance(x, str) else None for x in before.v.values]


def test_texts_of_files_that_mask_others(tmp_path):
    for at, fill in enumerate(("-", "bc")):
        with netCDF4.Dataset(tmp_path / f"{at}.nc", "w") as ds:
            ds.createDimension("time", None)
            t = ds.createVariable("time", "i4", ("time",))
            t.units, t[:] = "days since 2000-01-01", [at]
            ds.createVariable("v", str, ("time",), fill_value=fill)[:] = np.array(["-"], object)
    done = tool.run("nc2zarr", tmp_path / "0.nc", tmp_path / "1.nc", tmp_path / "out.zarr")
    assert done.status == 4 and "missing-value" in done.err and not (tmp_path / "out.zarr").exists(), str(done)


@pytest.mark.parametrize("program", ["rechunk", "nc2zarr"])
@pytest.mark.parametrize("shards", [None, (4,)], ids=["chunks", "shards"])
@pytest.mark.parametrize(("dtype", "fill"), [("i2", 0), ("i2", -9), ("f4", np.nan), ("f4", -9.0), ("f8", 0.0)])
def test_from_zarr_3_to_2(dtype, fill, shards, program, tmp_path):
    """The value that _FillValue names becomes the fill value; chunks that are absent, and read as another, are written."""
    group = zarr.create_group(tmp_path / "in.zarr")
    v = group.create_array("v", shape=(9,), chunks=(2,), shards=shards, dtype=dtype, fill_value=fill, dimension_names=["x"],
                           attributes={"_FillValue": -9 if dtype == "i2" else base64.b64encode(np.float64(-9)).decode(), "scale_factor": 0.5})
    v[:5] = np.array([0, -9, 2, 3, 4], dtype)
    tool.run(program, "-q", "--zarr-format", "2", "--verify", "full", tmp_path / "in.zarr", tmp_path / "out.zarr").ok()
    with xr.open_zarr(tmp_path / "in.zarr", consolidated=False) as before, xr.open_zarr(tmp_path / "out.zarr", consolidated=False) as after:
        np.testing.assert_array_equal(after.v.values, before.v.values)


@pytest.mark.parametrize("program", ["rechunk", "nc2zarr"])
@pytest.mark.parametrize("shards", [None, (4,)], ids=["chunks", "shards"])
@pytest.mark.parametrize(("dtype", "fill"), [("i2", 0), ("u8", 7), ("i8", 0), ("f4", np.nan), ("f8", 0.0), ("bool", False), ("c8", 0), (str, "")])
def test_what_is_no_missing_value_in_zarr_3_is_none_in_zarr_2(dtype, fill, shards, program, tmp_path):
    """xarray writes fill_value 0 for integers, which Zarr 2 has readers mask: null, and absent chunks are written."""
    group = zarr.create_group(tmp_path / "in.zarr")
    v = group.create_array("v", shape=(9,), chunks=(2,), shards=shards, dtype=dtype, fill_value=fill, dimension_names=["x"])
    v[:5] = np.array([0, 7, 2, 0, 1]).astype(dtype if dtype is not str else object)
    if dtype is str:
        v[:3] = np.array(["a", "", "b"], object)
    tool.run(program, "-q", "--zarr-format", "2", "--verify", "full", tmp_path / "in.zarr", tmp_path / "out.zarr").ok()
    with xr.open_zarr(tmp_path / "in.zarr", consolidated=False) as before, xr.open_zarr(tmp_path / "out.zarr", consolidated=False) as after:
        np.testing.assert_array_equal(after.v.values, before.v.values)
        assert after.v.dtype == before.v.dtype
    chunks = zarr.open_group(tmp_path / "out.zarr", mode="r")["v"]
    assert dtype == "f4" or chunks.nchunks_initialized == chunks.nchunks


@pytest.mark.parametrize("program", ["rechunk", "nc2zarr"])
@pytest.mark.parametrize("more", [{}, {"scale_factor": 0.5}, {"_FillValue": 2}], ids=["plain", "packed", "named otherwise"])
@pytest.mark.parametrize(("dtype", "fill"), [("i2", 0), ("u1", 7), ("i8", -9), ("f4", np.nan), ("f4", -9.0), ("f8", 0.0), ("i2", None)])
def test_what_readers_mask_in_zarr_2_they_mask_in_zarr_3_and_back(dtype, fill, more, program, tmp_path):
    group = zarr.create_group(tmp_path / "2.zarr", zarr_format=2)
    v = group.create_array("v", shape=(9,), chunks=(2,), dtype=dtype, fill_value=fill, attributes={"_ARRAY_DIMENSIONS": ["x"], **more})
    v[:5] = np.array([0, 7, 2, -9 if np.dtype(dtype).kind != "u" else 9, 4], dtype)
    seen = []
    for source, target in (("2", "3"), ("3", "back")):
        tool.run(program, "-q", "--zarr-format", "3" if target == "3" else "2", "--verify", "full", tmp_path / f"{source}.zarr",
                 tmp_path / f"{target}.zarr").ok()
    for name in ("2", "3", "back"):
        with xr.open_zarr(tmp_path / f"{name}.zarr", consolidated=False) as ds:
            seen.append(ds.v.values)
    np.testing.assert_array_equal(seen[1], seen[0])
    np.testing.assert_array_equal(seen[2], seen[0])


@pytest.mark.parametrize(("source", "target"), [(2, 3), (3, 2), (2, 2), (3, 3)])
@pytest.mark.parametrize("masked", [False, True])
def test_appends_mean_what_the_store_means(source, target, masked, tmp_path):
    """A store that masks other numbers than its source is made anew: it would show them as the other's."""

    def make(name, fmt, n, masks):
        group = zarr.create_group(tmp_path / name, zarr_format=fmt)
        named = {"dimension_names": ["time"]} if fmt == 3 else {}
        attributes = {"_ARRAY_DIMENSIONS": ["time"]} if fmt == 2 else {"_FillValue": 0} if masks else {}
        group.create_array("v", shape=(n,), chunks=(2,), dtype="i4", fill_value=0 if fmt == 3 or masks else None, attributes=attributes,
                           **named)[:] = np.arange(10)[:n] % 3

    make("in.zarr", source, 9, masked)
    make("same.zarr", target, 4, masked)
    make("other.zarr", target, 4, not masked)
    tool.run("rechunk", "-q", "--append", "time", "--verify", "full", tmp_path / "in.zarr", tmp_path / "same.zarr").ok()
    with xr.open_zarr(tmp_path / "in.zarr", consolidated=False) as before, xr.open_zarr(tmp_path / "same.zarr", consolidated=False) as after:
        np.testing.assert_array_equal(after.v.values, before.v.values)
    tool.run("rechunk", "--append", "time", tmp_path / "in.zarr", tmp_path / "other.zarr").fails(2, "fill value", "make the store anew")


@pytest.mark.parametrize("program", ["rechunk", "nc2zarr"])
@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize(("dtype", "fill"), [("c8", 7), ("c16", 1 - 2j), ("c16", complex(np.nan, 0)), ("bool", True), ("bool", False), ("M8[s]", "NaT"), ("m8[h]", "NaT"), ("M8[s]", None)])
def test_types_that_are_no_real_numbers(dtype, fill, back, program, tmp_path):
    """Of two chunks one is absent, and one has what is missing."""
    data = np.array([1, 0, 7]).astype(dtype)
    if fill is not None:
        data[1] = np.array(fill).astype(dtype)
    group = zarr.create_group(tmp_path / "2.zarr", zarr_format=2)
    group.create_array("v", shape=(6,), chunks=(3,), dtype=dtype, fill_value=None if fill is None else data[1], attributes={"_ARRAY_DIMENSIONS": ["x"]})[:3] = data
    names = ["2", "3", "4"] if back else ["2", "3"]
    for name, source in zip(names[1:], names):
        tool.run(program, "-q", "--zarr-format", "3" if name == "3" else "2", "--verify", "full", tmp_path / f"{source}.zarr", tmp_path / f"{name}.zarr").ok()
    with xr.open_zarr(tmp_path / "2.zarr", consolidated=False) as before, xr.open_zarr(tmp_path / f"{names[-1]}.zarr", consolidated=False) as after:
        assert before.v.dtype == after.v.dtype
        xr.testing.assert_equal(after.load(), before.load())


@pytest.mark.parametrize(("dtype", "value", "kept"), [
    ("i2", "text", False), ("i2", [1, 2], False), ("i2", 70000, True), ("S1", "x", False), (str, "x", False),
    ("f4", "x", False), ("f4", "NaN", False), ("i2", [7], 7), ("f4", [-9.0], base64.b64encode(np.float64(-9)).decode())], ids=str)
def test_attributes_that_version_3_cannot_say(dtype, value, kept, tmp_path):
    """xarray opens no store of version 3 with another attribute _FillValue; of version 2 it takes any."""
    group = zarr.create_group(tmp_path / "in.zarr", zarr_format=2)
    group.create_array("v", shape=(3,), dtype=dtype, attributes={"_FillValue": value, "_ARRAY_DIMENSIONS": ["x"]})
    document = tmp_path / "in.zarr/v/.zarray"
    document.write_text(json.dumps({**json.loads(document.read_text()), "fill_value": None}))
    done = tool.run("rechunk", "--zarr-format", "3", "--verify", "full", tmp_path / "in.zarr", tmp_path / "out.zarr").ok()
    attributes = zarr.open_group(tmp_path / "out.zarr", mode="r")["v"].attrs
    assert attributes.get("_FillValue") == (value if kept is True else kept or None)
    assert ("is left out" in done.err) == (not kept and value != "NaN")
    xr.open_zarr(tmp_path / "out.zarr", consolidated=False).load()


@pytest.mark.parametrize(("dtype", "value"), [("i2", "text"), ("i2", [1, 2]), ("S1", "x"), (str, "x")])
def test_what_cannot_be_understood_as_a_missing_value_stays(dtype, value, tmp_path):
    group = zarr.create_group(tmp_path / "in.zarr")
    group.create_array("v", shape=(3,), dtype=dtype, attributes={"_FillValue": value}, dimension_names=["x"])
    tool.run("rechunk", "-q", "--zarr-format", "2", tmp_path / "in.zarr", tmp_path / "out.zarr").ok()
    assert zarr.open_group(tmp_path / "out.zarr", mode="r")["v"].attrs["_FillValue"] == value


def test_arrays_that_are_not_xarrays_get_no_attribute(tmp_path):
    zarr.create_array(tmp_path / "in.zarr", shape=(3,), dtype="i4", fill_value=0, zarr_format=2)
    tool.run("rechunk", "-q", "--zarr-format", "3", tmp_path / "in.zarr", tmp_path / "out.zarr").ok()
    assert dict(zarr.open_array(tmp_path / "out.zarr", mode="r").attrs) == {}


def test_fill_values_of_zarr_2_that_are_no_json(tmp_path):
    nc = write(tmp_path / "in.nc", "f4", np.inf, None, None, [1, np.inf, 2])
    tool.run("nc2zarr", "--zarr-format", "2", "--fill-value", "v:1e20", nc, tmp_path / "s.zarr").fails(1, "--fill-value v:1e20", "its missing value is infinite")
    tool.run("nc2zarr", "--zarr-format", "2", nc, tmp_path / "s.zarr").ok()


@pytest.mark.parametrize("data", [0.0, -0.0])
def test_zeros_of_both_signs_are_the_fill_value_that_was_asked_for(data, tmp_path):
    nc = write(tmp_path / "in.nc", "f4", None, None, None, [data, 1, 2])
    for fill in ("0", "-0.0"):
        for cast in ([], ["--dtype", "v:float64"]):
            tool.run("nc2zarr", "--zarr-format", "2", "--fill-value", f"v:{fill}", *cast, nc, tmp_path / "s.zarr").fails(2, "the --fill-value asked for")
