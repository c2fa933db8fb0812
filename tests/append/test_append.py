"""Files are added to a store that nc2zarr or xarray made: it is then what one conversion of all files makes."""

import hashlib
import json
import os
import shutil

import google_crc32c
import numpy as np
import pytest
import xarray as xr
import zarr

from support import failio, rechunked, tool

from . import files as F

LAYOUTS = {
    "v3": ["--chunks", "time=4,lat=3"],
    "v3, whole chunks": ["--chunks", "time=5"],
    "shards": ["--chunks", "time=2", "--shards", "time=8"],
    "shards in space": ["--chunks", "time=1,lat=2,lon=2", "--shards", "time=6,lat=4,lon=4"],
    "v2": ["--zarr-format", "2", "--chunks", "time=4,lon=3"],
    "v3, not consolidated": ["--chunks", "time=4", "--no-consolidate"],
    "v2, not consolidated": ["--zarr-format", "2", "--chunks", "time=4", "--no-consolidate"],
    "zstd": ["--chunks", "time=3", "--codec", "zstd:5"],
}


def append(*args, **kw):
    return tool.nc2zarr("-q", "--append", "time", *args, **kw)


def same_store(got, want, layout):
    """Object by object; shards differ between any two runs of several threads."""
    if "shards" not in layout:
        a, b = failio.contents(got), failio.contents(want)
        assert set(a) == set(b)
        assert a == b
    assert tool.run("rechunk", "--digest", got).ok().out == tool.run("rechunk", "--digest", want).ok().out


@pytest.mark.few(2)
@pytest.mark.parametrize("steps", [(7, 1, 1, 1, 3), (1, 1, 1), (8, 8, 3), (5, 20)])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_equals_one_conversion(layout, steps, tmp_path):
    files, first = [], 0
    for n in steps:
        files.append(F.days(tmp_path, first, n))
        first += n
    store, want = tmp_path / "s.zarr", tmp_path / "want.zarr"
    everything = [p for some in files for p in some]
    tool.nc2zarr("-q", *LAYOUTS[layout], everything[0], everything[0] if len(files[0]) == 1 else files[0][-1], *files[0], store).ok()
    for some in files[1:]:
        append("--verify", "full", *some, store).ok()
    tool.nc2zarr("-q", *LAYOUTS[layout], *everything, want).ok()
    if len(files[0]) > 1:
        same_store(store, want, layout)
    F.same(store, everything, consolidated="not" not in layout)
    if "v2" not in layout:
        for name, a in zarr.open_group(store, mode="r", use_consolidated=False).arrays():
            assert a.shape == zarr.open_group(want, mode="r")[name].shape


def attributes(store, fmt):
    """Of the root and of all arrays, as they are written."""
    found = {}
    for p in sorted(store.rglob("zarr.json" if fmt == 3 else ".zattrs")):
        document = json.loads(p.read_text())
        found[str(p)] = document["attributes"] if fmt == 3 else document
    return found


@pytest.mark.few(2)
@pytest.mark.parametrize("fmt", [2, 3])
@pytest.mark.parametrize("shards", [False, True])
@pytest.mark.parametrize("consolidated", [True, False])
def test_a_store_of_xarray(fmt, shards, consolidated, tmp_path):
    """Made by xarray, appended by us, opened and appended by xarray again, and by us once more."""
    if shards and fmt == 2:
        pytest.skip("version 2 has none")
    paths = F.days(tmp_path, 0, 20)
    store = tmp_path / "s.zarr"
    F.by_xarray(paths[:6], store, chunks=(2, 5, 7), shards=(8, 5, 7) if shards else None, zarr_format=fmt, consolidated=consolidated)
    before = attributes(store, fmt)
    append("--verify", "full", *paths[6:11], store).ok()
    assert attributes(store, fmt) == before
    F.same(store, paths[:11], consolidated=consolidated)
    with F.open_all(paths[11:15]) as ds:
        ds = ds.load().drop_encoding()
        ds.drop_vars(["lat", "lon", "ground"]).to_zarr(store, append_dim="time", consolidated=consolidated)
    F.same(store, paths[:15], consolidated=consolidated)
    before = attributes(store, fmt)
    append("--verify", "full", *paths[15:], store).ok()
    F.same(store, paths, consolidated=consolidated)
    assert attributes(store, fmt) == before


