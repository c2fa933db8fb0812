"""--strict, and coordinates that have no place."""

from pathlib import Path

import numpy as np
import pytest

from support import tool

from . import files as F
from . import stores


def found(doc, kind):
    return [f for f in doc["findings"] if f["kind"] == kind]


def rewritten(k, **change):
    files = [F.changed(f) for f in F.clean(5)]
    for name, value in change.items():
        setattr(files[k].vars["tas"], name, value)
    return files


@pytest.mark.parametrize("change", [{"deflate": 7}, {"deflate": 0}, {"chunks": (1, 2, 3)}], ids=["level", "none", "chunks"])
@pytest.mark.parametrize("k", [0, 2, 4])
def test_layouts_that_differ(tmp_path, change, k):
    files = rewritten(k, **change)
    F.write_all(files, tmp_path / "in")
    _, doc = stores.survey(tmp_path / "in", status=0)
    notes = found(doc, "layout")
    assert len(notes) == 1 and notes[0]["variable"] == "tas" and notes[0]["weight"] == "note" and notes[0]["option"] is None, notes
    names = [Path(notes[0][e]).name for e in ("file", "last")]
    assert names == ([files[1].name, files[-1].name] if k == 0 else [files[k].name] * 2)
    _, doc = stores.survey("--strict", tmp_path / "in", status=4)
    assert [f["weight"] for f in found(doc, "layout")] == ["decision"]
    r = tool.nc2zarr("--strict", tmp_path / "in", tmp_path / "out.zarr")
    assert r.status == 4 and Path(notes[0]["file"]).name in r.err and not (tmp_path / "out.zarr").exists(), str(r)
    stores.convert("--verify", "full", tmp_path / "in", tmp_path / "out.zarr").ok()
    stores.same(tmp_path / "out.zarr", F.joined(files))


def test_like_layouts_are_no_finding(tmp_path):
    """Nor is a variable of which a file wrote nothing."""
    files = [F.changed(f) for f in F.clean(4)]
    files[2].vars["tas"].data = np.full_like(files[2].vars["tas"].data, 1e20)
    F.write_all(files, tmp_path / "in")
    _, doc = stores.survey("--strict", tmp_path / "in", status=0)
    assert doc["findings"] == []


def at(name, dtype, values, fill=None, units=F.UNITS):
    attrs = {"units": units} if units else {}
    x = F.Var(("x",), np.asarray(values, dtype), attrs, fill=None if fill is None else np.dtype(dtype).type(fill))
    return F.File(f"{name}.nc", {"x": x, "v": F.Var(("x",), np.arange(len(values), dtype="f4"))}, unlimited=("x",))


@pytest.mark.every
@pytest.mark.parametrize(
    "dtype, bad, fill, units, word",
    [
        ("f8", np.nan, None, F.UNITS, "is missing"),
        ("f8", 1e20, 1e20, F.UNITS, "is missing"),
        ("i4", -99, -99, F.UNITS, "is missing"),
        ("f8", 1e300, None, F.UNITS, "is out of range"),
        ("f4", np.nan, None, None, "is not a number"),
        ("f8", -1, -1, None, "is missing"),
        ("i2", -1, -1, None, "is missing"),
    ],
)
@pytest.mark.parametrize("k", [0, 2])
def test_a_coordinate_without_a_place(tmp_path, dtype, bad, fill, units, word, k):
    values = [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    values[k][1] = bad
    F.write_all([at(n, dtype, v, fill, units) for n, v in zip("abc", values)], tmp_path / "in")
    _, doc = stores.survey(tmp_path / "in", status=4)
    (f,) = found(doc, "coordinate")
    assert Path(f["file"]).name == f"{'abc'[k]}.nc" and f"element 1 {word}" in f["text"], f
    r = tool.nc2zarr(tmp_path / "in", tmp_path / "out.zarr")
    assert r.status == 4 and f"{'abc'[k]}.nc" in r.err and not (tmp_path / "out.zarr").exists(), str(r)


def test_a_coordinate_that_turns_names_the_element(tmp_path):
    F.write_all([at("a", "f8", [0, 1, 2]), at("b", "f8", [3, 5, 4])], tmp_path / "in")
    _, doc = stores.survey(tmp_path / "in", status=4)
    (f,) = found(doc, "coordinate")
    assert Path(f["file"]).name == "b.nc" and "element 2" in f["text"], f


def test_missing_values_elsewhere_are_no_matter(tmp_path):
    """Of a dimension that is not joined a coordinate may be missing, if it is in all files."""
    files = [F.changed(f) for f in F.clean(3)]
    for f in files:
        f.vars["lat"].data = f.vars["lat"].data.copy()
        f.vars["lat"].data[3] = np.nan
    F.write_all(files, tmp_path / "in")
    stores.convert("--verify", "full", tmp_path / "in", tmp_path / "out.zarr").ok()
    stores.same(tmp_path / "out.zarr", F.joined(files))
