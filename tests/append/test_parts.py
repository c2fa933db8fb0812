"""Several processes add to one store: the bytes of one process; readers see the old dataset or the new one."""

import functools
import json
import random
import shutil
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

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


def same(a, b):
    done = subprocess.run(["diff", "-r", a, b], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[:2000] + done.stderr


def beside(store):
    return sorted(p.name for p in (store.parent / f"{store.name}.chunkmill").iterdir())


@pytest.fixture(scope="module", params=F.KILLED)
def case(request, tmp_path_factory):
    """A store of 6 days; 30 more in three files, of which some are all fill; what one process makes of them."""
    top = tmp_path_factory.mktemp("parts")
    data = F.values(14, 12)
    data[2:8] = 1e20
    (top / "in").mkdir()
    first = [F.day(top / "in" / "a.nc", 0, 3), F.day(top / "in" / "b.nc", 3, 3)]
    more = [F.day(top / "in" / "c.nc", 6, 8), F.day(top / "in" / "d.nc", 14, 12, data=data), F.day(top / "in" / "e.nc", 26, 10)]
    for name in ("old", "new"):
        (top / name).mkdir()
        tool.nc2zarr("-q", "-j", "1", *F.KILLED[request.param], *first, top / name / "s.zarr").ok()
    tool.nc2zarr("-q", "-j", "1", "--append", "time", *more, top / "new" / "s.zarr").ok()
    return request.param, top, more


def add(k, n, files, store, *more):
    return tool.nc2zarr("--part", f"{k}/{n}", "-j", "1", "--append", "time", *more, *files, store)


@pytest.mark.few
def test_any_number_in_any_order_some_twice(case, tmp_path):
    layout, top, files = case
    for n in (1, 2, 7):
        order = [*range(1, n + 1), *random.Random(n).sample(range(1, n + 1), n // 2)]
        random.Random(n + 1).shuffle(order)
        failio.renew(top / "old", tmp_path / str(n))
        store = tmp_path / str(n) / "s.zarr"
        left = set(range(1, n + 1))
        for k in order:
            assert seen(store) == seen(top / ("old" if left else "new") / "s.zarr")
            add(k, n, files, store, "-q", "--verify", "full").ok()
            left.discard(k)
        same(top / "new" / "s.zarr", store)
        assert not [name for name in beside(store) if name.startswith("part-")]
        # The same again adds nothing, by parts or by one process; then the store grows further.
        assert "Nothing is to be added" in add(1, n, files, store).ok().out
        tool.nc2zarr("-q", "--append", "time", *files, store).ok()
        same(top / "new" / "s.zarr", store)
        last = F.day(tmp_path / "last.nc", 36, 3)
        for k in (2, 1):
            add(k, 2, [last], store, "-q").ok()
        failio.renew(top / "new", tmp_path / "one")
        tool.nc2zarr("-q", "--append", "time", last, tmp_path / "one" / "s.zarr").ok()
        same(tmp_path / "one" / "s.zarr", store)


@pytest.mark.few(2)
def test_all_at_once(case, tmp_path):
    layout, top, files = case
    n = 5
    for _ in range(paths.tries(2, 5, 30)):
        failio.renew(top / "old", tmp_path / "work")
        store = tmp_path / "work" / "s.zarr"
        with ThreadPoolExecutor(2 * n) as pool:
            done = list(pool.map(lambda k: add(k, n, files, store, "--json"), [*range(1, n + 1)] * 2))
        same(top / "new" / "s.zarr", store)
        # A double may have looked at the store before it was finished, and at its data after.
        late = [d for d in done if d.status != 0]
        for d in late:
            assert d.status == 1 and ("start again" in d.err or "another plan" in d.err), str(d)
        ends = [k for k, d in zip([*range(1, n + 1)] * 2, done, strict=True) if d.status == 0]
        assert set(ends) == set(range(1, n + 1))
        add(1, n, files, store).ok()
        reports = [d.json()["part"] for d in done if d.status == 0]
        assert sum(bool(r and r["finished"]) for r in reports) == 1


def has_lock(store, pid):
    """Of the locks beside STORE."""
    for lock in (store.parent / f"{store.name}.chunkmill").glob("*lock"):
        try:
            if json.loads(lock.read_text())["process"] == pid:
                return True
        except FileNotFoundError:
            continue
    return False


@pytest.mark.few
@pytest.mark.parametrize("kind", ("open", "stat", *(pytest.param(k, marks=pytest.mark.long) for k in ("list", "unlink"))))
def test_a_late_double_spoils_nothing(case, tmp_path, kind):
    """A part that stands still, where it has no lock, while its double and the others finish, and the next append begins."""
    layout, top, files = case
    n, root, state = 3, tmp_path / "work", tmp_path / "state"
    store, last = root / "s.zarr", F.day(tmp_path / "last.nc", 36, 12)
    failio.renew(top / "new", tmp_path / "next")
    tool.nc2zarr("-q", "--append", "time", last, tmp_path / "next" / "s.zarr").ok()
    failio.renew(top / "old", root)
    for k in range(1, n):
        add(k, n, files, store, "-q").ok()
    failio.renew(root, tmp_path / "most")
    command = ["--part", f"1/{n}", "-j", "1", "--append", "time", *map(str, files), str(store)]
    nstopped, ends = 0, set()
    for begun in (top / "old", tmp_path / "most"):
        failio.renew(begun, root)
        count = failio.inject("nc2zarr", *command, root=root, state=state).counts[kind]
        for i, nth in enumerate(failio.spread(count, paths.tries(2, 16, 1000))):
            failio.renew(begun, root)
            env = tool.environment(failio.environment(root, state, kind, nth, "stop"))
            late = subprocess.Popen([tool.program("nc2zarr"), *command], env=env, stdout=subprocess.DEVNULL,
                                    stderr=subprocess.PIPE, text=True, start_new_session=True)
            at = f"stopped before {kind} {nth}"
            try:
                while late.poll() is None and not failio.failed(state):
                    time.sleep(0.002)
                stands = late.poll() is None and not has_lock(store, late.pid)
                nstopped += stands
                more = stands and i % 2 == 1
                for k in range(1, n + 1) if stands else ():
                    add(k, n, files, store, "-q").ok()
                if more:
                    add(1, 2, [last], store, "-q").ok()
            finally:
                err = failio.go_on(late)
            assert late.returncode == 0 or (late.returncode == 1 and "start again" in err), (at, err)
            ends.add(late.returncode)
            if more:
                assert add(2, 2, [last], store, "--json").json()["part"]["complete"], at
            else:
                for k in range(1, n + 1):
                    add(k, n, files, store, "-q").ok()
            same((tmp_path / "next" if more else top / "new") / "s.zarr", store)
            assert not [name for name in beside(store) if "part-" in name or "lock" in name or "tmp" in name], at
    assert nstopped > 0 and 0 in ends


def test_steps_that_the_store_has(case, tmp_path):
    """Chunks that the old dataset has are not a part's: whoever finishes writes them."""
    layout, top, _ = case
    files = [F.day(tmp_path / "overlap.nc", 3, 20)]
    for name in ("one", "parts"):
        failio.renew(top / "old", tmp_path / name)
    tool.nc2zarr("-q", "--append", "time", *files, tmp_path / "one" / "s.zarr").ok()
    for k in (3, 1, 2):
        add(k, 3, files, tmp_path / "parts" / "s.zarr", "-q").ok()
    same(tmp_path / "one" / "s.zarr", tmp_path / "parts" / "s.zarr")
    # Steps that differ are refused by every part, and nothing of the store changes.
    failio.renew(top / "old", tmp_path / "work")
    other = [F.day(tmp_path / "other.nc", 3, 20, data=F.values(3, 20) + 1)]
    for k in (1, 2):
        assert add(k, 2, other, tmp_path / "work" / "s.zarr", "-q").status in (1, 4)
    same(top / "old" / "s.zarr", tmp_path / "work" / "s.zarr")


def test_others_wait_until_all_are_done(case, tmp_path):
    layout, top, files = case
    failio.renew(top / "old", tmp_path / "work")
    store = tmp_path / "work" / "s.zarr"
    add(1, 3, files, store, "-q").ok()
    add(2, 4, files, store, "-q").fails(1, "in 3 parts, not in 4")
    add(2, 3, files[:2], store, "-q").fails(1, "a plan of 1 input more than there are now", "not complete")
    add(2, 3, [*files, F.day(tmp_path / "late.nc", 90)], store, "-q").fails(1, "a plan of 1 input fewer than there are now", "not complete")
    tool.nc2zarr("-q", "--append", "time", *files, store).fails(1, "3 parts add to it", "--break-lock")
    tool.nc2zarr("-q", "--replace", "time=2000-01-01..2000-01-03", *files[:1], store).fails(1, "3 parts add to it")
    tool.nc2zarr("-q", "--consolidate", store).fails(1, "3 parts add to it")
    assert seen(store) == seen(top / "old" / "s.zarr")
    # They are given up, and less is added: no object of theirs stays, but folders may.
    tool.nc2zarr("-q", "--break-lock", "--append", "time", files[0], store).ok()
    subprocess.run(["find", store, "-type", "d", "-empty", "-delete"], check=True)
    failio.renew(top / "old", tmp_path / "one")
    tool.nc2zarr("-q", "--append", "time", files[0], tmp_path / "one" / "s.zarr").ok()
    same(tmp_path / "one" / "s.zarr", store)
    add(1, 2, files, tmp_path / "one" / "s.zarr", "-q", "--dry-run").ok()
    same(tmp_path / "one" / "s.zarr", store)


@pytest.mark.few(2)
def test_objects_that_are_gone_are_missed(case, tmp_path):
    layout, top, files = case
    failio.renew(top / "old", tmp_path / "work")
    store = tmp_path / "work" / "s.zarr"
    before = {p for p in store.rglob("*") if p.is_file()}
    for k in (1, 2):
        add(k, 3, files, store, "-q").ok()
    next(p for p in sorted(store.rglob("*")) if p.is_file() and p not in before).unlink()
    add(3, 3, files, store, "-q").fails(1, "run part", "again")
    assert seen(store) == seen(top / "old" / "s.zarr")
    for k in (1, 2, 3):
        add(k, 3, files, store, "-q").ok()
    same(top / "new" / "s.zarr", store)


REFUSED = [(("--replace", "time=2000-01-01..2000-01-03"), "--replace"), (("--append", "time", "--statistics"), "--statistics")]


@pytest.mark.every
@pytest.mark.parametrize("options, told", REFUSED)
def test_what_is_not_built(case, tmp_path, options, told):
    layout, top, files = case
    failio.renew(top / "old", tmp_path / "work")
    tool.nc2zarr("-q", "--part", "1/2", *options, *files[:1], tmp_path / "work" / "s.zarr").fails(2, told)
    same(top / "old" / "s.zarr", tmp_path / "work" / "s.zarr")


@functools.lru_cache
def before_and_after(top):
    """Both stores as readers see them, the arrays of the old one, and the files of the new one."""
    old, new = top / "old" / "s.zarr", top / "new" / "s.zarr"
    raw = {name: a[...] for name, a in zarr.open_group(old, mode="r").arrays()}
    return seen(old), seen(new), raw, failio.contents(new)


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", ("rename", "unlink", "write", "mkdir", "lock"))
@pytest.mark.parametrize("number", (1, 3))
def test_killed(case, number, kind, tmp_path):
    """The part that publishes the plan, and the one that finishes; anybody goes on."""
    layout, top, files = case
    begun, root, state = tmp_path / "begun", tmp_path / "work", tmp_path / "state"
    store = root / "s.zarr"
    failio.renew(top / "old", root)  # a plan names the place of its store
    if number == 3:
        for k in (1, 2):
            add(k, 3, files, store, "-q", "--verify", "none").ok()
    failio.renew(root, begun)
    command = ["-q", "-j", "1", "--verify", "none", "--part", f"{number}/3", "--append", "time", *files, store]
    failio.renew(begun, root)
    whole = failio.inject("nc2zarr", *command, root=root, state=state)
    whole.done.ok()
    old, new, raw, want = before_and_after(top)
    views = set()
    for i, nth in enumerate(failio.spread(whole.counts[kind], paths.tries(2, 8, 1000))):
        failio.renew(begun, root)
        killed = failio.inject("nc2zarr", *command, root=root, state=state, kind=kind, nth=nth, way="kill")
        assert killed.done.status in (-signal.SIGKILL, 128 + signal.SIGKILL), str(killed.done)
        at = (kind, nth, killed.what)
        view = seen(store)
        assert view in (old, new), at
        views.add(view == new)
        for name, was in raw.items():
            assert zarr.open_array(store, path=name, mode="r")[: was.shape[0]].tobytes() == was.tobytes(), at
        if i % 3 == 2:  # one process instead, which gives the parts up
            tool.nc2zarr("-q", "-j", "1", "--verify", "none", "--break-lock", "--append", "time", *files, store).ok()
        else:
            for k in (1, 2, 3) if i % 3 else (3, 2, 1):
                add(k, 3, files, store, "-q", "--verify", "none").ok()
        assert seen(store) == new, at
        got = failio.contents(store)
        assert set(got) == set(want), (at, set(got) ^ set(want))
        assert got == want, at
        names = beside(store)
        assert not [n for n in names if n not in ("append-left", "complete", "ledger", "plan")], (at, names)
    assert not views or False in views
    shutil.rmtree(root)


def test_a_trace_of_who_finishes(case, tmp_path):
    layout, top, files = case
    failio.renew(top / "old", tmp_path / "work")
    add(1, 1, files, tmp_path / "work" / "s.zarr", "-q", "--trace", tmp_path / "trace.json").ok()
    same(top / "new" / "s.zarr", tmp_path / "work" / "s.zarr")
    assert np.size((tmp_path / "trace.json").read_bytes()) > 0
    import json

    json.loads((tmp_path / "trace.json").read_text())


@pytest.mark.parametrize("n", [2, 3])
def test_bounds_without_units_in_chunks_behind_their_coordinate(n, tmp_path):
    """A part that writes bounds and not the coordinate knows what they count, and verification says so."""
    files = [F.day(tmp_path / "a.nc", 0, 5), F.day(tmp_path / "b.nc", 5, 3, units="hours since 1999-12-01"), F.day(tmp_path / "c.nc", 8, 1)]
    for name in ("parts", "one"):
        tool.nc2zarr("-q", "--variable", "time_bnds", "--chunks", "time_bnds:time=2,nv=2", files[0], tmp_path / f"{name}.zarr").ok()
    for k in range(1, n + 1):
        add(k, n, files[1:], tmp_path / "parts.zarr", "--variable", "time_bnds").ok()
    tool.nc2zarr("-q", "--variable", "time_bnds", "--append", "time", *files[1:], tmp_path / "one.zarr").ok()
    assert seen(tmp_path / "parts.zarr") == seen(tmp_path / "one.zarr")
