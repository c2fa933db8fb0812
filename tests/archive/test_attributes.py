"""Attributes in which files differ: all of them are named, and what stays is right for the data of all files."""

import numpy as np
import pytest
import xarray as xr

from support import tool

from . import files as F
from . import stores


def steps(attributes, dtype="f4", **more):
    """A file a step, whose variable v has the attributes of ATTRIBUTES in turn."""
    return [
        F.File(
            f"d{i}.nc",
            {
                "time": F.Var(("time",), np.array([float(i)]), {"units": F.UNITS, **more.get("time", {})}),
                "v": F.Var(("time", "y"), np.array([[1, 2, 3 + i]], dtype), own),
            },
            more.get("globals", lambda i: {})(i),
        )
        for i, own in enumerate(attributes)
    ]


@pytest.mark.parametrize("names", [["vmin"], ["vmin", "vmax"], ["vmin", "vmax", "actual_range"], [f"a{i}" for i in range(12)]], ids=len)
@pytest.mark.parametrize("lacking", [False, True], ids=["other values", "absent in the first"])
def test_all_that_differ_are_named(names, lacking, tmp_path):
    """By the survey and its document, and by the conversion; no other attribute is."""
    own = [{"long_name": "v", **({} if lacking and i == 0 else {n: np.float32(i + k) for k, n in enumerate(names)})} for i in range(3)]
    F.write_all(steps(own), tmp_path / "in")
    _, found = stores.survey(tmp_path / "in", status=0)
    (text,) = [f["text"] for f in found["findings"] if f["kind"] == "attribute"]
    r = stores.convert("-v", tmp_path / "in", tmp_path / "out.zarr").ok()
    (said,) = [line for line in tool.nc2zarr("-v", "--overwrite", tmp_path / "in", tmp_path / "out.zarr").ok().err.splitlines() if "attribute" in line]
    printed = " ".join(tool.nc2zarr("--survey", tmp_path / "in").ok().out.split())
    for words in (text, said, printed):
        assert [n for n in names if f" {n} " in words.replace(",", " ")] == names and "long_name" not in words, words
    assert stores.attributes(tmp_path / "out.zarr", "v") == {"long_name": "v"}, str(r)


LIMITS = {
    "minimum": [{"valid_min": np.float32(0)}, {"valid_min": np.float32(-9)}],
    "maximum": [{"valid_max": np.float32(3)}, {"valid_max": np.float32(4)}],
    "both": [{"valid_min": np.float32(0), "valid_max": np.float32(3)}, {"valid_min": np.float32(0), "valid_max": np.float32(4)}],
    "range": [{"valid_range": np.array([0, 3], "f4")}, {"valid_range": np.array([0, 4], "f4")}],
    "none": [{"valid_range": np.array([0, 3], "f4")}, {}],
}


@pytest.mark.parametrize("own", LIMITS.values(), ids=LIMITS)
def test_limits_mask_no_data_of_later_files(own, tmp_path):
    """Readers that go by the convention take what lies outside for missing."""
    files = steps([{"standard_name": f"s{i}", **a} for i, a in enumerate(own)])
    F.write_all(files, tmp_path / "in")
    assert stores.survey(tmp_path / "in")[0] == 4
    printed = " ".join(tool.nc2zarr("--survey", tmp_path / "in", tmp_path / "out.zarr").out.split())
    assert "--attrs first v: all attributes are the first file's" in printed and "valid_range are left out where files differ" in printed
    r = tool.nc2zarr("--attrs", "first", tmp_path / "in", tmp_path / "out.zarr").ok()
    gone = {n for a in own for n in a if str(own[0].get(n)) != str(own[1].get(n))}
    assert all(n in r.err for n in gone) and "left out: readers take what lies outside for missing" in r.err, str(r)
    attrs = stores.attributes(tmp_path / "out.zarr", "v")
    assert attrs["standard_name"] == "s0" and not gone & set(attrs)
    assert set(attrs) - {"standard_name"} == set(own[0]) - gone


def test_limits_that_are_alike_stay(tmp_path):
    files = steps([{"standard_name": f"s{i}", "valid_range": np.array([0, 3], t)} for i, t in enumerate(("f4", "f8", "i2"))])
    F.write_all(files, tmp_path / "in")
    printed = tool.nc2zarr("--survey", tmp_path / "in", tmp_path / "out.zarr").out
    assert "--attrs first" in printed and "left out where files differ" not in printed
    stores.convert("--attrs", "first", tmp_path / "in", tmp_path / "out.zarr").ok()
    assert stores.attributes(tmp_path / "out.zarr", "v") == {"standard_name": "s0", "valid_range": [0.0, 3.0]}


