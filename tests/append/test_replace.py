"""A range of a store is written anew: it is then what one conversion with the new files makes."""

import json
import os
import signal

import netCDF4
import numpy as np
import pytest
import xarray as xr

from support import failio, rechunked, tool

from . import files as F
from .test_append import LAYOUTS, same_store

HALF = np.float32(0.5)


def replace(range, *args, **kw):
    return tool.nc2zarr("-q", "--replace", range, *args, **kw)


def final(folder, first, n, by=HALF, **kw):
    """The files of n days whose values became others."""
    return [F.day(folder / f"final{i:05}.nc", i, data=F.values(i, 1) + by, **kw) for i in range(first, first + n)]


@pytest.mark.few
@pytest.mark.parametrize("first, n", [(0, 4), (3, 6), (9, 1), (0, 10), (7, 3)])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_equals_one_conversion(layout, first, n, tmp_path):
    old, new = F.days(tmp_path, 0, 10), final(tmp_path, first, n)
    store, want = tmp_path / "s.zarr", tmp_path / "want.zarr"
    tool.nc2zarr("-q", *LAYOUTS[layout], *old, store).ok()
    replace(f"time={first}:{first + n}", "--verify", "full", *new, store).ok()
    everything = old[:first] + new + old[first + n :]
    tool.nc2zarr("-q", *LAYOUTS[layout], "--attrs", "first", *everything, want).ok()
    assert tool.run("rechunk", "--digest", store).ok().out == tool.run("rechunk", "--digest", want).ok().out
    F.same(store, everything, consolidated="not" not in layout)


@pytest.mark.few
@pytest.mark.parametrize(
    "range", ["2000-01-04..2000-01-06", "3:6", "-7:-4", "2000-01-04T00..2000-01-06T00:00:00"]
)
def test_ranges(range, tmp_path):
    """Dates and numbers of elements, and what is told of the change."""
    old, new = F.days(tmp_path, 0, 10), final(tmp_path, 3, 3, units="hours since 1999-01-01")
    store = tmp_path / "s.zarr"
    tool.nc2zarr("-q", "--chunks", "time=4,lat=2", *old, store).ok()
    before = rechunked.files(tmp_path)
    planned = tool.nc2zarr("--replace", f"time={range}", "--dry-run", "--json", *new, store).json()
    assert planned["replace"] == {"dimension": "time", "start": 3, "stop": 6} and planned["append"] is None
    assert {v["name"]: v["changed"] for v in planned["variables"]} == {"tas": None, "time_bnds": None}
    assert rechunked.files(tmp_path) == before
    report = tool.nc2zarr("--replace", f"time={range}", "--verify", "full", "--json", *new, store).json()
    assert report["replace"] == planned["replace"]
    assert {v["name"]: v["changed"] for v in report["variables"]} == {
        "tas": {"nelements": 3 * F.NLAT * F.NLON, "largest": 0.5},
        "time_bnds": {"nelements": 0, "largest": None},
    }
    F.same(store, old[:3] + new + old[6:])
    again = tool.nc2zarr("--replace", f"time={range}", *new, store).ok()
    assert "Changed in tas: 0 elements\n" in again.out


def test_the_largest_change(tmp_path):
    """Unpacked, and of elements that are numbers before and after."""
    store = tmp_path / "s.zarr"
    packed = {"type": "i2", "fill": np.int16(-32768), "attrs": {"scale_factor": 0.25, "add_offset": 3.0}}

    def put(path, data):
        F.day(path, 0, 2, data=np.zeros((2, F.NLAT, F.NLON)), **packed)
        with netCDF4.Dataset(path, "a") as nc:
            nc["tas"].set_auto_maskandscale(False)
            nc["tas"][:] = data
        return path

    data = np.arange(2 * F.NLAT * F.NLON, dtype="i2").reshape(2, F.NLAT, F.NLON)
    tool.nc2zarr("-q", put(tmp_path / "a.nc", data), put(tmp_path / "b.nc", data), store)
    tool.nc2zarr("-q", "--overwrite", tmp_path / "a.nc", store).ok()
    other = data.copy()
    other[0, 0, 0] = -32768
    other[1, 1, 1] += 10
    other[1, 2, 2] -= 100
    report = tool.nc2zarr("--replace", "time=:", "--json", put(tmp_path / "c.nc", other), store).json()
    changed = {v["name"]: v["changed"] for v in report["variables"]}
    assert changed["tas"] == {"nelements": 3, "largest": 25.0}


