"""Killed before every rename, link, unlink and write: readers see the old dataset or the new one."""

import signal

import numpy as np
import pytest
import xarray as xr
import zarr

from support import failio, paths, tool

from . import files as F


def seen(store):
    """The store as readers of consolidated metadata see it."""
    with xr.open_zarr(store, consolidated=True, chunks=None) as ds:
        return {n: v.values.tobytes() for n, v in ds.load().variables.items()}


@pytest.fixture(scope="module", params=F.KILLED)
def case(request, tmp_path_factory):
    """A store of 6 days, 7 more of which the first two are all fill, and the whole."""
    top = tmp_path_factory.mktemp("kills")
    here = top / "in"
    here.mkdir()
    data = F.values(6, 7)
    data[:2] = 1e20
    b = [F.day(here / "b.nc", 6, 7, data=data)]
    layout = ["-q", "-j", "1", "--verify", "none", *F.KILLED[request.param]]
    (top / "old").mkdir()
    (top / "new").mkdir()
    # Two files, so that the coordinate has room.
    c = [F.day(here / "c.nc", 0, 3), F.day(here / "d.nc", 3, 3)]
    tool.nc2zarr(*layout, *c, top / "old" / "s.zarr").ok()
    tool.nc2zarr(*layout, *c, *b, top / "new" / "s.zarr").ok()
    return request.param, top, b


def kills(what, command, old, root, state, kind, count):
    """COMMAND on copies of OLD, each killed before another of COUNT calls of KIND: which, and what it had done."""
    moments = failio.spread(count, F.MOST_KILLS)
    print(f"{what}: {len(moments)} kills at {count} {kind}s")
    for nth in moments:
        failio.renew(old, root)
        killed = failio.inject("nc2zarr", *command, root=root, state=state, kind=kind, nth=nth, way="kill")
        assert killed.done.status in (-signal.SIGKILL, 128 + signal.SIGKILL), str(killed.done)
        yield nth, killed


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", F.KILLED_BEFORE)
def test_killed(case, kind, tmp_path):
    layout, top, files = case
    root = tmp_path / "work"
    store = root / "s.zarr"
    command = ["-q", "-j", "1", "--verify", "none", "--append", "time", *files, store]
    state = tmp_path / "state"
    failio.renew(top / "old", root)
    whole = failio.inject("nc2zarr", *command, root=root, state=state)
    whole.done.ok()
    old, new = seen(top / "old" / "s.zarr"), seen(top / "new" / "s.zarr")
    raw = {name: a[...] for name, a in zarr.open_group(top / "old" / "s.zarr", mode="r").arrays()}
    assert seen(store) == new
    want = failio.contents(store)
    if layout not in F.ANOTHER_LAYOUT:
        assert want == failio.contents(top / "new" / "s.zarr")
    views = set()
    for nth, killed in kills(f"append, {layout}", command, top / "old", root, state, kind, whole.counts[kind]):
        view = seen(store)
        assert view in (old, new), (kind, nth, killed.what)
        views.add("new" if view == new else "old")
        # Readers of each array by itself see old elements as they were.
        for name, was in raw.items():
            assert zarr.open_array(store, path=name, mode="r")[: was.shape[0]].tobytes() == was.tobytes()
        tool.nc2zarr(*command).ok()
        assert seen(store) == new, (kind, nth, killed.what)
        got = failio.contents(store)
        assert set(got) == set(want), (kind, nth, set(got) ^ set(want))
        if layout != "shards":
            assert got == want, (kind, nth)
        assert sorted(p.name for p in (root / "s.zarr.chunkmill").iterdir()) == F.beside(layout), (kind, nth)
        listed = F.listed(store)
        assert len(listed) == len(set(listed)), (kind, nth, listed)
    assert "old" in views


@pytest.mark.few(2)
def test_killed_then_another_append(case, tmp_path):
    """Chunks that a killed run left past the end are replaced by later ones, which are all fill."""
    layout, top, files = case
    root = tmp_path / "work"
    store = root / "s.zarr"
    command = ["-q", "-j", "1", "--verify", "none", "--append", "time"]
    other = F.day(tmp_path / "other.nc", 6, 1, data=F.values(6, 1) + 7)
    last = F.day(tmp_path / "last.nc", 7, 8, data=np.full((8, F.NLAT, F.NLON), 1e20, "f4"))
    failio.renew(top / "old", root)
    whole = failio.inject("nc2zarr", *command, *files, store, root=root, state=tmp_path / "state")
    moments = failio.spread(whole.counts["rename"], 1000 if paths.LONG else 4)
    print(f"another append, {layout}: {len(moments)} kills at {whole.counts['rename']} renames")
    nfinished = 0
    for nth in moments:
        failio.renew(top / "old", root)
        killed = failio.inject("nc2zarr", *command, *files, store, root=root, state=tmp_path / "state", kind="rename", nth=nth, way="kill")
        assert killed.done.status != 0
        r = tool.nc2zarr(*command, other, store)
        if r.status:  # its documents were on the way: the store has other elements there
            assert "overlapping steps differ" in r.err and zarr.open_group(store, mode="r")["time"].shape == (13,), str(r)
            nfinished += 1
            continue
        tool.nc2zarr(*command, last, store).ok()
        with xr.open_zarr(store, chunks=None) as ds:
            np.testing.assert_array_equal(ds.tas.values[:6], F.values(0, 6))
            np.testing.assert_array_equal(ds.tas.values[6], F.values(6, 1)[0] + 7)
            assert ds.sizes["time"] == 15 and np.isnan(ds.tas.values[7:]).all(), nth
    assert nfinished < len(moments)


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", F.KILLED_BEFORE)
def test_killed_while_files_win_over_the_store(case, kind, tmp_path):
    """Elements of both are there: only a run that rewrites all of them goes on, which its commit forgets."""
    layout, top, _ = case
    root, state = tmp_path / "work", tmp_path / "state"
    store = root / "s.zarr"
    note = root / "s.zarr.chunkmill" / "append-replaces"
    data = F.values(2, 6) + 7
    data[1:3] = 1e20  # whole chunks of some layouts become fill
    other, last = F.day(tmp_path / "other.nc", 6), F.day(tmp_path / "last.nc", 2, 6, data=data)
    part = F.day(tmp_path / "part.nc", 3, 1, data=data[1:2])
    common = ["-q", "-j", "1", "--verify", "none", "--append", "time"]
    command = [*common, "--overlap", "last", last, store]
    failio.renew(top / "old", root)
    old = seen(store)["tas"]
    whole = failio.inject("nc2zarr", *command, root=root, state=state)
    whole.done.ok()
    new = seen(store)
    assert not note.exists()
    refused = 0
    for nth, killed in kills(f"overlap, {layout}", command, top / "old", root, state, kind, whole.counts[kind]):
        if seen(store)["tas"] not in (old, new["tas"]):
            assert note.exists(), (kind, nth, killed.what)
        if note.exists() and not (note.parent / "append").exists():
            for args in ([other], ["--dry-run", other], ["--overlap", "last", other], ["--overlap", "last", part], ["--overlap", "first", last]):
                tool.nc2zarr(*common, *args, store).fails(1, "time=2:6 was stopped half-way", "--append time --overlap last, with the same files", "--replace time=2:6")
            refused += 1
        tool.nc2zarr(*command).ok()
        assert seen(store) == new, (kind, nth, killed.what)
        assert sorted(p.name for p in note.parent.iterdir()) == F.beside(layout), (kind, nth)
    assert refused > 0 or kind != "rename"


