"""A store whose chunks differ in length grows by chunks of the files' own lengths."""

import json
import os
import shutil
import signal

import numpy as np
import pytest
import zarr

from support import failio, paths, rectilinear, tool
from support.rectilinear import lengths_of, month_file, month_values, months

KEEP = ["-q", "--codec", "keep", "--grid", "rectilinear"]


def append(*args, **kw):
    return tool.nc2zarr("-q", "--append", "time", *args, **kw)


def values(store, name="tas"):
    """Through a store with a regular grid, which every zarr-python reads."""
    plain = store.parent / f"{store.name}-plain"
    shutil.rmtree(plain, ignore_errors=True)
    tool.run("rechunk", "-q", "--chunks", "auto", "--shards", "none", store, plain).ok()
    return zarr.open_group(plain, mode="r")[name][...]


def digests(store):
    return tool.run("rechunk", "--digest", store).ok().out.replace(str(store), "")


def beside(store):
    return sorted(p.name for p in (store.parent / f"{store.name}.chunkmill").iterdir())


@pytest.mark.parametrize("codec", ["keep", "zstd"])
@pytest.mark.parametrize("steps", [(2, 1, 1, 1), (2, 3), (3, 1, 2)])
@pytest.mark.few(3)
def test_equals_one_conversion(tmp_path, codec, steps):
    """Object by object; stored bytes are those of the files where the codec is theirs."""
    nc = months(tmp_path, sum(steps))
    how = ["-q", "--codec", codec, "--grid", "rectilinear"]
    store, want, at = tmp_path / "s.zarr", tmp_path / "want.zarr", steps[0]
    tool.nc2zarr(*how, *nc[:at], store).ok()
    for n in steps[1:]:
        before = failio.contents(store)
        report = tool.nc2zarr("--append", "time", "--json", "--verify", "full", *nc[at : at + n], store).json()
        tas = next(v for v in report["variables"] if v["name"] == "tas")
        assert tas["passed_through"] == (codec == "keep")
        assert tas["chunks"] == [31, 3] and tas["shortest_chunks"] == [28, 3]
        after = failio.contents(store)
        assert all(after[name] == was for name, was in before.items() if "tas/c/" in name)
        at += n
    tool.nc2zarr(*how, *nc, want).ok()
    assert failio.contents(store) == failio.contents(want)
    tool.nc2zarr("--check", *nc, store).ok()
    assert np.array_equal(values(store), month_values(0, len(values(store, "time"))))


def test_many_chunks_in_time_a_file(tmp_path):
    """Weeks of a file of 30 days, and then days."""
    nc = [month_file(tmp_path / "a.nc", 0, 30, 7), month_file(tmp_path / "b.nc", 30, 4, 2), month_file(tmp_path / "c.nc", 34, 3, 1)]
    store = tmp_path / "s.zarr"
    rectilinear.write(store, "tas", month_values(0, 30), [[10, 20], 3], ["time", "x"])
    rectilinear.write(store, "time", np.arange(30.0), [[30]], ["time"])
    names = json.loads((store / "time" / "zarr.json").read_text())
    names["attributes"]["units"] = "days since 2001-01-01"
    (store / "time" / "zarr.json").write_text(json.dumps(names))
    append("--verify", "full", nc[1], nc[2], store).ok()
    assert lengths_of(store, "tas") == [10, 20, [2, 2], [1, 3]]
    assert np.array_equal(values(store), month_values(0, 37))


def test_files_cut_otherwise_are_recoded(tmp_path):
    """Contiguous ones give a chunk each, as do those with other chunks in space; a chunk that reaches past its file is cut."""
    nc = months(tmp_path, 2)
    store = tmp_path / "s.zarr"
    tool.nc2zarr(*KEEP, *nc, store).ok()
    new = [month_file(tmp_path / "c.nc", 59, 31, 0), month_file(tmp_path / "d.nc", 90, 30, 30, columns=2)]
    append("--verify", "full", *new, store).ok()
    assert lengths_of(store, "tas") == [31, 28, 31, 30]
    append("--verify", "full", month_file(tmp_path / "e.nc", 120, 5, 8, unlimited=True), store).ok()
    append("--verify", "full", month_file(tmp_path / "f.nc", 125, 100, 0), store).ok()
    assert lengths_of(store, "tas") == [31, 28, 31, 30, 5, [31, 3], 7]
    assert np.array_equal(values(store), month_values(0, 225))


def room(tmp_path, lengths, n, time=(100,)):
    """A store of N days in chunks of LENGTHS, which may reach past them."""
    store = tmp_path / "s.zarr"
    rectilinear.write(store, "tas", month_values(0, n), [list(lengths), 3], ["time", "x"])
    rectilinear.write(store, "time", np.arange(float(n)), [list(time)], ["time"])
    d = json.loads((store / "time" / "zarr.json").read_text())
    d["attributes"]["units"] = "days since 2001-01-01"
    (store / "time" / "zarr.json").write_text(json.dumps(d))
    return store