@pytest.mark.few
@pytest.mark.parametrize("fmt", [2, 3])
@pytest.mark.parametrize("shards", [False, True])
def test_a_store_of_xarray(fmt, shards, tmp_path):
    if shards and fmt == 2:
        pytest.skip("version 2 has none")
    old, new = F.days(tmp_path, 0, 12), final(tmp_path, 3, 6)
    store = tmp_path / "s.zarr"
    F.by_xarray(old, store, chunks=(2, 5, 7), shards=(8, 5, 7) if shards else None, zarr_format=fmt)
    documents = {k: v for k, v in failio.contents(store).items() if k.endswith(("json", ".zarray", ".zattrs"))}
    replace("time=3:9", "--verify", "full", *new, store).ok()
    F.same(store, old[:3] + new + old[9:])
    after = failio.contents(store)
    assert documents and {k: after[k] for k in documents} == documents


def chunks(store):
    return {str(p.relative_to(store)) for p in (store / "tas").rglob("*") if p.is_file()}


@pytest.mark.parametrize("layout", ["v3", "v2", "shards"])
def test_fill_takes_objects_away(layout, tmp_path):
    old = F.days(tmp_path, 0, 12)
    nothing = F.day(tmp_path / "nothing.nc", 4, 8, data=np.full((8, F.NLAT, F.NLON), 1e20, "f4"))
    store, want = tmp_path / "s.zarr", tmp_path / "w.zarr"
    tool.nc2zarr("-q", *LAYOUTS[layout], *old, store).ok()
    tool.nc2zarr("-q", *LAYOUTS[layout], *old[:4], nothing, want).ok()
    replace("time=4:12", "--verify", "full", nothing, store).ok()
    assert np.isnan(xr.open_zarr(store, chunks=None).tas.values[4:]).all()
    assert chunks(store) == chunks(want) != set()
    same_store(store, want, "shards")


def test_the_ledger(tmp_path):
    """It lists the new files, and no longer knows one that was written over as it was."""
    here = tmp_path / "in"
    here.mkdir()
    old = F.days(here, 0, 6)
    store = tmp_path / "s.zarr"
    tool.nc2zarr("-q", "--chunks", "time=4", *old, store).ok()
    F.day(old[2], 2, data=F.values(2, 1) + 1)
    assert tool.nc2zarr("--append", "time", f"{here}/*.nc", store).status == 1
    replace("time=2:3", old[2], store).ok()
    F.days(here, 6, 1)
    report = tool.nc2zarr("--append", "time", "--json", f"{here}/*.nc", store).json()
    assert report["append"]["nlisted"] == 6 and report["append"]["length"] == 7
    F.same(store, sorted(here.glob("*.nc")))


# ---- refusals ---------------------------------------------------------------------------------