def test_times_of_xarray_from_scratch(tmp_path):
    """xarray's own choice of units and types: int64 days since the first."""
    store = tmp_path / "s.zarr"
    when = np.datetime64("2000-01-01", "ns") + np.arange(4) * np.timedelta64(1, "D")
    ds = xr.Dataset({"tas": (("time", "lat", "lon"), F.values(0, 4))}, {"time": when})
    ds.tas.attrs.update(units="K", standard_name="air_temperature")
    ds.to_zarr(store)
    p = F.day(tmp_path / "a.nc", 4, 3, bounds=False, units="hours since 1990-01-01", fill=np.float32(np.nan))
    append(p, store, "--exclude", "lat,lon,ground", "--attrs", "first").ok()
    with xr.open_zarr(store) as got:
        np.testing.assert_array_equal(got.tas.values, F.values(0, 7))
        assert (np.diff(got.time.values) == np.timedelta64(1, "D")).all()
        assert got.time.encoding["dtype"] == "int64" and got.time.encoding["units"].startswith("days since 2000-01-01")


def test_units_are_those_of_the_store(tmp_path):
    a = F.days(tmp_path, 0, 4)
    b = [F.day(tmp_path / "x.nc", 4, 3, units="hours since 1999-01-01")]
    store = tmp_path / "s.zarr"
    tool.nc2zarr("-q", "--chunks", "time=4", *a, store).ok()
    append("--verify", "full", *b, store).ok()
    F.same(store, a + b)
    assert zarr.open_group(store)["time"].attrs["units"] == F.UNITS


def test_nightly(tmp_path):
    """The same command each night reads what is new, and nothing else."""
    here = tmp_path / "in"
    here.mkdir()
    F.days(here, 0, 5)
    store = tmp_path / "s.zarr"
    tool.nc2zarr("-q", "--chunks", "time=4", here, store).ok()
    command = ["--append", "time", "--json", f"{here}/*.nc", store]
    for night in range(5, 8):
        F.days(here, night, 1)
        report = tool.nc2zarr(*command).json()
        assert report["append"] == {"dimension": "time", "was": night, "length": night + 1, "nheld": 0, "nlisted": night}
    report = tool.nc2zarr(*command).json()
    assert report["append"]["length"] == 8 and report["append"]["nlisted"] == 8 and report["variables"] == []
    F.same(store, sorted(here.glob("*.nc")))
    # Files that are listed are not even opened: another kind of file goes unnoticed.
    state = os.stat(here / "day00001.nc")
    (here / "day00001.nc").write_bytes(bytes(state.st_size))
    os.utime(here / "day00001.nc", ns=(state.st_atime_ns, state.st_mtime_ns))
    tool.nc2zarr(*command).ok()
    r = tool.nc2zarr(*command, "--recheck")
    assert r.status == 4 and "day00001.nc" in r.out, str(r)


def test_a_listed_file_that_changed(tmp_path):
    paths = F.days(tmp_path, 0, 4)
    store = tmp_path / "s.zarr"
    tool.nc2zarr("-q", *paths, store).ok()
    before = failio.contents(tmp_path)
    os.utime(paths[1])  # what it holds is what it was
    append(*paths, store).ok()
    assert failio.contents(tmp_path) == before
    F.day(paths[2], 2, data=F.values(2, 1) + 1)
    before = failio.contents(tmp_path)
    r = append(*paths, store)
    assert r.status == 1 and "day00002.nc" in r.err and "changed" in r.err and "--recheck" in r.err, str(r)
    r = append(*paths, store, "--recheck")
    assert r.status == 1 and "day00002.nc" in r.err and "differ" in r.err, str(r)
    assert failio.contents(tmp_path) == before


