"""Outputs that others want, too: many runs at once, foreign things beside a store, a lock that goes, a clock that jumps."""

import os
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest
from append import files as F
from support import objects, preload, stores, tool


@pytest.fixture(scope="module")
def days(tmp_path_factory):
    top = tmp_path_factory.mktemp("company")
    F.days(top, 0, 8)
    return [top / f"day{i:05}.nc" for i in range(8)]


@pytest.fixture(scope="module")
def want(days, tmp_path_factory):
    store = tmp_path_factory.mktemp("want") / "a.zarr"
    tool.nc2zarr("-q", *days, store).ok()
    return stores.digest(store)


@pytest.mark.parametrize("place", ["folder", "bucket"])
def test_ten_at_once(days, want, bucket, tmp_path, place):
    """One makes the store, and each of the others says why it does not."""
    env, out = bucket.environment(), tmp_path / "o.zarr" if place == "folder" else "s3://bucket/o.zarr"
    with ThreadPoolExecutor(10) as pool:
        done = list(pool.map(lambda _: tool.nc2zarr("-q", "-j1", *days, out, env=env), range(10)))
    assert sorted(d.status for d in done) == [0] + [1] * 9
    for d in done:
        if d.status:
            d.fails(1, "o.zarr")
            assert any(words in d.err for words in ("another run", "exists", "in the same moment"))
    assert stores.digest(out, env) == want
    left = os.listdir(f"{out}.chunkmill") if place == "folder" else [k.split("/")[-1] for k in bucket.keys("o.zarr.chunkmill/")]
    assert left == ["ledger"]


def things(beside, what):
    """WHAT lies in the folder BESIDE a store; the path."""
    path = beside / {"folder": "lock", "pipe": "lock", "link": "lock", "line": "a\nb\x1b[31m", "journal": "journal", "plan": "plan", "plan folder": "plan"}[what]
    if what in ("folder", "journal", "plan folder"):
        path.mkdir()
        (path / "mine").write_text("mine")
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "link":
        path.symlink_to("nowhere")
    else:
        path.write_text("mine")
    return path


VERBS = {"new": [], "overwrite": ["--overwrite"], "append": ["--append", "time"], "part": ["--part", "1/1"], "consolidate": ["--consolidate"]}


@pytest.mark.parametrize("what", ["folder", "pipe", "link", "line", "journal", "plan", "plan folder"])
def test_foreign_things_beside_a_store(days, want, tmp_path, what):
    """They stay as they are; where one is in the way, a sentence names it, and the store is as it was."""
    made = tmp_path / "made.zarr"
    tool.nc2zarr("-q", *days[:5], made).ok()
    before = stores.digest(made)
    for verb, options in VERBS.items():
        store = tmp_path / f"{verb}.zarr"
        if verb in ("overwrite", "append", "consolidate"):
            shutil.copytree(made, store)
        (tmp_path / f"{verb}.zarr.chunkmill").mkdir()
        path = things(tmp_path / f"{verb}.zarr.chunkmill", what)
        inputs = {"append": days[5:], "consolidate": []}.get(verb, days)
        done = tool.nc2zarr("-q", *options, *inputs, store, timeout=60)
        fine = (what == "journal" and verb in ("append", "consolidate")) or (what == "plan" and verb == "overwrite") or (what == "plan folder" and verb != "part")
        if what == "line" or fine:
            done.ok()
            assert verb == "consolidate" or stores.digest(store) == want
        else:
            done.fails(1, str(path.name), f"nc2zarr: {store}: ")
            assert stores.digest(store) == before if (store / "zarr.json").exists() else verb in ("new", "part")
        # A plan goes with the store that it is said to be of.
        assert (os.path.lexists(path) or (what, verb) == ("plan", "overwrite")) and "\x1b" not in done.err
        assert not path.is_dir() or (path / "mine").read_text() == "mine"


@pytest.mark.long(ci=1)
@pytest.mark.parametrize("nth", [2, 9, 16])
def test_a_lock_that_goes_in_the_middle(days, want, bucket, nth):
    """Somebody removes it at the nth request of an append: it ends with a sentence, and the next one completes the store."""
    env, store, met = bucket.environment(), "s3://bucket/a.zarr", []
    tool.nc2zarr("-q", "--chunks", "time=2", *days[:5], store, env=env).ok()

    def fault(handler):
        if "a.zarr.chunkmill/lock" in bucket.objects and handler.command in ("GET", "HEAD", "PUT"):
            met.append(handler.key)
            if len(met) == nth:
                del bucket.objects["a.zarr.chunkmill/lock"]

    bucket.fault = fault
    command = ("-q", "--append", "time", *days[5:], store)
    tool.nc2zarr(*command, env=env).fails(1, "s3://bucket/a.zarr: another run took")
    bucket.fault = None
    tool.nc2zarr(*command, env=env).ok()
    assert stores.digest(store, env) == want and [k for k in bucket.keys("a.zarr.chunkmill/") if not k.endswith("ledger")] == []


@pytest.mark.long
def test_a_clock_that_jumps(days, want, bucket, tmp_path):
    """By an hour from call to call, through locks, ledgers and signatures."""
    env = bucket.environment(LD_PRELOAD=str(preload.library("jumpclock")))
    for top in (tmp_path, "s3://bucket"):
        tool.nc2zarr("-q", *days[:5], f"{top}/a.zarr", env=env).ok()
        tool.nc2zarr("-q", "--append", "time", *days[5:], f"{top}/a.zarr", env=env).ok()
        with ThreadPoolExecutor(2) as pool:
            for done in pool.map(lambda k: tool.nc2zarr("-q", "--part", f"{k}/2", *days, f"{top}/p.zarr", env=env), (1, 2)):
                done.ok()
        assert all(stores.digest(f"{top}/{name}.zarr", bucket.environment()) == want for name in "ap")
