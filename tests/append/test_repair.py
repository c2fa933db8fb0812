"""Coordinates that have one value a chunk get one chunk when a store grows; nothing that readers may want goes."""

import os
import shutil
import signal
import subprocess
import time

import numpy as np
import pytest
import xarray as xr
import zarr

from support import failio, objects, preload, tool

from . import files as F
from .test_kills import seen


def objects_of(folder):
    return {k: v for k, v in failio.contents(folder).items() if v is not None}


def append(*args, **kw):
    return tool.nc2zarr("-q", "--append", "time", *args, **kw)


def xarray_appends(days, store, **kw):
    with F.open_all(days) as ds:
        ds.load().drop_encoding().drop_vars(["lat", "lon", "ground"]).to_zarr(store, append_dim="time", **kw)


def grown_by_xarray(tmp_path, n=6, **kw):
    """Of the first day, and the others appended: each has chunks of its own."""
    days, store = F.days(tmp_path, 0, n), tmp_path / "s.zarr"
    F.by_xarray(days[:1], store, chunks=(2, 5, 7), **kw)
    xarray_appends(days[1:], store, consolidated=kw.get("consolidated", True))
    assert zarr.open_group(store, mode="r")["time"].chunks == (1,)
    return days, store


def names(store, array="time"):
    return sorted(str(p.relative_to(store / array)) for p in (store / array).rglob("*") if p.is_file() and p.name != "zarr.json")


def note(store):
    return store.with_name(f"{store.name}.chunkmill") / "append-left"


def let_an_hour_pass(store):
    os.utime(note(store), (time.time() - 3601,) * 2)


@pytest.mark.parametrize("consolidated", [True, False])
def test_of_xarray(consolidated, tmp_path):
    """Repaired, read by those who held the old metadata, appended by xarray, and by us again."""
    days, store = grown_by_xarray(tmp_path, consolidated=consolidated)
    more = F.days(tmp_path, 6, 12)
    before = zarr.open_group(store, mode="r")
    held = before["time"]
    with xr.open_zarr(store, consolidated=consolidated, decode_times=False, chunks=None) as lazy:
        plan = tool.nc2zarr("--append", "time", "--dry-run", "--json", *more[:4], store).json()
        assert names(store) == [f"c/{i}" for i in range(6)]
        done = tool.nc2zarr("--append", "time", "--verify", "full", "--json", *more[:4], store).json()
        for report in (plan, done):
            assert {v["name"]: v["chunks"] for v in report["variables"]}["time"] == [8192]
        np.testing.assert_array_equal(lazy["time"].values, np.arange(6.0))
    np.testing.assert_array_equal(held[...], np.arange(6.0))
    if consolidated:
        np.testing.assert_array_equal(before["time"][...], np.arange(6.0))
    F.same(store, days + more[:4], consolidated=consolidated)
    assert names(store) == ["c.0", *(f"c/{i}" for i in range(6))]
    xarray_appends(more[4:8], store, consolidated=consolidated)
    F.same(store, days + more[:8], consolidated=consolidated)
    append(*more[8:10], store).ok()
    assert "c/0" in names(store), "readers of the old document have an hour"
    let_an_hour_pass(store)
    append(*more[10:], store).ok()
    assert names(store) == ["c.0"] and not note(store).exists()
    F.same(store, days + more, consolidated=consolidated)


def test_an_hour_of_which_clock(tmp_path):
    """Not of one that jumps by an hour from call to call; and it begins when readers see the new document, however long the writing took."""
    days, store = grown_by_xarray(tmp_path, 3)
    more, env = F.days(tmp_path, 3, 3), failio.environment(store, tmp_path / "state", "rename", 1, "stop")
    first = subprocess.Popen([tool.program("nc2zarr"), "-q", "-j1", "--append", "time", more[0], store], env=tool.environment() | env)
    assert os.WIFSTOPPED(os.waitpid(first.pid, os.WUNTRACED)[1])
    let_an_hour_pass(store)
    first.send_signal(signal.SIGCONT)
    assert first.wait(300) == 0 and "c/0" in names(store)
    for new in more[1:]:
        append(new, store, env={"LD_PRELOAD": str(preload.library("jumpclock"))}).ok()
        assert "c/0" in names(store)
    F.same(store, days + more)