REFUSED = {
    "fewer steps than the range": ("time=3:7", dict(first=3, n=3), 2, "time=3:6"),
    "more steps than the range": ("time=4:6", dict(first=3, n=3), 2, "time=3:6"),
    "other steps": ("time=0:3", dict(first=3, n=3), 2, "time=3:6"),
    "behind the end": ("time=8:10", dict(first=8, n=3), 2, "behind the end"),
    "index behind the end": ("time=8:11", dict(first=8, n=2), 2, "outside"),
    "dates of no step": ("time=2010-01-01..2011-01-01", dict(first=3, n=3), 2, "no coordinate"),
    "between the steps": ("time=3:4", dict(first=3.5, n=1), 4, "final"),
    "before the first": ("time=0:1", dict(first=-1, n=1), 4, "final"),
    "a step": ("time=3:6:2", dict(first=3, n=3), 2, "step"),
    "no range": ("time", dict(first=3, n=3), 2, "DIM=RANGE"),
    "an empty range": ("time=5:5", dict(first=3, n=3), 2, "selects none"),
    "no such dimension": ("when=3:6", dict(first=3, n=3), 2, "when"),
    "units": ("time=3:6", dict(first=3, n=3, attrs={"units": "degC"}), 4, "degC"),
    "type": ("time=3:6", dict(first=3, n=3, type="f8", fill=1e20), 4, "float64"),
    "static field": ("time=3:6", dict(first=3, n=3, static=np.ones((F.NLAT, F.NLON))), 4, "ground"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name, tmp_path):
    range, how, status, word = REFUSED[name]
    store = tmp_path / "work" / "s.zarr"
    store.parent.mkdir()
    tool.nc2zarr("-q", "--chunks", "time=4", *F.days(tmp_path, 0, 10), store).ok()
    before = failio.contents(store.parent)
    p = F.day(tmp_path / "final.nc", **how)
    r = tool.nc2zarr("--replace", range, p, store)
    assert r.status == status and word in r.err, str(r)
    assert failio.contents(store.parent) == before


def test_refused_for_a_hole_or_two_opinions(tmp_path):
    store = tmp_path / "work" / "s.zarr"
    store.parent.mkdir()
    tool.nc2zarr("-q", "--chunks", "time=4", *F.days(tmp_path, 0, 10), store).ok()
    before = failio.contents(store.parent)
    r = replace("time=3:6", *final(tmp_path, 3, 1), *final(tmp_path, 5, 1), store)
    assert r.status == 2 and "lack" in r.err, str(r)
    other = F.day(tmp_path / "zother.nc", 3, data=F.values(3, 1) + 7)
    r = replace("time=3:4", tmp_path / "final00003.nc", other, store)
    assert r.status == 1 and "differ" in r.err and "zother.nc" in r.err, str(r)
    assert failio.contents(store.parent) == before
    replace("time=3:4", "--overlap", "last", tmp_path / "final00003.nc", other, store).ok()
    np.testing.assert_array_equal(xr.open_zarr(store, chunks=None).tas.values[3], F.values(3, 1)[0] + 7)


@pytest.mark.parametrize(
    "options", [["--append", "time"], ["--chunks", "time=2"], ["--overwrite"], ["--resume"], ["--subset", "lat=0:2"],
                ["--recheck"], ["--append-rest", "hold"], ["--survey"]], ids=lambda o: o[0])
def test_options_of_others(options, tmp_path):
    store = tmp_path / "s.zarr"
    tool.nc2zarr("-q", *F.days(tmp_path, 0, 3), store).ok()
    before = failio.contents(tmp_path)
    r = tool.nc2zarr("--replace", "time=0:1", *options, tmp_path / "day00000.nc", store)
    assert r.status == 2 and ("--" + options[0].lstrip("-") in r.err), str(r)
    assert failio.contents(tmp_path) == before


# ---- kills --------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("kind", F.KILLED_BEFORE)
@pytest.mark.parametrize("layout", F.KILLED)
def test_killed(layout, kind, tmp_path):
    """At every moment: each element is the old or the new one, and the same command completes it."""
    top, root, state = tmp_path / "old", tmp_path / "work", tmp_path / "state"
    top.mkdir()
    old = F.days(tmp_path, 0, 12)
    data = F.values(3, 6) + HALF
    data[1:5] = 1e20  # days 4 to 7: whole chunks become fill
    new = F.day(tmp_path / "new.nc", 3, 6, data=data)
    common = ["-q", "-j", "1", "--verify", "none"]
    tool.nc2zarr(*common, *F.KILLED[layout], *old, top / "s.zarr").ok()
    store = root / "s.zarr"
    command = [*common, "--replace", "time=3:9", new, store]
    failio.renew(top, root)
    whole = failio.inject("nc2zarr", *command, root=root, state=state)
    whole.done.ok()
    want = failio.contents(store)
    was, now = F.values(0, 12), F.values(0, 12)
    now[3:9] = np.where(data == 1e20, np.nan, data)
    np.testing.assert_array_equal(xr.open_zarr(store, chunks=None).tas.values, now)
    assert whole.counts[kind] > 0
    refused = 0
    moments = failio.spread(whole.counts[kind], F.MOST_KILLS)
    print(f"replace, {layout}: {len(moments)} kills at {whole.counts[kind]} {kind}s")
    for nth in moments:
        failio.renew(top, root)
        killed = failio.inject("nc2zarr", *command, root=root, state=state, kind=kind, nth=nth, way="kill")
        assert killed.done.status in (-signal.SIGKILL, 128 + signal.SIGKILL), str(killed.done)
        with xr.open_zarr(store, chunks=None) as ds:
            seen = ds.tas.values
        assert ((seen == was) | (seen == now) | (np.isnan(seen) & np.isnan(now))).all(), (kind, nth, killed.what)
        # A half replaced store accepts nothing else.
        mixed = os.path.exists(f"{store}.chunkmill/append-replaces")
        other = tool.nc2zarr("-q", "--append", "time", "--dry-run", old[0], store)
        if mixed and other.status != 0:
            refused += "stopped" in other.err
        tool.nc2zarr(*command).ok()
        got = failio.contents(store)
        assert set(got) == set(want), (kind, nth, set(got) ^ set(want))
        if layout != "shards":
            assert got == want, (kind, nth)
        np.testing.assert_array_equal(xr.open_zarr(store, chunks=None).tas.values, now)
        assert sorted(p.name for p in (root / "s.zarr.chunkmill").iterdir()) == ["ledger"], (kind, nth)
    assert refused > 0 or kind != "rename"


def test_chunks_that_cannot_be_read(tmp_path):
    """Whole chunks are replaced without their old elements, whose changes are not counted; a part of one is refused."""

    def steps(name, first, n, plus=0):
        with netCDF4.Dataset(tmp_path / name, "w") as nc:
            for dim, size in (("time", None), ("y", 64), ("x", 64)):
                nc.createDimension(dim, size)
            nc.createVariable("time", "i4", ("time",))[:] = np.arange(first, first + n)
            nc.createVariable("v", "f4", ("time", "y", "x"))[:] = np.arange(first, first + n)[:, None, None] + np.linspace(0, 1, 64) + plus
        return tmp_path / name

    old, new = [steps("0.nc", 0, 4), steps("1.nc", 4, 4), steps("2.nc", 8, 2)], steps("new.nc", 4, 4, 1)
    store, want = tmp_path / "s.zarr", tmp_path / "want.zarr"
    tool.nc2zarr("-q", "--chunks", "time=4", *old, store).ok()
    (store / "v" / "c" / "1" / "0" / "0").write_bytes(b"not a chunk")
    part = steps("part.nc", 4, 2)
    before = failio.contents(tmp_path)
    tool.nc2zarr("--replace", "time=4:6", part, store).fails(1, "array v: chunk 1/0/0: ", "; --replace time=4:8, of whole chunks, reads none")
    assert failio.contents(tmp_path) == before
    r = tool.nc2zarr("--replace", "time=4:8", "--json", new, store)
    assert "array v: changes are not counted: " in r.err and "chunk 1/0/0: " in r.err, str(r)
    assert {v["name"]: v["changed"] for v in r.json()["variables"]} == {"v": None}
    tool.nc2zarr("-q", "--chunks", "time=4", old[0], new, old[2], want).ok()
    assert tool.run("rechunk", "--digest", store).ok().out == tool.run("rechunk", "--digest", want).ok().out


def test_one_that_was_stopped(tmp_path):
    """Neither an append nor another range goes on with it; one that holds its range does, --overwrite forgets it."""
    root = tmp_path / "work"
    root.mkdir()
    store = root / "s.zarr"
    old, new = F.days(tmp_path, 0, 12), final(tmp_path, 2, 8)
    tool.nc2zarr("-q", "--chunks", "time=2,lat=2", *old, store).ok()
    killed = failio.inject("nc2zarr", "-q", "-j", "1", "--replace", "time=4:8", *new[2:6], store, root=root,
                           state=tmp_path / "state", kind="rename", nth=5, way="kill")
    assert killed.done.status != 0 and os.path.exists(f"{store}.chunkmill/append-replaces")
    for args in (["--append", "time", F.day(tmp_path / "next.nc", 12)], ["--replace", "time=5:6", new[3]]):
        for look in ([], ["--dry-run"]):
            r = tool.nc2zarr(*args, *look, store)
            assert r.status in (1, 2) and "time=4:8 was stopped half-way" in r.err, str(r)
    replace("time=2:10", *new, store).ok()
    F.same(store, old[:2] + new + old[10:])
    tool.nc2zarr("-q", "--append", "time", tmp_path / "next.nc", store).ok()


def test_memory_and_threads(tmp_path):
    """The report does not depend on how the work is cut."""
    old, new = F.days(tmp_path, 0, 30), final(tmp_path, 5, 20)
    want = None
    for threads in ("1", "4"):
        store = tmp_path / f"{threads}.zarr"
        tool.nc2zarr("-q", "--chunks", "time=8,lat=2", *old, store).ok()
        report = tool.nc2zarr("--replace", "time=5:25", "-j", threads, "--json", *new, store).json()
        found = (failio.contents(store), json.dumps([v["changed"] for v in report["variables"]]))
        want = want or found
        assert found == want


# ---- some of the variables, the others stay --------------------------------------------------------------

TWO = {"pr": 1000, "tas": 0}


def twofold(path, first, names=tuple(TWO), by=0, n=1):
    """A day's file with NAMES."""
    with xr.Dataset(
        {name: (("time", "lat"), F.values(first, n)[:, :, 0] + np.float32(TWO[name] + by)) for name in names},
        {"time": ("time", np.arange(first, first + n, dtype="f8"), {"units": F.UNITS})},
    ) as ds:
        ds.to_netcdf(path, unlimited_dims=["time"])
    return path


def of_two(store):
    path = str(store).removeprefix("icechunk:")
    if path != str(store):
        tool.run("rechunk", "-q", "--overwrite", store, f"{path}.zarr").ok()
        path = f"{path}.zarr"
    with xr.open_zarr(path, chunks=None) as ds:
        return {name: ds[name].values for name in TWO}


@pytest.mark.parametrize("how", [["--variable", "pr"], ["--exclude", "tas"], ["--variable", "p*", "--exclude", "tas"]], ids=" ".join)
@pytest.mark.parametrize("names", [("pr",), ("pr", "tas")], ids=len)
@pytest.mark.parametrize("target", ["s.zarr", "icechunk:s"])
def test_some_variables_are_replaced(target, names, how, tmp_path):
    """Whether the files have the others or not: these stay as they are."""
    old = [twofold(tmp_path / f"a{i}.nc", i) for i in range(6)]
    new = [twofold(tmp_path / f"b{i}.nc", i, names, 0.5) for i in (2, 3)]
    store = tmp_path / target if ":" not in target else f"icechunk:{tmp_path / 's'}"
    tool.nc2zarr("-q", "--chunks", "time=3", *old, store).ok()
    was = of_two(store)
    for _ in range(2):
        replace("time=2:4", *how, "--verify", "full", *new, store).ok()
        now = of_two(store)
        np.testing.assert_array_equal(now["tas"], was["tas"])
        want = was["pr"].copy()
        want[2:4] += 0.5
        np.testing.assert_array_equal(now["pr"], want)
    replace("time=2:4", "--variable", "pr", old[2], old[3], store).ok()
    np.testing.assert_array_equal(of_two(store)["pr"], was["pr"])


def test_files_with_some_variables_name_the_way(tmp_path):
    old, new = [twofold(tmp_path / f"a{i}.nc", i) for i in range(4)], twofold(tmp_path / "b.nc", 2, ("pr",), 0.5)
    store = tmp_path / "s.zarr"
    tool.nc2zarr("-q", *old, store).ok()
    before = failio.contents(store)
    replace("time=2:3", new, store).fails(2, "variable tas: the files give none of its elements; --exclude leaves it as it is")
    assert failio.contents(store) == before
    r = tool.nc2zarr("-q", "--append", "time", "--variable", "pr", twofold(tmp_path / "c.nc", 4), store)
    r.fails(2, "array tas: has the dimension time, and is not among the variables that are added; all arrays along it grow together")
    assert failio.contents(store) == before


def test_one_of_some_variables_that_was_stopped(tmp_path):
    """A replacement goes on with it that has its variables at least."""
    root = tmp_path / "work"
    root.mkdir()
    store = root / "s.zarr"
    old = [twofold(tmp_path / f"a{i}.nc", i) for i in range(6)]
    new = [twofold(tmp_path / f"b{i}.nc", i, by=0.5) for i in range(6)]
    tool.nc2zarr("-q", "--chunks", "time=1", *old, store).ok()
    killed = failio.inject("nc2zarr", "-q", "-j", "1", "--replace", "time=1:5", "--variable", "pr", *new[1:5], store, root=root,
                           state=tmp_path / "state", kind="rename", nth=4, way="kill")
    assert killed.done.status != 0 and os.path.exists(f"{store}.chunkmill/append-replaces")
    replace("time=1:5", "--variable", "tas", *new[1:5], store).fails(1, "time=1:5 was stopped half-way")
    replace("time=0:6", *new, store).ok()
    assert not os.path.exists(f"{store}.chunkmill/append-replaces")
    for name, by in TWO.items():
        np.testing.assert_array_equal(of_two(store)[name], F.values(0, 6)[:, :, 0] + np.float32(by + 0.5))
