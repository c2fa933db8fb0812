"""Types that differ: widened with their fill values; or cast to the one that was asked for, exactly."""

import itertools
import shlex
from pathlib import Path

import numpy as np
import pytest

from support import readers

from . import files as F
from . import stores

TYPES = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"]
BIG = 2**53 + 1  # what float64 has not


def file(name, first, values, dtype, fill=None, dims=("time",), **attrs):
    values = np.asarray(values, dtype)
    time = F.Var(("time",), np.arange(len(values)) + float(first), {"units": F.UNITS, "calendar": "standard"})
    vars = {"time": time}
    if len(dims) > 1:
        values = values[:, None]
    vars["v"] = F.Var(dims, values, attrs, fill=None if fill is None else np.dtype(dtype).type(fill))
    return F.File(f"{name}.nc", vars)


def no_common_type(a, b):
    kinds = {np.dtype(a).kind, np.dtype(b).kind}
    eight = [t for t in (a, b) if t in ("i8", "u8")]
    return bool(eight) and ("f" in kinds or (kinds == {"i", "u"} and "u8" in eight))


def joined(tmp_path, files, *options):
    F.write_all(files, tmp_path / "in")
    stores.convert("--verify", "full", *options, tmp_path / "in", tmp_path / "out.zarr").ok()
    return readers.arrays(tmp_path / "out.zarr")["v"]


def missing_at(array):
    """Where readers of the store see nothing."""
    fill = array.metadata.fill_value
    values = array[...]
    return np.isnan(values) if isinstance(fill, float | np.floating) and np.isnan(fill) else values == fill


PAIRS = [(a, b) for a, b in itertools.product(TYPES, TYPES) if a != b]


def odd_fill(dtype):
    """One that has another bit pattern in every other type."""
    return -99 if np.dtype(dtype).kind != "u" else np.iinfo(dtype).max


@pytest.mark.parametrize("a, b", PAIRS)
def test_fill_values_are_widened_with_their_type(a, b, tmp_path):
    A, B = odd_fill(a), odd_fill(b)
    files = [file("a", 0, [1, A, 3], a, A), file("b", 3, [B, 5, 100], b, B)]
    options = []
    if no_common_type(a, b):
        F.write_all(files, tmp_path / "in")
        _, doc = stores.survey(tmp_path / "in", status=4)
        (found,) = [f for f in doc["findings"] if f["weight"] == "decision"]
        assert (found["kind"], found["variable"], Path(found["file"]).name) == ("type", "v", "b.nc")
        assert found["option"] == ("--dtype v:int64" if a[0] != "f" and b[0] != "f" else "--dtype v:float64")
        options = shlex.split(found["option"])
    got = joined(tmp_path, files, *options)
    want = np.dtype(options[1][2:]) if options else np.promote_types(a, b)
    # numpy has no type for some of them but float64; a wider one is as right.
    assert np.can_cast(want, got.dtype) if not options else got.dtype == want
    values = got[...]
    assert values[[0, 2, 4, 5]].tolist() == [1, 3, 5, 100]
    assert missing_at(got).tolist() == [False, True, False, True, False, False]
    fill = got.attrs["_FillValue"] if got.dtype.kind in "iu" else got.metadata.fill_value
    # The first file's own number, or, where the type has it not, the other's.
    assert fill == (A if int(np.asarray(A).astype(got.dtype)) == A else B)


CASTS = [
    # types, option, type of the store, values of the second file, and whether they fit
    ("i8", "f4", "float64", "f8", [0.5, -1.25], True),
    ("f4", "i8", "float64", "f8", [2**53, -(2**53)], True),
    ("f4", "i8", "float64", "f8", [5, BIG], False),
    ("f4", "u8", "float64", "f8", [5, 2**64 - 1], False),
    ("f4", "u8", "float64", "f8", [5, 2**63], True),
    ("i8", "f4", "int64", "i8", [4.0, -(2.0**62)], True),
    ("i8", "f4", "int64", "i8", [4.0, 0.5], False),
    ("i8", "f4", "int64", "i8", [4.0, 2.0**63], False),
    ("i8", "f4", "int64", "i8", [4.0, np.nan], False),
    ("i8", "f4", "int64", "i8", [4.0, -0.0], False),
    ("i8", "f8", "int32", "i4", [4.0, -7.0], True),
    ("i8", "f8", "int32", "i4", [4.0, 2.0**40], False),  # does not fit the cast
    ("i8", "u8", "int64", "i8", [1, 2**63 - 1], True),
    ("i8", "u8", "int64", "i8", [1, 2**63], False),
    ("i8", "u8", "uint64", "u8", [1, 2**64 - 1], True),
    ("u8", "i8", "uint64", "u8", [1, -1], False),
    # As of one file, a smaller type is a cast that rounds.
    ("i8", "f8", "float32", "f4", [0.1, 1e-3], True),
]