@pytest.mark.parametrize("encoding", [{"name": "v2", "separator": "."}, {"name": "v2", "separator": "/"}, {"name": "default", "separator": "."}], ids=str)
def test_names_of_chunks(encoding, tmp_path):
    """Whatever names the old chunks had, the new one has another."""
    days, store = F.days(tmp_path, 0, 4), tmp_path / "s.zarr"
    tool.nc2zarr("-q", *days, store).ok()
    shutil.rmtree(store / "time")
    t = zarr.open_group(store).create_array("time", shape=(4,), chunks=(1,), dtype="f8", dimension_names=["time"], chunk_key_encoding=encoding)
    t[:] = np.arange(4.0)
    t.attrs.update({"units": F.UNITS, "calendar": "standard", "standard_name": "time", "bounds": "time_bnds"})
    zarr.consolidate_metadata(store)
    old = names(store)
    more = F.days(tmp_path, 4, 2)
    append("--recheck", more[0], store).ok()
    F.same(store, days + more[:1])
    new = set(names(store)) - set(old)
    assert len(new) == 1 and set(old) < set(names(store))
    let_an_hour_pass(store)
    append(more[1], store).ok()
    assert set(names(store)) == new
    F.same(store, days + more)


def test_in_a_group(tmp_path):
    """rechunk appends by the same rule; a coordinate in a group, and one that is short enough."""
    p, store = tmp_path / "a.nc", tmp_path / "b.zarr"
    import netCDF4

    for n in (5, 70, 80):
        F.day(p, 0, n)
        with netCDF4.Dataset(p, "a") as nc:
            g = nc.createGroup("g")
            g.createDimension("time", None)
            g.createVariable("time", "f8", ("time",))[:] = np.arange(n)
            g.createVariable("x", "f4", ("time",))[:] = np.arange(n) * 2
        how = ["--chunks", "time:time=2", "--chunks", "g/time:1"] if n == 5 else ["--append", "time", "--verify", "full"]
        tool.run("rechunk", "-q", *how, p, store).ok()
        chunks = {name: zarr.open_group(store, mode="r")[name].chunks for name in ("time", "g/time")}
        assert chunks == {"time": (2,), "g/time": (1,) if n == 5 else (8192,)}, n
    assert names(store, "g/time")[0] == "c.0"


def test_many_chunks(tmp_path):
    """More than 64 of them are too many, whatever they hold."""
    days, store = F.days(tmp_path, 0, 130, each=65), tmp_path / "s.zarr"
    tool.nc2zarr("-q", "--chunks", "time:time=2", *days, store).ok()
    append(F.day(tmp_path / "more.nc", 130), store).ok()
    assert zarr.open_group(store)["time"].chunks == (8192,)
    F.same(store, [*days, tmp_path / "more.nc"])


def test_what_is_left_alone(tmp_path):
    """A replacement, a run that adds nothing, and Zarr 2, of which the command that helps is told."""
    days, store = grown_by_xarray(tmp_path)
    tool.nc2zarr("-q", "--replace", "time=2:3", days[2], store).ok()
    append("--recheck", *days, store).ok()
    assert zarr.open_group(store)["time"].chunks == (1,) and not note(store).exists()
    (tmp_path / "2").mkdir()
    days, store = grown_by_xarray(tmp_path / "2", zarr_format=2)
    more = F.day(tmp_path / "2" / "more.nc", 6)
    r = tool.nc2zarr("--append", "time", more, store).ok()
    command = r.err[r.err.index("rechunk --chunks ") :].split(" makes ")[0]
    assert command == f"rechunk --chunks time:8192 {store} NEW.zarr", str(r)
    F.same(store, [*days, more])
    assert zarr.open_group(store)["time"].chunks == (1,)
    tool.run(*command.replace("NEW.zarr", str(tmp_path / "new.zarr")).split()).ok()
    F.same(tmp_path / "new.zarr", [*days, more])
    assert len([p for p in (tmp_path / "new.zarr" / "time").iterdir() if not p.name.startswith(".")]) == 1