ON = {  # a run after one that was stopped, and whether it rewrites all that is half rewritten
    "the same": (["--append", "time", "--overlap", "last"], [(0, 1), (3, 2)], True),
    "more behind": (["--append", "time", "--overlap", "last"], [(0, 1), (3, 2), (5, 3)], True),
    "all in one": (["--append", "time", "--overlap", "last"], [(0, 6)], True),
    "replaced": (["--replace", "time=0:5"], [(0, 5)], True),
    "replaced in part": (["--replace", "time=3:5"], [(3, 2)], False),
    "others": (["--append", "time", "--overlap", "last"], [(0, 2), (4, 1)], False),
    "listed": (["--append", "time", "--overlap", "last"], [], False),
    "in a part": (["--append", "time", "--overlap", "last", "--part", "1/1"], [(0, 1), (3, 2), (6, 3)], True),
    "others in a part": (["--append", "time", "--overlap", "last", "--part", "1/1"], [(3, 2), (6, 3)], False),
}


@pytest.fixture(scope="module")
def half(tmp_path_factory):
    """Six days, of which 0, 3 and 4 were being rewritten."""
    top = tmp_path_factory.mktemp("half")
    old = F.days(top, 0, 6)
    tool.nc2zarr("-q", "--chunks", "time=1", "--statistics", *old, top / "work" / "s.zarr").ok()
    new = [F.day(top / f"{i}.nc", i, n, data=F.values(i, n) + 7) for i, n in ((0, 1), (3, 2))]
    killed = failio.inject("nc2zarr", "-q", "-j", "1", "--append", "time", "--overlap", "last", *new, top / "work" / "s.zarr",
                           root=top / "work", state=top / "state", kind="rename", nth=5, way="kill")
    assert killed.done.status != 0 and (top / "work" / "s.zarr.chunkmill" / "append-replaces").exists()
    return top, old


@pytest.mark.few(4)
@pytest.mark.parametrize("way", ON)
def test_only_a_run_that_rewrites_all_goes_on(half, way, tmp_path):
    top, old = half
    options, files, goes_on = ON[way]
    store = tmp_path / "work" / "s.zarr"
    failio.renew(top / "work", tmp_path / "work")
    new = [F.day(tmp_path / f"{i}.nc", i, n, data=F.values(i, n) + 7) for i, n in files] or old
    for look in (["--dry-run"], []):
        r = tool.nc2zarr("-q", *options, *(look if "--part" not in options else []), *new, store)
        if not goes_on:
            r.fails(1, "time=0:5 was stopped half-way")
    if not goes_on:
        return
    r.ok()
    want = F.values(0, max([6, *(i + n for i, n in files)]))
    for i, n in files:
        want[i : i + n] += 7
    np.testing.assert_array_equal(xr.open_zarr(store, chunks=None).tas.values, want)
    left = sorted(p.name for p in (tmp_path / "work" / "s.zarr.chunkmill").iterdir())
    assert left == (["complete", "ledger", "plan"] if "--part" in options else ["ledger"])


def test_a_resume_of_fewer_or_more_files_says_so(tmp_path):
    """A file that came to a folder, or went, since a conversion was killed."""
    files = F.days(tmp_path, 0, 4)
    store = tmp_path / "work" / "s.zarr"
    store.parent.mkdir()
    common = ["-q", "-j", "1", "--chunks", "time=1"]
    killed = failio.inject("nc2zarr", *common, *files[:3], store, root=store.parent, state=tmp_path / "state", kind="write", nth=9, way="kill")
    assert killed.done.status != 0 and (store.parent / "s.zarr.chunkmill" / "journal").exists()
    for n, words in ((4, "begun with 1 input fewer than there are now"), (2, "begun with 1 input more than there are now")):
        tool.nc2zarr(*common, "--resume", *files[:n], store).fails(1, words, "--overwrite begins again")
    tool.nc2zarr(*common, "--resume", *files[:3], store).ok()