def test_a_file_that_was_taken_in_part(tmp_path):
    """Behind the end of a subset files are not in the store; what lies before its beginning was not wanted."""
    paths = [F.day(tmp_path / f"{i}.nc", 4 * i, 4) for i in range(4)]
    store = tmp_path / "s.zarr"
    tool.nc2zarr("-q", "--chunks", "time=4", "--subset", "time=2:10", *paths, store).ok()
    assert F.listed(store) == [str(p) for p in paths[:2]]
    append(*paths, store).ok()
    np.testing.assert_array_equal(xr.open_zarr(store).tas.values, F.values(2, 14))


def test_a_store_that_lost_steps(tmp_path):
    """Restored from a copy, say, while the ledger stayed: files whose steps are gone are added again."""
    paths = F.days(tmp_path, 0, 6)
    store, copy = tmp_path / "s.zarr", tmp_path / "copy"
    tool.nc2zarr("-q", "--chunks", "time=2", *paths[:4], store).ok()
    shutil.copytree(store, copy)
    append(*paths[4:], store).ok()
    shutil.rmtree(store)
    copy.rename(store)
    report = tool.nc2zarr("--append", "time", "--json", *paths, store).json()
    assert report["append"] == {"dimension": "time", "was": 4, "length": 6, "nheld": 0, "nlisted": 4}
    F.same(store, paths)


@pytest.mark.parametrize("made", [[], ["--overlap", "first"]])
def test_steps_that_were_dropped(made, tmp_path):
    """A file whose steps lost to another's is read again: the next time it may win."""
    a, b = F.days(tmp_path, 0, 4), F.day(tmp_path / "x.nc", 2, 2, data=F.values(2, 2) + np.float32(0.5))
    store = tmp_path / "s.zarr"
    if made:
        tool.nc2zarr("-q", *made, *a, b, store).ok()
    else:
        tool.nc2zarr("-q", *a, store).ok()
        append("--overlap", "first", b, store).ok()
    np.testing.assert_array_equal(xr.open_zarr(store).tas.values, F.values(0, 4))
    assert F.listed(store) == [str(p) for p in a]
    append("--overlap", "last", b, store).ok()
    want = F.values(0, 4)
    want[2:] += 0.5
    np.testing.assert_array_equal(xr.open_zarr(store).tas.values, want)


def test_the_ledger_is_not_needed(tmp_path):
    """Without it the files are read, found to be there, and taken once."""
    paths = F.days(tmp_path, 0, 6)
    store, want = tmp_path / "s.zarr", tmp_path / "w.zarr"
    tool.nc2zarr("-q", "--chunks", "time=4", *paths[:4], store).ok()
    tool.nc2zarr("-q", "--chunks", "time=4", *paths, want).ok()
    shutil.rmtree(f"{store}.chunkmill")
    append(*paths, store).ok()
    same_store(store, want, "v3")


def ledger_line(payload):
    return b"%08x %s\n" % (google_crc32c.value(payload), payload)


def test_a_ledger_that_was_cut_is_refused(tmp_path):
    """At any place, behind whole lines too; without it the files are read again."""
    paths = F.days(tmp_path, 0, 5)
    store = tmp_path / "s.zarr"
    tool.nc2zarr("-q", *paths[:4], store).ok()
    ledger = tmp_path / "s.zarr.chunkmill" / "ledger"
    whole = ledger.read_bytes()
    lines = whole.splitlines(keepends=True)
    assert len(lines) == 6 and all(line == ledger_line(line[9:-1]) for line in lines)
    ends = np.cumsum([len(line) for line in lines[:-1]])
    before = failio.contents(store)
    for at in [0, *ends, *(ends + 20), len(whole) - 1]:
        ledger.write_bytes(whole[:at])
        r = append(*paths, store)
        assert r.status == 1 and r.err.count("\n") == 1, (at, str(r))
        assert "s.zarr.chunkmill: the ledger is cut short or damaged; move it away" in r.err, (at, str(r))
        assert failio.contents(store) == before and ledger.read_bytes() == whole[:at]
    ledger.write_bytes(whole + lines[1])
    assert "cut short or damaged" in append(*paths, store).err
    ledger.unlink()
    append(*paths, store).ok()
    F.same(store, paths)