@pytest.mark.parametrize(
    "lengths, n, steps, want",
    [
        ([5, 4], 7, [1], [5, 4]),
        ([5, 4], 7, [2], [5, 4]),
        ([5, 4], 7, [4], [5, 4, 2]),
        ([5, 4], 7, [4, 3], [5, 4, 2, 3]),
        ([5, 4, 9], 9, [3], [5, 4, 3]),
        ([4, 4], 8, [5], [[4, 2], 5]),
        ([4, 4], 7, [5], [[4, 3]]),
        ([8], 8, [8, 3], [[8, 2], 3]),
    ],
)
@pytest.mark.every
def test_a_last_chunk_is_filled_first(tmp_path, lengths, n, steps, want):
    """And a list of equal lengths gets longer, too; what it has behind the array is no chunk."""
    store = room(tmp_path, lengths, n)
    at = n
    for k, days in enumerate(steps):
        append("--verify", "full", month_file(tmp_path / f"{k}.nc", at, days, days), store).ok()
        at += days
    assert lengths_of(store, "tas") == want
    assert lengths_of(store, "time") == [100]
    assert np.array_equal(values(store), month_values(0, at))


def test_a_coordinate_of_one_value_a_chunk(tmp_path):
    store = room(tmp_path, [4, 2], 6, time=[1] * 6)
    append(month_file(tmp_path / "a.nc", 6, 3, 3), store).ok()
    assert json.loads((store / "time" / "zarr.json").read_text())["chunk_grid"]["name"] == "regular"
    assert lengths_of(store, "tas") == [4, 2, 3] and np.array_equal(values(store, "time"), np.arange(9.0))
    append(month_file(tmp_path / "b.nc", 9, 2, 2), store).ok()
    assert lengths_of(store, "tas") == [4, 2, 3, 2] and np.array_equal(values(store), month_values(0, 11))


@pytest.mark.parametrize("range, files", [("2001-02-01..2001-02-28", [2]), ("2001-01-01..2001-03-31", [1, 2, 3])])
def test_replaced(tmp_path, range, files):
    """Chunks that the range touches keep their lengths, and the others their bytes."""
    store = tmp_path / "s.zarr"
    tool.nc2zarr(*KEEP, *months(tmp_path, 4), store).ok()
    (tmp_path / "new").mkdir()
    new = [months(tmp_path / "new", 1, first=k, add=0.5)[0] for k in files]
    before = failio.contents(store)
    tool.nc2zarr("-q", "--replace", f"time={range}", "--verify", "full", *new, store).ok()
    after = failio.contents(store)
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {f"tas/c/{k - 1}/{x}" for k in files for x in (0, 1)}
    want = month_values(0, 120)
    first, last = {1: 0, 2: 31}[files[0]], {2: 59, 3: 90}[files[-1]]
    want[first:last] += 0.5
    assert np.array_equal(values(store), want)


def test_replaced_in_the_middle_of_chunks(tmp_path):
    store = tmp_path / "s.zarr"
    tool.nc2zarr(*KEEP, *months(tmp_path, 3), store).ok()
    new = month_file(tmp_path / "new.nc", 25, 10, 10, add=0.5)
    tool.nc2zarr("-q", "--replace", "time=25:35", "--verify", "full", new, store).ok()
    want = month_values(0, 90)
    want[25:35] += 0.5
    assert lengths_of(store, "tas") == [31, 28, 31] and np.array_equal(values(store), want)


def test_a_source_that_grew(tmp_path):
    """rechunk adds chunks of the source's lengths."""
    nc = months(tmp_path, 5)
    a, b = tmp_path / "a.zarr", tmp_path / "b.zarr"
    tool.nc2zarr(*KEEP, *nc[:2], a).ok()
    tool.run("rechunk", "-q", "--grid", "rectilinear", a, b).ok()
    append(*nc[2:], a).ok()
    tool.run("rechunk", "-q", "--append", "time", "--verify", "full", a, b).ok()
    assert lengths_of(b, "tas") == [31, 28, 31, 30, 31] and digests(a) == digests(b)
    assert np.array_equal(values(b), month_values(0, 151))


def test_a_dry_run_and_statistics(tmp_path):
    nc = months(tmp_path, 3)
    store = tmp_path / "s.zarr"
    tool.nc2zarr(*KEEP, "--statistics", *nc[:2], store).ok()
    before = failio.contents(tmp_path)
    report = tool.nc2zarr("--append", "time", "--dry-run", "--json", nc[2], store).json()
    tas = next(v for v in report["variables"] if v["name"] == "tas")
    assert report["append"]["length"] == 90 and tas["shape"] == [90, 6] and tas["passed_through"] and tas["nchunks"] == 2
    assert failio.contents(tmp_path) == before
    done = tool.nc2zarr("--append", "time", nc[2], store).ok()
    assert "its statistics were counted before this change, and were removed" in done.said
    assert not (tmp_path / "s.zarr.statistics.zarr").exists()
    assert tool.nc2zarr("--append", "time", "--json", *nc, store).json()["append"]["length"] == 90


