"""ERA5's final and provisional data, along a dimension expver, as one field: --merge-along."""

import json
import shlex

import numpy as np
import pytest
import xarray as xr

from support import readers, tool

from . import files as F
from . import stores

HOURS = "hours since 2020-01-01"
PACKED = {"scale_factor": 0.01, "add_offset": 250.0, "units": "K"}
FILL = np.int16(-32767)
MERGE = ("--merge-along", "expver=1,5")


def values(first, n, dtype="i2"):
    return np.random.default_rng(first).integers(-30000, 30000, (n, 3, 4)).astype(dtype)


def coords(first, n):
    return {
        "time": F.Var(("time",), np.arange(first, first + n, dtype="i4"), {"units": HOURS}),
        "latitude": F.Var(("latitude",), np.array([60, 50, 40], "f4")),
        "longitude": F.Var(("longitude",), np.array([0, 1, 2, 3], "f4")),
    }


def both(data, split, fill, axis=1):
    """DATA with a dimension expver: final before step SPLIT, provisional after, the other missing; a hole in both."""
    out = np.full((2, *data.shape), fill, data.dtype)
    out[0, :split], out[1, split:] = data[:split], data[split:]
    out[:, -1, 2, 3] = fill
    return np.moveaxis(out, 0, axis)


def merged(data, fill):
    data = data.copy()
    data[-1, 2, 3] = fill
    return data


def recent(first=4, n=4, split=2, name="recent.nc", format="NETCDF4", dims=("time", "expver", "latitude", "longitude"), **kw):
    vars = {
        **coords(first, n),
        "expver": F.Var(("expver",), np.array([1, 5], "i4")),
        "t2m": F.Var(dims, both(values(first, n), split, FILL, dims.index("expver")), PACKED, FILL, **kw),
        "lsm": F.Var(("latitude", "longitude"), np.ones((3, 4), "f4")),
    }
    return F.File(name, vars, unlimited=(), format=format)


def final(first=0, n=4, name="final.nc"):
    vars = {**coords(first, n), "t2m": F.Var(("time", "latitude", "longitude"), values(first, n), PACKED, FILL), "lsm": F.Var(("latitude", "longitude"), np.ones((3, 4), "f4"))}
    return F.File(name, vars, unlimited=())


def check(store, want):
    got = readers.arrays(store)
    assert "expver" not in got and got["t2m"].shape == want.shape and got["t2m"].dtype == want.dtype
    assert stores.dimensions(got["t2m"]) == ("time", "latitude", "longitude")
    np.testing.assert_array_equal(got["t2m"][...], want)


