"""The store shows the files' values at the same coordinates: verification alone finds planted errors of joins."""

import json
import shutil

import numpy as np
import pytest
import zarr

from support import tool

from . import files as F

PLANTED = "../tests/bin/nc2zarr_planted"


def time(days, units=F.UNITS, dtype="f8", **attrs):
    return F.Var(("time",), np.asarray(days, dtype), {"units": units, **attrs})


def field(days, **attrs):
    return F.Var(("time",), np.asarray(days, "f4") * 10 + 1, attrs)


def pair(a, b, **kw):
    """Two files of two days each with the variables that A and B add."""
    return [F.File(f"{n}.nc", {"time": time(days), "v": field(days), **own}, **kw) for n, days, own in (("a", [0, 1], a), ("b", [2, 3], b))]


def scalar(value, dtype="f8", fill=None, **attrs):
    return F.Var((), np.array(value, dtype), attrs, fill=fill)


def along(dim, values, dtype="f8", fill=None, **attrs):
    return F.Var(dim if isinstance(dim, tuple) else (dim,), np.asarray(values, dtype), attrs, fill=fill)


def obs(n):
    return {"s": along("obs", np.arange(n), "f4")}


def wide(n, dims=("time", "obs")):
    shape = [{"time": 2, "obs": n}[d] for d in dims]
    return {"w": F.Var(dims, np.arange(2 * n, dtype="f4").reshape(shape))}


def packed(name, stored, scale):
    """A file of its own latitudes."""
    return F.File(name, {"lat": along("lat", stored, "i2", scale_factor=scale), "u": along("lat", np.asarray(stored) * scale)})


def member(name, h, scale, days):
    """One member, which a scalar numbers."""
    return F.File(name, {"h": scalar(h, "i2", scale_factor=scale), "time": time([0, 1]), "v": field(days)})


JAN, FEB = "days since 2000-01-01", "days since 2000-02-01"
UNPACK = ("--packing", "unpack")
AUX = {"units": JAN, "missing_value": -999.0}

