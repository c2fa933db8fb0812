"""Parts of one store that are killed before any call that leaves a trace: the same command, or another part, goes on."""

import json
import os
import random
import shutil
import signal
import subprocess
import time

import netCDF4
import numpy as np
import pytest

from support import failio, paths, preload, stores, tool
from support.locks import lock_text

NPARTS = 3
# Steps at which a process may be killed.
KINDS = ("rename", "unlink", "write", "sync", "open", "mkdir", "lock")
KILLS = paths.tries(4, 12, 1000)
LAYOUTS = {
    "chunks": ("--chunks", "time=5,lat=6,lon=8", "--shards", "none"),
    "shards": ("--chunks", "time=5,lat=3,lon=4", "--shards", "time=10,lat=6,lon=8"),
    "lengths": ("--codec", "keep", "--grid", "rectilinear"),  # of files of several lengths
}


def write(path, first, n, chunks=None):
    with netCDF4.Dataset(path, "w") as ds:
        for d, size in (("time", n), ("lat", 12), ("lon", 16)):
            ds.createDimension(d, size)
        data = np.random.default_rng(3).normal(size=(20, 12, 16)).round(1)
        data[5:10] = 1e20
        ds.createVariable("tas", "f4", ("time", "lat", "lon"), fill_value=1e20, chunksizes=chunks)[:] = data[first : first + n]
        if chunks:
            ds.createVariable("time", "i4", ("time",))[:] = np.arange(first, first + n)
        ds.createVariable("lat", "f8", ("lat",))[:] = np.arange(12)
        ds.createVariable("name", str, ("lat",))[:] = np.array([f"row {i}" for i in range(12)], object)
    return path


@pytest.fixture(scope="module", params=LAYOUTS)
def case(request, tmp_path_factory):
    """Of a small field: one conversion, nothing, and all parts but the last."""
    top = tmp_path_factory.mktemp("parts")
    if request.param == "lengths":
        sources = [write(top / f"in{at}.nc", at, n, (n, 6, 8)) for at, n in ((0, 8), (8, 5), (13, 7))]
    else:
        sources = [write(top / "in.nc", 0, 20)]
    options = ["-q", "-j", "1", *LAYOUTS[request.param], *sources]
    tool.nc2zarr(*options, top / "one.zarr").ok()
    for name in ("nothing", "rest"):
        (top / name).mkdir()
    for k in range(1, NPARTS):
        tool.nc2zarr("--part", f"{k}/{NPARTS}", *options, top / "rest" / "o.zarr").ok()
    return top, options


def part(k, options, store, *more):
    return tool.nc2zarr("--part", f"{k}/{NPARTS}", *more, *options, store)


def is_complete(store):
    return (store.parent / f"{store.name}.chunkmill" / "complete").exists()


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("begun", ("nothing", "rest"))
def test_killed(case, begun, kind, tmp_path):
    """The first part, which publishes the plan; the last one, which finishes the store."""
    top, options = case
    root, state = tmp_path / "work", tmp_path / "state"
    store, number = root / "o.zarr", 1 if begun == "nothing" else NPARTS
    command = ("--part", f"{number}/{NPARTS}", *options, store)
    failio.renew(top / begun, root)
    whole = failio.inject("nc2zarr", *command, root=root, state=state)
    whole.done.ok()
    assert is_complete(store) == (begun == "rest")
    for i, nth in enumerate(failio.spread(whole.counts[kind], KILLS)):
        failio.renew(top / begun, root)
        killed = failio.inject("nc2zarr", *command, root=root, state=state, kind=kind, nth=nth, way="kill")
        assert killed.done.status in (-signal.SIGKILL, 128 + signal.SIGKILL), str(killed.done)
        at = f"killed before {kind} {nth}: {killed.what}"
        # A store that opens by its root is what it will be.
        if (store / "zarr.json").exists():
            stores.same_files(top / "one.zarr", store)
        # Others come first every second time: those that are done may find that they can finish.
        numbers = [*range(1, NPARTS + 1)] if i % 2 else [number, *range(1, NPARTS + 1)]
        reports = [part(k, options[1:], store, "--json").json()["part"] for k in numbers]
        assert is_complete(store), at
        assert sum(r["finished"] for r in reports) + (begun == "rest" and all(r["was_done"] for r in reports)) >= 1, at
        try:
            stores.same_files(top / "one.zarr", store)
        except AssertionError as e:
            raise AssertionError(at) from e
        beside = sorted(p.name for p in (root / "o.zarr.chunkmill").iterdir())
        assert beside == ["complete", "plan"], (at, beside)
    shutil.rmtree(root)


@pytest.fixture(scope="module")
def ended(case, tmp_path_factory):
    """All parts are done, and the process of the last one was killed when it said so."""
    top, options = case
    root, state = tmp_path_factory.mktemp("ended"), tmp_path_factory.mktemp("state") / "state"
    command = ("--part", f"{NPARTS}/{NPARTS}", *options, root / "o.zarr")
    for nth in range(1, 1000):
        failio.renew(top / "rest", root)
        failio.inject("nc2zarr", *command, root=root, state=state, kind="rename", nth=nth, way="kill")
        if (root / "o.zarr.chunkmill" / f"part-{NPARTS}.done").exists():
            break
    assert not is_complete(root / "o.zarr") and not (root / "o.zarr" / "tas" / "zarr.json").exists()
    return root