@pytest.mark.parametrize("name", ["valid_min", "valid_max", "valid_range"])
def test_limits_of_numbers_that_become_others(name, tmp_path):
    """Times that are counted anew, and numbers that are unpacked."""
    limit = {name: np.array([0, 3], "i2") if name == "valid_range" else np.int16(3)}
    files = steps([{"scale_factor": 0.5, **limit}, {"scale_factor": 0.25, **limit}], "i2", time=limit)
    files[1].vars["time"].attrs["units"] = "days since 2000-01-05"
    F.write_all(files, tmp_path / "in")
    _, found = stores.survey("--packing", "unpack", tmp_path / "in", status=0)
    told = {f["variable"]: f["text"] for f in found["findings"] if f["kind"] == "attribute"}
    assert told == {"time": f"the attribute {name} is left out, since times are counted anew", "v": f"the attribute {name} is left out, since its numbers are unpacked"}
    stores.convert("--packing", "unpack", tmp_path / "in", tmp_path / "out.zarr").ok()
    assert not [n for v in ("time", "v") for n in stores.attributes(tmp_path / "out.zarr", v) if n.startswith("valid")]


@pytest.mark.parametrize(
    "other",
    [{"scale_factor": np.float64(0.5)}, {"scale_factor": np.float32(0.5), "add_offset": np.float32(0)}, {"scale_factor": np.float64(0.5), "add_offset": np.int16(0)}],
    ids=["double", "offset", "integer"],
)
@pytest.mark.parametrize("turned", [False, True])
def test_packing_that_is_the_same_needs_no_decision(other, turned, tmp_path):
    own = [{"scale_factor": np.float32(0.5)}, other]
    files = steps(own[::-1] if turned else own, "i2")
    F.write_all(files, tmp_path / "in")
    stores.convert("--verify", "full", tmp_path / "in", tmp_path / "out.zarr").ok()
    want = np.concatenate([xr.open_dataset(tmp_path / "in" / f.name).v.values for f in files])
    with xr.open_zarr(tmp_path / "out.zarr", mask_and_scale=False) as raw, xr.open_zarr(tmp_path / "out.zarr") as got:
        assert raw.v.dtype == np.int16
        np.testing.assert_array_equal(got.v.values, want)


def test_packing_names_what_packs(tmp_path):
    """Packed files beside plain ones: limits of packed numbers are no reason and need no option."""
    packed = {"valid_min": np.int16(-300), "scale_factor": np.float32(0.01), "add_offset": np.float32(0)}
    files = steps([packed, packed], "i2") + steps([{}, {}, {}])[2:]
    F.write_all(files, tmp_path / "in")
    _, found = stores.survey(tmp_path / "in", status=4)
    (reason,) = [f for f in found["findings"] if f["weight"] == "decision"]
    assert reason["kind"] == "packing" and reason["text"].startswith("scale_factor is absent, and 0.0099"), reason
    assert "--packing unpack" in found["command"] and "--attrs" not in found["command"]


def test_a_store_keeps_what_new_files_contradict(tmp_path):
    """Which is said, and of limits that mask the new data more loudly."""
    say = lambda i: {"title": "t", "comment": ("final", "preliminary")[i]}  # noqa: E731
    files = steps([{"long_name": "v", "id": 1}, {"long_name": "v", "id": 2}], globals=say)
    F.write_all(files, tmp_path)
    out = tmp_path / "out.zarr"
    stores.convert(tmp_path / "d0.nc", out).ok()
    r = tool.nc2zarr("-v", "--append", "time", tmp_path / "d1.nc", out).ok()
    assert "the attribute id is not that of the store, which keeps its own" in r.err, str(r)
    assert "not the same in the store, which keeps its own: comment" in r.err and "title" not in r.err, str(r)
    assert stores.attributes(out)["comment"] == "final" and stores.attributes(out, "v")["id"] == 1


@pytest.mark.parametrize("own", LIMITS.values(), ids=LIMITS)
def test_a_store_keeps_limits_that_new_files_contradict(own, tmp_path):
    F.write_all(steps(own), tmp_path)
    out = tmp_path / "out.zarr"
    stores.convert(tmp_path / "d0.nc", out).ok()
    before = stores.attributes(out, "v")
    r = tool.nc2zarr("--append", "time", tmp_path / "d1.nc", out).ok()
    assert "warning: " in r.err and "readers take what lies outside valid_" in r.err, str(r)
    assert stores.attributes(out, "v") == before