@pytest.mark.long(ci=1)
def test_a_run_that_failed(tmp_path):
    """Steps that differ are found before anything is written; a disk that is full, while it is: nothing stays of either."""
    days, store = grown_by_xarray(tmp_path)
    late = F.day(tmp_path / "late.nc", 5, 3, data=F.values(5, 3) + 1)
    before = objects_of(store)
    append(late, store).fails(1, "late.nc", "differ")
    assert objects_of(store) == before and not note(store).exists()
    more = F.days(tmp_path, 6, 3)
    root, top = tmp_path / "work", tmp_path / "top"
    top.mkdir()
    store.rename(top / "s.zarr")
    command = ["-q", "-j", "1", "--verify", "none", "--append", "time", *more, root / "s.zarr"]
    failio.renew(top, root)
    whole = failio.inject("nc2zarr", *command, root=root, state=tmp_path / "state")
    for nth in range(1, whole.counts["rename"] + 1):
        failio.renew(top, root)
        r = failio.inject("nc2zarr", *command, root=root, state=tmp_path / "state", kind="rename", nth=nth, way="ENOSPC")
        if r.done.status == 0:
            continue
        view = seen(root / "s.zarr")
        assert len(view["time"]) in (8 * 6, 8 * 9)
        if not list((root / "s.zarr.chunkmill").glob("append*")):  # it could tidy
            assert objects_of(root / "s.zarr") == before, (nth, r.what)
        tool.nc2zarr(*command).ok()
        F.same(root / "s.zarr", days + more)


@pytest.mark.long(ci=1)
def test_overwritten(tmp_path):
    """Killed before any rename, then begun anew: chunks of both names go."""
    days, store = grown_by_xarray(tmp_path)
    more = F.days(tmp_path, 6, 3)
    root, top = tmp_path / "work", tmp_path / "top"
    top.mkdir()
    store.rename(top / "s.zarr")
    store = root / "s.zarr"
    command = ["-q", "-j", "1", "--verify", "none", "--append", "time", *more, store]
    failio.renew(top, root)
    whole = failio.inject("nc2zarr", *command, root=root, state=tmp_path / "state")
    assert "c.0" in names(store)
    for nth in range(1, whole.counts["rename"] + 2):
        failio.renew(top, root)
        failio.inject("nc2zarr", *command, root=root, state=tmp_path / "state", kind="rename", nth=nth, way="kill")
        tool.nc2zarr("-q", "--overwrite", days[0], store).ok()
        assert names(store) == ["c/0"], nth
        F.same(store, days[:1])
        assert not note(store).exists()


@pytest.mark.parametrize("text", ["", "{}", '{"arrays": [{}]}', '{"arrays": [{"path": "../x", "chunk": 1, "separator": "."}]}', "[" * 100])
def test_a_note_that_is_damaged(text, tmp_path):
    """It is an error with its name, or of no use; nothing is removed by it."""
    days, store = grown_by_xarray(tmp_path)
    more = F.days(tmp_path, 6, 2)
    append(more[0], store).ok()
    note(store).write_text(text)
    before = failio.contents(store)
    r = append(more[1], store)
    if r.status:
        assert r.status == 1 and "append-left" in r.err, str(r)
        assert failio.contents(store) == before
        return
    F.same(store, days + more)
    assert set(before) <= set(failio.contents(store))


def test_in_a_bucket(tmp_path):
    """The same objects, and the same hour."""
    server = objects.Server()
    try:
        env = server.environment()
        days, store = grown_by_xarray(tmp_path)
        server.put_folder(store, "s.zarr")
        more = F.days(tmp_path, 6, 2)
        append("--verify", "full", more[0], "s3://bucket/s.zarr", env=env).ok()
        append("--verify", "full", more[0], store).ok()
        assert set(server.keys("s.zarr/")) == {f"s.zarr/{k}" for k in objects_of(store)}
        key = "s.zarr.chunkmill/append-left"
        server.times[key] -= 3601
        append(more[1], "s3://bucket/s.zarr", env=env).ok()
        assert server.keys("s.zarr/time/") == ["s.zarr/time/c.0", "s.zarr/time/zarr.json"] and key not in server.objects
        server.get_folder("s.zarr", tmp_path / "got")
        F.same(tmp_path / "got", days + more)
        assert seen(tmp_path / "got")
    finally:
        server.close()