def start_stopped(argv):
    """A process that waits for SIGCONT before its first instruction."""
    p = subprocess.Popen(
        ["sh", "-c", 'kill -STOP $$; exec "$@"', "sh", *map(str, argv)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=tool.environment({}),
    )
    os.waitid(os.P_PID, p.pid, os.WSTOPPED | os.WNOWAIT)
    return p


def run_at_once(commands, rng):
    """All begin within some milliseconds; what each reports."""
    running = [start_stopped([tool.program("nc2zarr"), "--json", *c]) for c in commands]
    for p in running:
        time.sleep(rng.choice((0, 0, rng.uniform(0, 0.005))))
        p.send_signal(signal.SIGCONT)
    done = [p.communicate(timeout=300) for p in running]
    assert [p.returncode for p in running] == [0] * len(running), done
    return [json.loads(out)["part"] for out, _ in done]


@pytest.mark.long(ci=1)
def test_all_find_at_once_that_they_can_finish(case, ended, tmp_path):
    top, options = case
    rng = random.Random(5)
    root = tmp_path / "work"
    store = root / "o.zarr"
    for _ in range(paths.tries(5, 30, 200)):
        failio.renew(ended, root)
        numbers = [1, 2, 3, 1, 2, 3]
        reports = run_at_once([("--part", f"{k}/{NPARTS}", *options[1:], store) for k in numbers], rng)
        assert sum(r["finished"] for r in reports) == 1 and all(r["complete"] and r["was_done"] for r in reports)
        stores.same_files(top / "one.zarr", store)
        assert sorted(p.name for p in (root / "o.zarr.chunkmill").iterdir()) == ["complete", "plan"]


@pytest.mark.long(ci=1)
def test_two_end_at_once(case, tmp_path):
    """Each writes that it is done, then looks whether the other has; one of them finishes, whoever is first."""
    top, options = case
    rng = random.Random(6)
    root = tmp_path / "work"
    store, beside = root / "o.zarr", root / "o.zarr.chunkmill"
    both = 0
    for _ in range(paths.tries(8, 50, 300)):
        failio.renew(top / "nothing", root)
        part(1, options, store).ok()
        reports = run_at_once([("--part", f"{k}/{NPARTS}", *options[1:], store) for k in (2, 3)], rng)
        assert sum(r["finished"] for r in reports) == 1 and not any(r["was_done"] for r in reports)
        both += all(r["complete"] for r in reports)
        stores.same_files(top / "one.zarr", store)
        assert sorted(p.name for p in beside.iterdir()) == ["complete", "plan"]
    print(f"both found the store complete in {both} rounds")


# Whoever stands here after a folder was made leaves it empty for so long that others meet it.
SLOW = {"LD_PRELOAD": str(preload.library("slowmkdir"))}


def start_parts(program, options, store, env):
    argv = [tool.program(program), "-q", "-j", "1", *options, store]
    return [
        subprocess.Popen(
            [*map(str, argv), "--part", f"{k}/{NPARTS}"], stderr=subprocess.PIPE, text=True, env=tool.environment(env)
        )
        for k in range(1, NPARTS + 1)
    ]


@pytest.mark.few(2)
@pytest.mark.skipif(paths.SANITIZED, reason="a sanitizer's library has to be the first one")
@pytest.mark.parametrize("program", ("nc2zarr", "rechunk"))
def test_all_killed_and_started_again_at_once(case, program, tmp_path, request):
    """Removing the remains of a killed part never removes a folder that another has just made."""
    top, options = case
    layout = LAYOUTS[request.node.callspec.params["case"]]
    if program == "nc2zarr":
        options = options[3:]
    else:
        options = [*(o for o in layout if o not in ("--codec", "keep")), top / "one.zarr"]
    rng = random.Random(7)
    tool.run(program, "-q", *options, tmp_path / "one.zarr").ok()
    root = tmp_path / "work"
    store, beside = root / "o.zarr", root / "o.zarr.chunkmill"
    for i in range(paths.tries(2, 100, 250)):
        env = SLOW if i % 2 == 0 or not paths.LONG else {}
        failio.renew(top / "nothing", root)
        first = start_parts(program, options, store, env)
        end = time.monotonic() + 1
        while len(list(root.glob("*/part-*.journal"))) < NPARTS and time.monotonic() < end:
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.2 if env else 0.02))
        for p in first:
            p.kill()
        for p in first:
            p.communicate()
        again = start_parts(program, options, store, env)
        said = [p.communicate(timeout=300)[1] for p in again]
        assert [p.returncode for p in again] == [0] * NPARTS, (i, said)
        stores.same_files(tmp_path / "one.zarr", store)
        assert sorted(p.name for p in beside.iterdir()) == ["complete", "plan"], i
    shutil.rmtree(root)


UNSEEN = {  # locks that say of nobody here that he ends
    "of no host": (lambda: lock_text(host="", part=True, beats=True), "does not say by whom"),
    "of another host, and never beats": (lambda: lock_text(host="elsewhere", part=True), "elsewhere"),
    "of another container, and never beats": (lambda: lock_text(**{"process space": "?", "part": True}), "cannot be seen"),
    "half": (lambda: lock_text(part=True)[:60], "does not say by whom"),
}


@pytest.mark.parametrize("name", ("lock", f"part-{NPARTS}.lock"))
@pytest.mark.parametrize("damage", UNSEEN)
def test_no_part_waits_for_a_lock_of_nobody(case, name, damage, tmp_path):
    top, options = case
    text, sentence = UNSEEN[damage]
    failio.renew(top / ("nothing" if name == "lock" else "rest"), tmp_path / "work")
    beside = tmp_path / "work" / "o.zarr.chunkmill"
    beside.mkdir(exist_ok=True)
    (beside / name).write_text(text())
    store = tmp_path / "work" / "o.zarr"
    part(NPARTS, options, store).fails(1, sentence, "o.zarr", "break the lock")
    assert (beside / name).read_text() == text()
    part(NPARTS, options, store, "--break-lock").ok()