LAYOUTS = {
    "classic": {"format": "NETCDF3_64BIT_OFFSET"},
    "contiguous": {},
    "chunks of both": {"chunks": (1, 2, 2, 3), "deflate": 1},
    "chunks of one": {"chunks": (3, 1, 3, 4), "deflate": 1},
    "first": {"dims": ("expver", "time", "latitude", "longitude")},
    "last": {"dims": ("time", "latitude", "longitude", "expver"), "chunks": (2, 3, 2, 2)},
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_one_file(layout, tmp_path):
    """Numbers stay packed, and readers see what combine_first of both halves shows."""
    path = F.write(recent(**LAYOUTS[layout]), tmp_path)
    out = tmp_path / "out.zarr"
    stores.convert(*MERGE, "--chunks", "time=2,latitude=2,longitude=2", "--verify", "full", "--certificate", tmp_path / "c.json", path, out).ok()
    check(out, merged(values(4, 4), FILL))
    with xr.open_dataset(path) as ds, xr.open_zarr(out) as got:
        want = ds.t2m.sel(expver=1).combine_first(ds.t2m.sel(expver=5)).transpose(*got.t2m.dims)
        np.testing.assert_array_equal(got.t2m.values, want.values)
        assert got.t2m.dtype == want.dtype and got.t2m.attrs["units"] == "K"
    doc = json.loads((tmp_path / "c.json").read_text())
    assert not doc["reproducible"] and "only the first element that is not missing" in doc["not_reproducible_because"][0]
    stores.convert(*MERGE, "--check", path, out).ok()


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("layout", [{}, {"chunks": (2, 2, 2, 2), "deflate": 1}], ids=["contiguous", "chunked"])
def test_files_that_lack_the_dimension(place, layout, tmp_path):
    """Wherever it stands in those that have it."""
    dims = ["time", "latitude", "longitude"]
    dims.insert(place, "expver")
    paths = F.write_all([final(0), recent(4, dims=tuple(dims), **layout)], tmp_path / "in")
    stores.convert(*MERGE, "--verify", "full", *paths, tmp_path / "out.zarr").ok()
    check(tmp_path / "out.zarr", np.concatenate([values(0, 4), merged(values(4, 4), FILL)]))


def test_the_order_is_that_of_the_list(tmp_path):
    """Where both have data, the one that is named first counts."""
    f = recent()
    data = f.vars["t2m"].data
    data[:, 0], data[:, 1] = values(4, 4), values(5, 4)
    path = F.write(f, tmp_path)
    for order, first in (("1,5", 4), ("5,1", 5), ("5", 5)):
        stores.convert("--overwrite", "--merge-along", f"expver={order}", "--verify", "full", path, tmp_path / "out.zarr").ok()
        check(tmp_path / "out.zarr", values(first, 4))


MARKS = {
    "NaN": ("f4", {}, None, np.nan),
    "fill": ("f8", {}, -1.0, -1.0),
    "missing_value": ("f4", {"missing_value": np.float32(1e20)}, None, np.float32(1e20)),
    "two missing_values": ("i4", {"missing_value": np.array([-5, -6], "i4")}, None, -6),
    "both": ("i8", {"missing_value": np.int64(-7)}, -8, -7),
    "zeros": ("f4", {}, np.float32(0), np.float32(-0.0)),
    "half a NaN": ("f4", {}, -9, np.nan),
    "unsigned": ("i2", {"_Unsigned": "true", "missing_value": np.int32(65535)}, None, -1),
}


@pytest.mark.parametrize("mark", MARKS)
def test_what_is_missing(mark, tmp_path):
    dtype, attrs, fill, hole = MARKS[mark]
    f = recent()
    f.vars["t2m"] = F.Var(("time", "expver", "latitude", "longitude"), both(np.abs(values(4, 4, dtype)) + np.dtype(dtype).type(1), 1, np.dtype(dtype).type(hole)), attrs, fill)
    path = F.write(f, tmp_path)
    stores.convert(*MERGE, "--verify", "full", path, tmp_path / "out.zarr").ok()
    check(tmp_path / "out.zarr", merged(np.abs(values(4, 4, dtype)) + np.dtype(dtype).type(1), hole))


@pytest.mark.parametrize("packing", [False, True], ids=["alike", "unpacked"])
def test_an_archive(packing, tmp_path):
    """Final files without the dimension, and one with it: joined, in parts of it, and checked."""
    files = [final(0), recent(4), final(8, name="later.nc")]
    if packing:
        files[2].vars["t2m"].attrs["scale_factor"] = 0.02
    paths = F.write_all(files, tmp_path / "in")
    how = (*MERGE, *(("--packing", "unpack") if packing else ()))
    out = tmp_path / "out.zarr"
    stores.convert(*how, "--verify", "full", "--certificate", tmp_path / "c.json", *paths, out).ok()
    assert not json.loads((tmp_path / "c.json").read_text())["reproducible"]
    want = np.concatenate([values(0, 4), merged(values(4, 4), FILL), values(8, 4)])
    if packing:
        with xr.open_zarr(out) as got, xr.open_mfdataset([str(paths[0]), str(paths[2])]) as ds, xr.open_dataset(paths[1]) as two:
            assert got.t2m.dims == ("time", "latitude", "longitude") and "expver" not in got.variables
            middle = two.t2m.sel(expver=1).combine_first(two.t2m.sel(expver=5))
            np.testing.assert_array_equal(got.t2m.values, np.concatenate([ds.t2m.values[:4], middle.values, ds.t2m.values[4:]]))
        return
    check(out, want)
    stores.convert(*how, "--check", *paths, out).ok()
    stores.convert(*how, "--subset", "time=2020-01-01T03..2020-01-01T08", *paths, tmp_path / "part.zarr").ok()
    check(tmp_path / "part.zarr", want[3:9])
    _, doc = stores.survey(*how, *paths, status=0)
    assert [f for f in doc["findings"] if f["variable"] == "t2m" and f["decided"]]
    stores.survey(*paths, status=4)


@pytest.mark.parametrize("chunks", ["time=3", "time=8,latitude=2"])
def test_a_store_grows(chunks, tmp_path):
    """The same command each night, whether files have the dimension or not; then final data come."""
    files = [final(0, name="a.nc"), recent(4, name="b.nc"), final(8, name="c.nc"), recent(12, split=1, name="d.nc")]
    paths = F.write_all(files, tmp_path / "in")
    out = tmp_path / "out.zarr"
    want = np.concatenate([values(0, 4), merged(values(4, 4), FILL), values(8, 4), merged(values(12, 4), FILL)])
    stores.convert("--chunks", chunks, paths[0], out).ok()
    for n in (2, 3, 4, 4):
        stores.convert("--append", "time", *MERGE, "--verify", "full", *paths[:n], out).ok()
        check(out, want[: 4 * n])
    late = F.write(final(4, name="late.nc"), tmp_path)
    stores.convert("--replace", "time=2020-01-01T04..2020-01-01T07", *MERGE, "--verify", "full", late, out).ok()
    check(out, np.concatenate([values(0, 4), values(4, 4), want[8:]]))
    stores.convert("--replace", "time=2020-01-01T04..2020-01-01T07", *MERGE, "--verify", "full", paths[1], out).ok()
    check(out, want)
    r = stores.convert("--append", "time", F.write(recent(16), tmp_path), out)
    assert r.status == 4 and "t2m: it has no dimension expver here" in r.err, str(r)


def turned(f):
    """Provisional data before final ones."""
    f.vars["expver"].data = f.vars["expver"].data[::-1]
    f.vars["t2m"].data = np.flip(f.vars["t2m"].data, f.vars["t2m"].dims.index("expver"))
    return f


@pytest.mark.parametrize("late", [recent, lambda first: turned(recent(first))], ids=["1,5", "5,1"])
@pytest.mark.parametrize("stored", [final, recent], ids=["final", "merged"])
def test_a_store_that_lacks_the_dimension_names_it(stored, late, tmp_path):
    """The command that is proposed adds the files, without --exclude of the coordinate."""
    out, path = tmp_path / "out.zarr", F.write(late(4), tmp_path)
    stores.convert(*(MERGE if stored is recent else ()), F.write(stored(0, name="first.nc"), tmp_path), out).ok()
    r = tool.nc2zarr("--append", "time", path, out)
    command = r.err.strip().splitlines()[-1]
    assert r.status == 4 and "one field without the dimension" in " ".join(r.err.split()), str(r)
    assert shlex.split(command)[1:-2] == ["--append", "time", *MERGE], command
    tool.nc2zarr("--verify", "full", *shlex.split(command)[1:]).ok()
    check(out, np.concatenate([values(0, 4) if stored is final else merged(values(0, 4), FILL), merged(values(4, 4), FILL)]))


def test_a_wrong_store_is_found(tmp_path):
    """Provisional data where there are final ones: told by verification alone."""
    f = recent()
    f.vars["t2m"].data[:, 1] = values(5, 4)
    path = F.write(f, tmp_path)
    stores.convert("--merge-along", "expver=5,1", path, tmp_path / "out.zarr").ok()
    r = stores.convert(*MERGE, "--check", path, tmp_path / "out.zarr")
    assert r.status == 3 and "t2m: element 0/0/0: " in r.err, str(r)


def test_with_a_stack_and_little_memory(tmp_path):
    path = F.write(recent(), tmp_path)
    stores.convert(*MERGE, "--stack", "x=t2m", "--memory", "64MiB", "--verify", "full", path, tmp_path / "out.zarr").ok()
    np.testing.assert_array_equal(readers.arrays(tmp_path / "out.zarr")["x"][...][:, 0], merged(values(4, 4), FILL))


REFUSED = {
    "unknown value": (("--merge-along", "expver=1,7"), "--merge-along expver=1,7: expver has no value 7"),
    "no dimension": (("--merge-along", "expvers=1,5"), "no variable has a dimension expvers"),
    "no values": (("--merge-along", "expver"), "is not DIM=VALUE,VALUE"),
    "a text": (("--merge-along", "expver=1,x"), '"x" is not a number'),
    "twice": (("--merge-along", "expver=1,1"), "1 is named twice"),
    "the coordinate": ((*MERGE, "--variable", "expver"), "--variable expver: expver is taken out by --merge-along"),
    "the coordinate, too": ((*MERGE, "--exclude", "exp*"), "expver is taken out by --merge-along"),
    "references": ((*MERGE, "--virtual", "json"), "--merge-along: references point to the files' own bytes"),
}


@pytest.mark.every
@pytest.mark.parametrize("what", REFUSED)
def test_refused(what, tmp_path):
    options, sentence = REFUSED[what]
    path = F.write(recent(), tmp_path)
    r = tool.nc2zarr(*options, path, tmp_path / "out")
    assert r.status in (1, 2) and sentence in r.err and not (tmp_path / "out").exists(), str(r)


def test_refused_for_what_the_file_is(tmp_path):
    f = recent()
    f.vars["flag"] = F.Var(("time", "expver"), np.ones((4, 2), "i1"))
    path = F.write(f, tmp_path)
    r = tool.nc2zarr(*MERGE, path, tmp_path / "out.zarr")
    assert r.status == 1 and "flag: it has no _FillValue and no missing_value" in r.err, str(r)
    stores.convert(*MERGE, "--exclude", "flag", path, tmp_path / "out.zarr").ok()
    check(tmp_path / "out.zarr", merged(values(4, 4), FILL))
    del f.vars["expver"]
    r = tool.nc2zarr(*MERGE, F.write(f, tmp_path), tmp_path / "other.zarr")
    assert r.status in (1, 2) and "dimension expver has no coordinate variable of numbers" in r.err, str(r)


@pytest.mark.parametrize("make", [recent, lambda: turned(recent())], ids=["1,5", "5,1"])
@pytest.mark.parametrize("name", ["expver", "height"])
@pytest.mark.every
def test_the_survey_names_it(name, make, tmp_path):
    """Other dimensions that some files lack are no halves of one field."""
    f = make()
    if name != "expver":
        f.vars[name] = f.vars.pop("expver")
        f.vars[name].dims = (name,)
        f.vars["t2m"].dims = tuple(name if d == "expver" else d for d in f.vars["t2m"].dims)
    F.write_all([final(), f], tmp_path / "in")
    shown = " ".join(tool.nc2zarr("--survey", tmp_path / "in").out.split())
    assert "--promote t2m" in shown and ("or --merge-along expver=1,5 makes one field of it" in shown) == (name == "expver"), shown