def test_held_back(tmp_path):
    """Nothing is where all chunks are as long as what they take."""
    nc = months(tmp_path, 3)
    store = tmp_path / "s.zarr"
    tool.nc2zarr(*KEEP, *nc[:2], store).ok()
    report = tool.nc2zarr("--append", "time", "--append-rest", "hold", "--json", nc[2], store).json()
    assert report["append"]["nheld"] == 0 and report["append"]["length"] == 90


def shard(document):
    document["codecs"] = [
        {
            "name": "sharding_indexed",
            "configuration": {
                "chunk_shape": [1, 3],
                "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
                "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
            },
        }
    ]


def cut_columns(document):
    document["chunk_grid"]["configuration"]["chunk_shapes"][1] = [4, 2]


REFUSED = [
    (shard, [], "array tas: cannot grow: its shards differ in length (a rectilinear chunk grid); rechunk makes a store with a regular one"),
    (cut_columns, [], "array tas: cannot grow: its chunks differ in length along x (a rectilinear chunk grid), and may along time alone"),
    (None, ["--part", "1/2"], "array tas has a rectilinear chunk grid, to which one process adds"),
    (None, ["--grid", "rectilinear"], "a store that is changed in place keeps its layout"),
]


@pytest.mark.parametrize("change, options, words", REFUSED)
@pytest.mark.every
def test_refused(tmp_path, change, options, words):
    nc = months(tmp_path, 3)
    store = room(tmp_path, [31, 28], 59)
    if change:
        d = json.loads((store / "tas" / "zarr.json").read_text())
        change(d)
        (store / "tas" / "zarr.json").write_text(json.dumps(d))
        shutil.rmtree(store / "tas" / "c")  # they were made for another grid
    before = failio.contents(store)
    done = tool.nc2zarr("--append", "time", *options, nc[2], store)
    assert done.status != 0 and words in done.said, str(done)
    assert failio.contents(store) == before


# ---- kills ----


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ("rename", "unlink", "write"))
@pytest.mark.parametrize("way", ["append", "replace", "overlap"])
def test_killed(tmp_path, kind, way):
    """Readers see the old dataset or the new one, or what every other command refuses; the same command completes it."""
    root, state, old = tmp_path / "work", tmp_path / "state", tmp_path / "old"
    old.mkdir()
    nc = months(tmp_path, 4)
    tool.nc2zarr(*KEEP, *nc[:2], old / "s.zarr").ok()
    store = root / "s.zarr"
    command = ["-q", "-j", "1", "--verify", "none"]
    again = month_file(tmp_path / "n.nc", 25, 10, 10, add=7)
    command += {
        "append": ["--append", "time", *nc[2:], store],
        "replace": ["--replace", "time=25:35", again, store],
        "overlap": ["--append", "time", "--overlap", "last", again, store],
    }[way]
    failio.renew(old, root)
    was = digests(store)
    whole = failio.inject("nc2zarr", *command, root=root, state=state)
    whole.done.ok()
    new, want = digests(store), failio.contents(store)
    for nth in failio.spread(whole.counts[kind], 200 if paths.LONG else 8):
        failio.renew(old, root)
        killed = failio.inject("nc2zarr", *command, root=root, state=state, kind=kind, nth=nth, way="kill")
        assert killed.done.status in (-signal.SIGKILL, 128 + signal.SIGKILL), str(killed.done)
        if way == "append":
            assert digests(store) in (was, new), (kind, nth, killed.what)
        else:
            other = tool.nc2zarr("-q", "--append", "time", "--dry-run", nc[2], store)
            assert digests(store) in (was, new) or "time=25:35 was stopped half-way" in other.err, (kind, nth, killed.what)
        tool.nc2zarr(*command).ok()
        assert failio.contents(store) == want, (kind, nth, killed.what)
        assert beside(store) == ["ledger"], (kind, nth)


def test_killed_then_one_with_fewer_chunks(tmp_path):
    """Chunks behind the end that a killed run left are removed, as many as its mark says."""
    root, state = tmp_path / "work", tmp_path / "state"
    root.mkdir()
    nc = months(tmp_path, 3)
    store = root / "s.zarr"
    tool.nc2zarr(*KEEP, *nc[:2], store).ok()
    days = month_file(tmp_path / "days.nc", 59, 31, 1)
    command = ["-q", "-j", "1", "--verify", "none", "--append", "time"]
    nth = 50  # of 62 chunks
    killed = failio.inject("nc2zarr", *command, days, store, root=root, state=state, kind="rename", nth=nth, way="kill")
    assert killed.done.status != 0 and len(os.listdir(store / "tas" / "c")) > 10
    assert (root / "s.zarr.chunkmill" / "append-begun").read_text() == "90 33\n"
    tool.nc2zarr(*command, nc[2], store).ok()
    assert sorted(p.parent.name for p in (store / "tas" / "c").glob("*/0")) == ["0", "1", "2"] and beside(store) == ["ledger"]
    assert lengths_of(store, "tas") == [31, 28, 31] and np.array_equal(values(store), month_values(0, 90))