@pytest.mark.parametrize("a, b, option, dtype, values, fits", CASTS)
@pytest.mark.parametrize("dims", [("time",), ("time", "x")], ids=["line", "field"])
def test_a_type_that_was_asked_for(a, b, option, dtype, values, fits, dims, tmp_path):
    first = [7, 2**40 if option != "int32" else 9]
    files = [file("a", 0, first, a, dims=dims), file("b", 2, values, b, dims=dims)]
    F.write_all(files, tmp_path / "in")
    # Without a name it is for fields, as of one file.
    asked = option if len(dims) > 1 else f"v:{option}"
    r = stores.convert("--verify", "full", "--dtype", asked, tmp_path / "in", tmp_path / "out.zarr")
    if not fits:
        # Where it does not fit the cast: as of one file.
        assert r.status == (2 if option == "int32" else 1) and "variable v" in r.err and "does not fit" in r.err, str(r)
        assert "b.nc" in r.err or option == "int32", str(r)
        assert not (tmp_path / "out.zarr" / "zarr.json").exists()
        return
    r.ok()
    got = readers.arrays(tmp_path / "out.zarr")["v"]
    want = np.concatenate([np.asarray(first, a).astype(dtype), np.asarray(values, b).astype(dtype)])
    assert got.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(got[...].ravel(), want)
    tool_check = stores.convert("--check", "--dtype", asked, tmp_path / "in", tmp_path / "out.zarr")
    assert tool_check.status == 0, str(tool_check)


def test_the_number_that_does_not_fit_is_told_to_the_last_digit(tmp_path):
    F.write_all([file("a", 0, [0.5], "f4"), file("b", 1, [1, BIG], "i8")], tmp_path / "in")
    r = stores.convert("--dtype", "v:float64", tmp_path / "in", tmp_path / "out.zarr")
    assert r.status == 1 and str(BIG) in r.err and "b.nc" in r.err, str(r)


@pytest.mark.every
@pytest.mark.parametrize("a, b, option", [("i8", "f4", "int64"), ("f4", "i8", "int64"), ("i8", "f8", "float64"), ("f8", "i8", "float64")])
@pytest.mark.parametrize("fills", [(None, 1e20), (1e20, None), (-(2**63), 1e20), (None, np.nan)], ids=str)
def test_fill_values_that_the_type_lacks(a, b, option, fills, tmp_path):
    """Missing elements stay missing; data do not become fill values."""
    fill = {t: next((f for f in fills if f is not None and (t[0] == "f") == (abs(f) < 9e18 or f > 0 or np.isnan(f))), None) for t in (a, b)}
    if "i8" in fill and fill["i8"] is not None and not -(2**63) <= fill["i8"] < 2**63:
        fill["i8"] = None
    data = {t: [5, 6 if fill[t] is None else fill[t]] for t in (a, b)}
    files = [file("a", 0, data[a], a, fill[a]), file("b", 2, data[b], b, fill[b])]
    got = joined(tmp_path, files, "--dtype", f"v:{option}")
    lost = [False, fill[a] is not None, False, fill[b] is not None]
    if any(lost):
        assert missing_at(got).tolist() == lost
    assert [x for x, gone in zip(got[...].tolist(), lost) if not gone] == [x for t in (a, b) for x in ([5] if fill[t] is not None else [5, 6])]


def test_numbers_and_text_have_no_type(tmp_path):
    files = [file("a", 0, [1, 2], "i8"), file("b", 2, [3, 4], "f4")]
    files[1].vars["v"] = F.Var(("time",), np.array(["x", "y"], object))
    F.write_all(files, tmp_path / "in")
    for options in ([], ["--dtype", "v:float64"]):
        _, doc = stores.survey(*options, tmp_path / "in", status=4)
        assert [(f["kind"], f["option"]) for f in doc["findings"] if f["weight"] == "decision"] == [("type", None)]