# The letter of a planted join; the files; options; the variable in which the difference is told.
CASES = {
    "no elements": ("Z", pair(wide(0), wide(3), unlimited=()), (), "w"),
    "no elements, classic": (
        "Z",
        pair(wide(0, ("obs", "time")), wide(3, ("obs", "time")), unlimited=("obs",), format="NETCDF3_CLASSIC"),
        (),
        "w",
    ),
    "no elements, static": ("Z", pair(obs(0), obs(3)), (), "s"),
    "two lengths of one dimension": (
        "Z",
        [F.File("a.nc", {"time": time([0, 1]), "s": along("obs", [], "f4")}), F.File("b.nc", {"time": time([0, 1]), "t": along("obs", [1, 2, 3], "f4")})],
        (),
        "t",
    ),
    "a scalar date": ("R", pair({"ref": scalar(0, units=JAN)}, {"ref": scalar(0, units=FEB)}), (), "ref"),
    "dates": ("R", pair({"launch": along("x", [1, 2], units=JAN)}, {"launch": along("x", [1, 2], units=FEB)}), (), "launch"),
    "two fill values": ("R", pair({"k": along("x", [1, -1], "i4", np.int32(-1))}, {"k": along("x", [1, -1], "i4", np.int32(-2))}), (), "k"),
    "a packed coordinate": ("P", [packed("a.nc", [1, 2], 2.0), packed("b.nc", [6, 8], 1.0)], UNPACK, "lat"),
    "a packed step": ("P", [member("a.nc", 3, 1.0, [0, 1]), member("b.nc", 2, 2.0, [7, 8])], (*UNPACK, "--new-dim", "m=@h"), "m"),
    "packed time": (
        "P",
        [F.File(f"{n}.nc", {"time": time(days, dtype="i2", scale_factor=s), "v": field(days)}) for n, days, s in (("a", [0, 1], 0.5), ("b", [2, 3], 2.0))],
        UNPACK,
        "time",
    ),
    "a packed static field": (
        "P",
        pair({"k": along("x", [3, 3], "i2", scale_factor=1.0)}, {"k": along("x", [3, 3], "i2", scale_factor=2.0)}),
        UNPACK,
        "k",
    ),
    "a packed promoted scalar": (
        "P",
        pair({"h": scalar(3, "i2", scale_factor=1.0)}, {"h": scalar(3, "i2", scale_factor=2.0)}),
        (*UNPACK, "--promote", "h"),
        "h",
    ),
    "missing dates": ("M", pair({"t": along("time", [1, -999], **AUX)}, {"t": along("time", [1, -999], **{**AUX, "units": FEB})}), (), "t"),
    "missing dates of whole days": (
        "M",
        pair({"t": along("time", [1, -1], "i4", units=JAN, missing_value=np.int32(-1))}, {"t": along("time", [1, -1], "i4", units=FEB, missing_value=np.int32(-1))}),
        (),
        "t",
    ),
    "missing dates in two dimensions": (
        "M",
        pair(*({"t": along(("time", "x"), [[1, -999], [-999, 2]], **{**AUX, "units": u})} for u in (JAN, FEB))),
        (),
        "t",
    ),
    "missing bounds": (
        "M",
        [
            F.File(f"{n}.nc", {"time": time([0, 1], u, bounds="b"), "b": along(("time", "n"), [[0, 1], [-999, 2]], missing_value=-999.0)})
            for n, u in (("a", JAN), ("b", FEB))
        ],
        (),
        "b",
    ),
    "data one step early": ("W", pair({}, {}), (), "v"),
    "texts one step early": (
        "W",
        pair(*({"t": F.Var(("time",), np.array(t, object))} for t in (["a", "b"], ["c", "d"]))),
        (),
        "t",
    ),
    "data one step early in another type": ("W", pair({}, {}), ("--dtype", "v:float64"), "v"),
    "data one step early, unpacked": ("W", pair(*({"k": along("time", [1, 2], "i2", scale_factor=0.1)} for _ in "ab")), ("--unpack", "k"), "k"),
    "every other step": ("W", pair({}, {}), ("--subset", "time=0:4:2"), "v"),
    "a static field of another file": ("S", pair({"h": scalar(2)}, {"h": scalar(10)}), ("--static", "first"), "h"),
}


def told(result, variable):
    lines = [line for line in result.err.splitlines() if f"difference: {variable}: " in line]
    assert result.status == 3 and lines, str(result)
    return lines


def planted(letter, *args):
    return tool.run(PLANTED, "-q", *args, env={"CHUNKMILL_PLANTED": letter})


@pytest.mark.parametrize("case", CASES)
def test_planted(tmp_path, case):
    letter, files, options, variable = CASES[case]
    F.write_all(files, tmp_path / "in")
    certificate = tmp_path / "certificate.json"
    r = planted(letter, "--verify", "full", "--certificate", certificate, *options, tmp_path / "in", tmp_path / "out.zarr")
    told(r, variable)
    assert json.loads(certificate.read_text())["reproducible"] is False


def test_check_and_parts(tmp_path):
    """Of a store that is there already, and of one that several processes make."""
    F.write_all(F.clean(3), tmp_path / "in")
    planted("W", "--verify", "none", tmp_path / "in", tmp_path / "out.zarr").ok()
    told(tool.nc2zarr("-q", "--check", tmp_path / "in", tmp_path / "out.zarr"), "tas")
    parts = [planted("W", "--verify", "full", "--chunks", "time=2", "--part", f"{k}/3", tmp_path / "in", tmp_path / "p.zarr") for k in (1, 2, 3)]
    assert parts[0].status == 0, str(parts[0])
    told(parts[2], "tas")


def test_references(tmp_path):
    F.write_all([F.File("a.nc", {"time": time([0, 1]), "v": field([0, 1])}, unlimited=()), F.File("b.nc", {"time": time([2, 3]), "v": field([2, 3])}, unlimited=())], tmp_path / "in")
    told(planted("W", "--verify", "full", "--virtual", "json", tmp_path / "in", tmp_path / "out.json"), "v")