def test_a_ledger_of_the_first_version(tmp_path):
    """It has no last line, and gets one with the next file."""
    paths = F.days(tmp_path, 0, 5)
    store = tmp_path / "s.zarr"
    tool.nc2zarr("-q", *paths[:4], store).ok()
    ledger = tmp_path / "s.zarr.chunkmill" / "ledger"
    lines = ledger.read_bytes().splitlines(keepends=True)
    ledger.write_bytes(b"".join([ledger_line(b'{"chunkmill":"ledger","version":1}'), *lines[1:-1]]))
    report = tool.nc2zarr("--append", "time", "--json", *paths, store).json()
    assert report["append"]["nlisted"] == 4
    now = ledger.read_bytes().splitlines(keepends=True)
    assert now[:5] == lines[:5] and len(now) == 7
    F.same(store, paths)


def test_a_ledger_with_other_digests(tmp_path):
    """Earlier versions wrote SHA-256: lines with it are kept and believed, new ones have XXH3."""
    paths = F.days(tmp_path, 0, 5)
    store = tmp_path / "s.zarr"
    tool.nc2zarr("-q", *paths[:4], store).ok()
    ledger = tmp_path / "s.zarr.chunkmill" / "ledger"
    head, *lines, end = ledger.read_bytes().splitlines(keepends=True)
    files = [json.loads(line[9:]) for line in lines]
    assert all(set(f) == {"path", "bytes", "mtime_ns", "xxh128", "along", "end"} and len(f["xxh128"]) == 32 for f in files)
    for f in files:
        del f["xxh128"]
        f["sha256"] = hashlib.sha256(open(f["path"], "rb").read()).hexdigest()
    old = [ledger_line(json.dumps(f, separators=(",", ":")).encode()) for f in files]
    ledger.write_bytes(b"".join([head, *old, end]))
    os.utime(paths[1])  # what it holds is what it was
    report = tool.nc2zarr("--append", "time", "--json", *paths, store).json()
    assert report["append"]["nlisted"] == 4
    now = ledger.read_bytes().splitlines(keepends=True)
    assert now[:5] == [head, *old] and b"xxh128" in now[5] and len(now) == 7
    F.same(store, paths)
    F.day(paths[2], 2, data=F.values(2, 1) + 1)
    r = append(*paths, store)
    assert r.status == 1 and "day00002.nc" in r.err and "changed" in r.err, str(r)


def test_digests_of_the_certificate(tmp_path):
    paths = F.days(tmp_path, 0, 3)
    tool.nc2zarr("-q", "--verify", "full", "--certificate", tmp_path / "c.json", *paths, tmp_path / "s.zarr").ok()
    inputs = json.loads((tmp_path / "c.json").read_text())["inputs"]
    assert [i["sha256"] for i in inputs] == [hashlib.sha256(open(p, "rb").read()).hexdigest() for p in paths]
    assert b"sha256" not in (tmp_path / "s.zarr.chunkmill" / "ledger").read_bytes()


def test_an_overwritten_store_has_no_old_ledger(tmp_path):
    paths = F.days(tmp_path, 0, 4)
    store = tmp_path / "s.zarr"
    tool.nc2zarr("-q", *paths, store).ok()
    tool.nc2zarr("-q", "--overwrite", paths[0], store).ok()
    assert not os.path.exists(f"{store}.chunkmill/ledger")
    append(*paths, store).ok()
    F.same(store, paths)


def test_fill_takes_objects_away(tmp_path):
    """A chunk that is now all fill has no object, whatever lay under its name."""
    a = F.days(tmp_path, 0, 4)
    nothing = np.full((4, F.NLAT, F.NLON), 1e20, "f4")
    b = [F.day(tmp_path / "nothing.nc", 4, 4, data=nothing)]
    store = tmp_path / "s.zarr"
    tool.nc2zarr("-q", "--chunks", "time=4", *a, store).ok()
    foreign = store / "tas" / "c" / "1" / "0" / "0"
    foreign.parent.mkdir(parents=True)
    shutil.copy(store / "tas" / "c" / "0" / "0" / "0", foreign)
    append("--verify", "full", *b, store).ok()
    assert not foreign.exists()
    assert np.isnan(xr.open_zarr(store).tas.values[4:]).all()