def test_a_name_that_needs_escapes(tmp_path):
    files = [file("a", 0, [1], "i8"), file("b", 1, [0.5], "f4")]
    for f in files:
        f.vars["a:b*c"] = f.vars.pop("v")
    F.write_all(files, tmp_path / "in")
    _, doc = stores.survey(tmp_path / "in", status=4)
    (option,) = [f["option"] for f in doc["findings"] if f["weight"] == "decision"]
    stores.convert("--verify", "full", *shlex.split(option), tmp_path / "in", tmp_path / "out.zarr").ok()
    assert readers.arrays(tmp_path / "out.zarr")["a:b*c"][...].tolist() == [1.0, 0.5]


# ---- times: what xarray writes is int64 where it can be and float64 elsewhere --------------------------


@pytest.mark.parametrize("a, b", [p for p in itertools.product(["i4", "i8", "u8", "f4", "f8"], repeat=2) if p[0] != p[1]])
@pytest.mark.parametrize("units", [("days since 2000-01-01",) * 2, ("days since 2000-01-01", "hours since 2000-01-03")], ids=["same", "drift"])
def test_times(a, b, units, tmp_path):
    files = [file("a", 0, [1, 2], "f4"), file("b", 2, [3, 4], "f4")]
    for f, t, u, numbers in zip(files, (a, b), units, ([0, 1], [2, 3] if units[0] == units[1] else [0, 24])):
        edges = np.array([[n, n + (24 if u[0] == "h" else 1)] for n in numbers])
        f.vars["time"] = F.Var(("time",), np.array(numbers).astype(t), {"units": u, "calendar": "standard", "bounds": "time_bnds"})
        f.vars["time_bnds"] = F.Var(("time", "bnds"), edges.astype(t))
    F.write_all(files, tmp_path / "in")
    stores.survey(tmp_path / "in", status=0)
    stores.convert("--verify", "full", tmp_path / "in", tmp_path / "out.zarr").ok()
    stores.same(tmp_path / "out.zarr", F.joined(files))


@pytest.mark.parametrize("a, b", [("i8", "f8"), ("f4", "i8"), ("u8", "i8")])
def test_bounds_alone(a, b, tmp_path):
    """The types of times agree, and those of their bounds do not."""
    files = [file("a", 0, [1, 2], "f4"), file("b", 2, [3, 4], "f4")]
    for f, t in zip(files, (a, b)):
        f.vars["time"].attrs["bounds"] = "time_bnds"
        f.vars["time_bnds"] = F.Var(("time", "bnds"), np.stack([f.vars["time"].data, f.vars["time"].data + 1], 1).astype(t))
    F.write_all(files, tmp_path / "in")
    stores.survey(tmp_path / "in", status=0)
    stores.convert("--verify", "full", tmp_path / "in", tmp_path / "out.zarr").ok()
    stores.same(tmp_path / "out.zarr", F.joined(files))


@pytest.mark.parametrize("a, b", [("i8", "f4"), ("f8", "i8"), ("i4", "f8")])
def test_a_coordinate_that_is_no_time(a, b, tmp_path):
    files = [file(n, 0, v, "f4") for n, v in zip("ab", ([1, 2], [3, 4]))]
    for i, (f, t) in enumerate(zip(files, (a, b))):
        f.vars = {"x": F.Var(("x",), np.array([2 * i, 2 * i + 1]).astype(t)), "v": F.Var(("x",), f.vars["v"].data)}
        f.unlimited = ("x",)
    F.write_all(files, tmp_path / "in")
    options = []
    if no_common_type(a, b):
        _, doc = stores.survey(tmp_path / "in", status=4)
        (option,) = [f["option"] for f in doc["findings"] if f["weight"] == "decision"]
        options = shlex.split(option)
    stores.convert("--verify", "full", *options, tmp_path / "in", tmp_path / "out.zarr").ok()
    got = readers.arrays(tmp_path / "out.zarr")
    assert got["x"].dtype == "f8" and got["x"][...].tolist() == [0, 1, 2, 3] and got["v"][...].tolist() == [1, 2, 3, 4]
