"""A store in a bucket grows as one in a folder does: killed at every request that writes, read meanwhile, locked."""

import json
import shutil
import signal
import subprocess
import time

import pytest
from support import failio, objects, paths, rectilinear, tool

from . import files as F
from .test_kills import seen
from .test_locks import LOCKS

STORE = "s3://bucket/s.zarr"
QUICK = ("-q", "-j", "1", "--verify", "none")


@pytest.fixture
def bucket():
    server = objects.Server()
    yield server
    server.close()


def folder_of(bucket, folder):
    shutil.rmtree(folder, ignore_errors=True)
    bucket.get_folder("s.zarr", folder)
    return folder


def same(bucket, want, folder, layout):
    got = folder_of(bucket, folder)
    if layout in F.ANOTHER_LAYOUT:
        assert tool.run("rechunk", "--digest", got).ok().out == tool.run("rechunk", "--digest", want).ok().out
    else:
        assert failio.contents(got) == failio.contents(want)


@pytest.mark.few(2)
@pytest.mark.parametrize("layout", F.KILLED)
def test_equals_a_folder(bucket, tmp_path, layout):
    env, local = bucket.environment(), tmp_path / "local.zarr"
    days = F.days(tmp_path, 0, 13)
    for store in (local, STORE):
        tool.nc2zarr("-q", *F.KILLED[layout], *days[:5], store, env=env).ok()
        tool.nc2zarr("-q", "--append", "time", "--verify", "full", *days[3:9], store, env=env).ok()
        tool.nc2zarr("-q", "--append", "time", *days, store, env=env).ok()
        F.day(days[7], 7, data=F.values(7, 1) + 1)
        tool.nc2zarr("-q", "--replace", "time=7:8", days[7], store, env=env).ok()
        F.day(days[7], 7)
    same(bucket, local, tmp_path / "remote", layout)
    assert set(failio.contents(tmp_path / "remote")) == set(failio.contents(local))
    assert bucket.keys("s.zarr.chunkmill") == [f"s.zarr.chunkmill/{name}" for name in F.beside(layout)]
    before = dict(bucket.objects)
    tool.nc2zarr("--append", "time", *days[:7], STORE, env=env).ok()
    tool.nc2zarr("--append", "time", "--dry-run", *days[:7], STORE, env=env).ok()
    assert bucket.objects == before
    tool.nc2zarr("--append", "time", *days, "s3://bucket/other.zarr", env=env).fails(1, "no store to add to")


def test_chunks_of_several_lengths(bucket, tmp_path):
    env, months = bucket.environment(), rectilinear.months(tmp_path, 6)
    keep = ("-q", "--codec", "keep", "--grid", "rectilinear")
    tool.nc2zarr(*keep, *months, tmp_path / "want.zarr").ok()
    tool.nc2zarr(*keep, *months[:2], STORE, env=env).ok()
    for some in (months[2:3], months[3:]):
        tool.nc2zarr("-q", "--append", "time", "--verify", "full", *some, STORE, env=env).ok()
    assert failio.contents(folder_of(bucket, tmp_path / "got")) == failio.contents(tmp_path / "want.zarr")
    tool.nc2zarr("-q", "--replace", "time=31:59", months[1], STORE, env=env).ok()
    assert tool.run("rechunk", "--digest", STORE, env=env).ok().out.count("\n") > 1


@pytest.fixture(scope="module", params=F.KILLED)
def case(request, tmp_path_factory):
    """Objects of a store of 6 days, and 7 days more of which the first two are all fill."""
    top = tmp_path_factory.mktemp("kills")
    data = F.values(6, 7)
    data[:2] = 1e20
    more = F.day(top / "b.nc", 6, 7, data=data)
    files = [F.day(top / "c.nc", 0, 3), F.day(top / "d.nc", 3, 3)]
    layout = [*QUICK, *F.KILLED[request.param]]
    server = objects.Server()
    tool.nc2zarr(*layout, *files, STORE, env=server.environment()).ok()
    old = dict(server.objects)
    server.close()
    tool.nc2zarr(*layout, *files, top / "old.zarr").ok()
    tool.nc2zarr(*layout, *files, more, top / "new.zarr").ok()
    return request.param, top, more, old


@pytest.mark.long
@pytest.mark.parametrize("conditional", [True, False], ids=["conditional", "unconditional"])
def test_killed(case, conditional, tmp_path):
    layout, top, more, old_objects = case
    bucket = objects.Server(conditional=conditional)
    command = [*QUICK, "--append", "time", more, STORE]
    old, new = seen(top / "old.zarr"), seen(top / "new.zarr")
    bucket.objects = dict(old_objects)
    status, writes, _ = objects.kill_at(bucket, 10**9, False, *command)
    assert status == 0
    same(bucket, top / "new.zarr", tmp_path / "got", layout)
    want, views = bucket.keys(), set()
    tries = [(n, d) for n in range(1, len(writes) + 1) for d in (False, True)]
    for at in failio.spread(len(tries), paths.tries(6, 20, 1000)):
        nth, done = tries[at - 1]
        bucket.objects = dict(old_objects)
        assert objects.kill_at(bucket, nth, done, *command)[0] == -signal.SIGKILL, (nth, writes)
        view = seen(folder_of(bucket, tmp_path / "got"))
        assert view in (old, new), (nth, done, writes[nth - 1])
        views.add("new" if view == new else "old")
        tool.nc2zarr(*command, env=bucket.environment()).ok()
        same(bucket, top / "new.zarr", tmp_path / "got", layout)
        assert bucket.keys() == want, (nth, done, writes[nth - 1])
    assert "old" in views
    bucket.close()