@pytest.mark.parametrize("letter, own, variable", [("R", {"ref": scalar(0, units=FEB)}, "ref"), ("W", {}, "v")])
def test_append(tmp_path, letter, own, variable):
    """The elements that a store had are held against themselves; those of new files are not."""
    first, second = pair({"ref": scalar(0, units=JAN)}, {"ref": scalar(0, units=JAN), **own})
    a, b = F.write_all([first, second], tmp_path / "in")
    tool.nc2zarr("-q", a, tmp_path / "out.zarr").ok()
    told(planted(letter, "--verify", "full", "--append", "time", b, tmp_path / "out.zarr"), variable)


# ---- what is right passes ----


def test_a_store_that_is_changed_afterwards(tmp_path):
    """Elements, coordinates and attributes: whatever changes what readers see, and names the file."""
    files = pair({}, {})
    F.write_all(files, tmp_path / "in")
    tool.nc2zarr("-q", "--verify", "full", tmp_path / "in", tmp_path / "good.zarr").ok()
    check = lambda out: tool.nc2zarr("-q", "--check", tmp_path / "in", out)  # noqa: E731
    check(tmp_path / "good.zarr").ok()
    for name, at, value in (("v", 3, 7.0), ("time", 3, 9.0)):
        out = tmp_path / f"{name}.zarr"
        shutil.copytree(tmp_path / "good.zarr", out)
        zarr.open_array(str(out / name), mode="r+")[at] = value
        assert any("b.nc" in line for line in told(check(out), name))


@pytest.mark.parametrize(
    "first, second, options",
    [
        ({"x": along("x", [1, 2])}, {"x": along("x", [1, 2 + 1e-14])}, ("--tolerance", "1e-12")),
        ({"h": scalar(2)}, {"h": scalar(10)}, ("--static", "first")),
        ({"h": scalar(2)}, {"h": scalar(10)}, ("--promote", "h")),
        ({"k": along("time", [1, -1], "i2", np.int16(-1))}, {"k": along("time", [1, -2], "i4", np.int32(-2))}, ("--fill-value", "k:-9")),
        ({"k": along("time", [1, -1], "i1", _Unsigned="true", scale_factor=0.5)}, {"k": along("time", [1, -1], "i1", scale_factor=0.25)}, UNPACK),
        ({"t": along("time", [1, 2], units=JAN, calendar="noleap")}, {"t": along("time", [24, 48], "i4", units="hours since 2000-02-28", calendar="365_day")}, ()),
        ({"time": time([0, 1], "days since 2000-01-01")}, {"time": time([24, 36], "hours since 2000-01-02 00:00", "i4")}, ()),
        ({}, {"time": time([1, 2]), "v": field([7, 8])}, ("--overlap", "last")),
        ({}, {"time": time([5, 6])}, ("--gaps", "fill")),
        ({}, {}, ("--subset", "time=1:4:2")),
        ({"k": F.Var(("time", "x"), np.arange(6.0).reshape(2, 3))}, {"k": F.Var(("x", "time"), np.arange(6.0).reshape(3, 2))}, ()),
        ({"k": along("time", [1, 300], "f8")}, {"k": along("time", [0.1, -2], "f8")}, ("--dtype", "k:float32")),
        ({"k": along("time", [1, 2], "i2", scale_factor=0.1)}, {"k": along("time", [3, 4], "i2", scale_factor=0.1)}, ("--unpack", "k", "--dtype", "k:float32")),
        ({"k": along("time", [1, 2], "i2", scale_factor=0.1)}, {"k": along("time", [3, 4], "i2", scale_factor=0.3)}, (*UNPACK, "--dtype", "k:float32")),
    ],
)
def test_what_is_right(tmp_path, first, second, options):
    F.write_all(pair(first, second), tmp_path / "in")
    tool.nc2zarr("-q", "--verify", "full", *options, tmp_path / "in", tmp_path / "out.zarr").ok()