@pytest.mark.parametrize("mode", ["first", "last", "error"])
def test_overlap(mode, tmp_path):
    a = F.days(tmp_path, 0, 6)
    b = [F.day(tmp_path / "late.nc", 4, 4, data=F.values(4, 4) + np.float32(0.5))]
    store = tmp_path / "s.zarr"
    tool.nc2zarr("-q", "--chunks", "time=2,lat=5,lon=7", *a, store).ok()
    before = failio.contents(store)
    r = append(*b, store, "--overlap", mode)
    if mode == "error":
        assert r.status == 1 and "late.nc" in r.err and "differ" in r.err, str(r)
        assert failio.contents(store) == before
        return
    r.ok()
    want = F.values(0, 8)
    want[6:] += 0.5
    if mode == "last":
        want[4:6] += 0.5
    np.testing.assert_array_equal(xr.open_zarr(store).tas.values, want)


def test_hold(tmp_path):
    """Steps that do not fill a shard wait, with one length for all variables; no file is lost meanwhile."""
    paths = F.days(tmp_path, 0, 21)
    store, want = tmp_path / "s.zarr", tmp_path / "w.zarr"
    layout = ["--chunks", "time=2", "--shards", "time=8"]
    tool.nc2zarr("-q", *layout, *paths[:8], store).ok()
    lengths = []
    for last in (9, 15, 16, 20):
        report = tool.nc2zarr("--append", "time", "--append-rest", "hold", "--json", *paths[:last], store).json()["append"]
        assert report["length"] + report["nheld"] == last
        lengths.append(report["length"])
        assert {a.shape[0] for n, a in zarr.open_group(store, mode="r").arrays() if n in ("tas", "time", "time_bnds")} == {report["length"]}
    assert lengths == [8, 8, 16, 16]
    append(*paths, store).ok()
    tool.nc2zarr("-q", *layout, *paths, want).ok()
    same_store(store, want, "shards")


def test_memory_and_threads(tmp_path):
    paths = F.days(tmp_path, 0, 30)
    want = None
    for threads in ("1", "4"):
        store = tmp_path / f"{threads}.zarr"
        tool.nc2zarr("-q", "-j", threads, "--chunks", "time=8,lat=2", *paths[:5], store).ok()
        append("-j", threads, *paths[5:], store).ok()
        want = want or failio.contents(store)
        assert failio.contents(store) == want


def test_along_another_axis(tmp_path):
    """The dimension that grows need not be the first."""
    paths = F.days(tmp_path, 0, 9, dims=("lat", "time", "lon"))
    store, want = tmp_path / "s.zarr", tmp_path / "w.zarr"
    layout = ["--chunks", "lat=2,time=4,lon=3"]
    tool.nc2zarr("-q", *layout, *paths[:4], store).ok()
    for i in range(4, 9, 2):
        append("--verify", "full", *paths[i : i + 2], store).ok()
    tool.nc2zarr("-q", *layout, *paths, want).ok()
    same_store(store, want, "v3")


def test_dry_run_writes_nothing(tmp_path):
    paths = F.days(tmp_path, 0, 6)
    store = tmp_path / "s.zarr"
    tool.nc2zarr("-q", *paths[:3], store).ok()
    before = rechunked.files(tmp_path)
    report = tool.nc2zarr("--append", "time", "--dry-run", "--json", *paths, store).json()
    assert report["outcome"] == "planned" and report["append"]["length"] == 6
    assert rechunked.files(tmp_path) == before


def test_who_may_read_the_store_still_may(tmp_path):
    """Documents and chunks that are replaced keep their modes, whatever the umask of the night is."""
    paths = F.days(tmp_path, 0, 3)
    store = tmp_path / "s.zarr"
    tool.nc2zarr("-q", "--chunks", "time=4", *paths[:2], store).ok()
    before = {p: 0o664 if "tas" in str(p) else 0o640 for p in store.rglob("*") if p.is_file()}
    for p, mode in before.items():
        p.chmod(mode)
    umask = os.umask(0o077)
    try:
        append(*paths, store).ok()
    finally:
        os.umask(umask)
    assert {p: p.stat().st_mode & 0o777 for p in before} == before
    F.same(store, paths)