@pytest.mark.parametrize("name", LOCKS)
def test_locks(bucket, tmp_path, name):
    """As the server tells their age, by its own clock."""
    text, age, refused, broken = LOCKS[name]
    env = bucket.environment()
    tool.nc2zarr(*QUICK, "--chunks", "time=4", *F.days(tmp_path, 0, 5), STORE, env=env).ok()
    new, key = F.day(tmp_path / "new.nc", 5, 2), "s.zarr.chunkmill/lock"
    data = text().encode()
    bucket.objects[key] = (data, objects.etag_of(data))
    bucket.times[key] = time.time() - age
    before = dict(bucket.objects)
    for options, sentence in (([], refused), (["--break-lock"], broken)):
        done = tool.nc2zarr("--append", "time", *options, new, STORE, env=env)
        if sentence:
            done.fails(1, sentence, "s.zarr")
            assert bucket.objects == before
            continue
        assert "took over the lock" in done.ok().err
        assert key not in bucket.objects
        return


@pytest.mark.parametrize("conditional", [True, False])
def test_a_lock_that_was_taken_over(bucket, tmp_path, conditional):
    """A run that was taken for ended writes no metadata, and removes nothing of the run that goes on."""
    bucket.conditional = conditional
    env, key = bucket.environment(), "s.zarr.chunkmill/lock"
    days = F.days(tmp_path, 0, 9)
    tool.nc2zarr(*QUICK, "--chunks", "time=4", *days[:5], STORE, env=env).ok()
    metadata = {k: v for k, v in bucket.objects.items() if "json" in k}

    def take(handler):
        if handler.command == "PUT" and "/tas/c/" in handler.key and bucket.objects[key][0] != b"another's\n":
            bucket.objects[key] = (b"another's\n", objects.etag_of(b"another's\n"))

    bucket.fault = take
    tool.nc2zarr("-q", "--append", "time", *days[5:], STORE, env=env).fails(1, "another run took over the lock", "s.zarr")
    assert {k: v for k, v in bucket.objects.items() if "json" in k} == metadata and bucket.objects[key][0] == b"another's\n"
    assert any("/tas/c/2/" in k for k in bucket.objects)
    bucket.objects.clear()
    tool.nc2zarr(*QUICK, "--chunks", "time=4", *days[:5], STORE, env=env).fails(1, "another run took over the lock", "s.zarr")
    assert bucket.keys("s.zarr/tas/c/") and not bucket.keys("s.zarr/zarr.json")


def test_a_document_that_somebody_changes(bucket, tmp_path):
    """In the moment between a look at it and its change: where the server can tell, nobody's words are lost."""
    env = bucket.environment()
    days = F.days(tmp_path, 0, 6)
    tool.nc2zarr(*QUICK, *days[:5], STORE, env=env).ok()
    theirs = []

    def change(handler):
        if handler.command == "PUT" and handler.key.endswith("s.zarr/zarr.json") and not theirs:
            document = json.loads(bucket.objects["s.zarr/zarr.json"][0])
            document["attributes"]["by"] = "somebody else"
            theirs.append(json.dumps(document).encode())
            bucket.objects["s.zarr/zarr.json"] = (theirs[0], objects.etag_of(theirs[0]))

    bucket.fault = change
    tool.nc2zarr("--append", "time", days[5], STORE, env=env).fails(1, "zarr.json", "was changed")
    assert bucket.objects["s.zarr/zarr.json"][0] == theirs[0]


def test_readers_of_shards_that_are_replaced(bucket, tmp_path):
    """A shard takes another's name between its index and its chunks, again and again."""
    env = bucket.environment()
    days = F.days(tmp_path, 0, 16)
    layout = ("--chunks", "time=1,lat=2", "--shards", "time=16")
    tool.nc2zarr(*QUICK, *layout, *days[:8], STORE, env=env).ok()
    small = dict(bucket.objects)
    want = tool.run("rechunk", "--digest", STORE, env=env).ok().out
    tool.nc2zarr(*QUICK, "--append", "time", *days[8:], STORE, env=env).ok()
    stores = [small, {k: bucket.objects[k] for k in small}]
    bucket.objects = dict(small)
    turns = []

    def turn(handler):
        # Within the first requests, so that a reader gets on.
        if handler.command == "GET" and "/tas/c/" in handler.key and handler.headers.get("If-Match") and len(turns) < 2:
            turns.append(1)
            bucket.objects |= {k: v for k, v in stores[len(turns) % 2].items() if "/tas/c/" in k}

    bucket.fault = turn
    assert tool.run("rechunk", "--digest", "-j", "1", STORE, env=env).ok().out == want
    assert len(turns) == 2


@pytest.mark.long
def test_two_append_together(tmp_path):
    """One of them may be refused; whatever comes of it, no step is there twice or lost."""
    days = F.days(tmp_path, 0, 10)
    for conditional in (True, False):
        bucket = objects.Server(conditional=conditional)
        env = tool.environment(bucket.environment())
        tool.nc2zarr(*QUICK, "--chunks", "time=4", *days[:5], STORE, env=bucket.environment()).ok()
        runs = [subprocess.Popen([tool.program("nc2zarr"), "-q", "--append", "time", *map(str, days[5:]), STORE], env=env,
                                 stderr=subprocess.PIPE, text=True) for _ in range(3)]  # fmt: skip
        ends = [(r.communicate(timeout=300)[1], r.returncode) for r in runs]
        assert any(code == 0 for _, code in ends), ends
        assert all(code == 0 or "another run" in text for text, code in ends), ends
        F.same(folder_of(bucket, tmp_path / "got"), days)
        bucket.close()
