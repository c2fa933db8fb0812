"""Stores made in a bucket: the same bytes as in a folder, locked, resumed, replaced; tests/cli/remote/test_remote_read.py reads."""

import filecmp
import json
import os
import signal
import socket
import subprocess
import threading
import time

import netCDF4
import numpy as np
import pytest
from support import objects, paths, stores, tool

CHUNKS = ("--chunks", "g/tas:time=4,y=8,x=12")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("write") / "in.nc"
    with netCDF4.Dataset(path, "w") as ds:
        for d, n in (("time", 12), ("y", 32), ("x", 48)):
            ds.createDimension(d, n)
        ds.createVariable("time", "f8", ("time",))[:] = np.arange(12)
        field = np.random.default_rng(1).normal(size=(12, 32, 48)).astype("f4")
        tas = ds.createVariable("g/tas", "f4", ("time", "y", "x"), fill_value=-1)
        field[4:8, :8] = -1
        tas[:] = field
        ds.createVariable("name", str, ("time",))[:] = np.array([f"n{i}" for i in range(12)], dtype=object)
    return path


@pytest.fixture
def bucket():
    server = objects.Server()
    yield server
    assert server.uploads == {}, "an upload in parts was left over"
    server.close()


def same(left, right):
    """The names and bytes of two folders; inner chunks may lie in any order in their shards."""
    files = [{str(p.relative_to(f)) for p in f.rglob("*") if p.is_file()} for f in (left, right)]
    assert files[0] == files[1]
    assert stores.digest(left) == stores.digest(right)
    if "sharding_indexed" in (left / "zarr.json").read_text() if (left / "zarr.json").exists() else False:
        return
    assert filecmp.cmpfiles(left, right, files[0], shallow=False)[1:] == ([], [])


LAYOUTS = {
    "chunks": CHUNKS,
    "format 2": ("--zarr-format", "2", *CHUNKS),
    "shards": ("--shards", "g/tas:time=8,y=32,x=48", "-j", "1", *CHUNKS),
}


@pytest.mark.few
@pytest.mark.parametrize("name", LAYOUTS)
def test_the_bytes_of_a_folder(bucket, source, tmp_path, name):
    env = bucket.environment()
    options = LAYOUTS[name]
    tool.nc2zarr(*options, source, tmp_path / "local.zarr").ok()
    tool.nc2zarr("--verify", "full", *options, source, "s3://bucket/a/out.zarr", env=env).ok()
    assert not bucket.keys("a/out.zarr.chunkmill")
    same(tmp_path / "local.zarr", bucket.get_folder("a/out.zarr", tmp_path / "remote"))
    tool.nc2zarr("--check", source, "s3://bucket/a/out.zarr", env=env).ok()
    tool.run("rechunk", "-j", "1", "s3://bucket/a/out.zarr", "s3://bucket/copy.zarr", env=env).ok()
    same(tmp_path / "local.zarr", bucket.get_folder("copy.zarr", tmp_path / "copy"))


@pytest.mark.parametrize("remote", [False, True], ids=["folder", "bucket"])
def test_a_node_that_was_written_is_checked(bucket, source, tmp_path, remote):
    """STORE::NODE as --check takes it, whole or a part; each object is asked for once, and what is read is no output."""
    env = bucket.environment() if remote else None
    store = "s3://bucket/out.zarr" if remote else tmp_path / "out.zarr"
    check = lambda *words: tool.nc2zarr("-q", "--check", *words, env=env)  # noqa: E731
    tool.nc2zarr("-q", *CHUNKS, source, f"{store}::deep/er", env=env).ok()
    bucket.asked.clear()
    check("--certificate", tmp_path / "c.json", source, f"{store}::deep/er").ok()
    assert not remote or not {m for m, *_ in bucket.asked} - {"GET"}
    assert json.loads((tmp_path / "c.json").read_text())["reproducible"]
    check("--subset", "time=0:4", source, f"{store}::/deep/er/").ok()
    with netCDF4.Dataset(tmp_path / "other.nc", "w") as ds:
        ds.createDimension("time", 12)
        ds.createVariable("time", "f8", ("time",))[:] = np.arange(12) + 1
    for words, difference in (((tmp_path / "other.nc", f"{store}::deep/er"), "time: element 0"), ((source, f"{store}::deep"), "the array is missing")):
        done = check(*words)
        assert done.status == 3 and difference in done.err, str(done)
    check(source, f"{store}::nowhere").fails(1, f"{store}::nowhere")
    if not remote:
        check("--certificate", store / "deep" / "c.json", source, f"{store}::deep/er").fails(2, "lies in")


def test_dots_of_a_key_are_its_own(bucket, source):
    """They lead into no other bucket and no other folder."""
    for prefix in ("../other/x.zarr", "dot/../x.zarr", "./x.zarr"):
        tool.nc2zarr("-q", source, f"s3://bucket/{prefix}", env=bucket.environment()).ok()
        assert bucket.keys() and all(key.startswith(f"{prefix}/") for key in bucket.keys())
        tool.nc2zarr("-q", "--check", source, f"s3://bucket/{prefix}", env=bucket.environment()).ok()
        bucket.objects.clear()


def test_metadata_come_last(bucket, source):
    bucket.asked.clear()
    tool.nc2zarr("--verify", "none", *CHUNKS, source, "s3://bucket/out.zarr", env=bucket.environment()).ok()
    puts = [k for m, k, *_ in bucket.asked if m == "PUT" and "/out.zarr/" in k]
    assert puts[-1] == "bucket/out.zarr/zarr.json"
    first = min(i for i, k in enumerate(puts) if k.endswith("zarr.json"))
    assert not any("/c/" in k for k in puts[first:])


@pytest.mark.long(ci=1)
def test_large_objects_go_in_parts(bucket, tmp_path):
    """A shard of 40 MB: parts of 16 MiB, in any order of its chunks; the memory is that of parts."""
    with netCDF4.Dataset(tmp_path / "in.nc", "w") as ds:
        for d, n in (("time", 40), ("x", 250000)):
            ds.createDimension(d, n)
        v = ds.createVariable("v", "f4", ("time", "x"))
        v[:] = np.random.default_rng(2).normal(size=(40, 250000)).astype("f4")
    options = ("--chunks", "time=1,x=125000", "--shards", "time=40,x=250000", "--codec", "none", "--verify", "full")
    env = bucket.environment()
    tool.nc2zarr(*options, tmp_path / "in.nc", "s3://bucket/out.zarr", env=env).ok()
    asked = [(m, q) for m, k, _, q in bucket.asked if k == "bucket/out.zarr/v/c/0/0"]
    assert [m for m, q in asked if "uploads" in q] == ["POST"]
    assert sorted(q["partNumber"] for _, q in asked if "partNumber" in q) == ["1", "2", "3"]
    assert [len(bucket.objects["out.zarr/v/c/0/0"][0])] == [40_000_000 + 80 * 16 + 4]
    tool.nc2zarr("--check", tmp_path / "in.nc", "s3://bucket/out.zarr", env=env).ok()


def test_what_is_there_is_not_touched(bucket, source):
    env = bucket.environment()
    bucket.objects["out.zarr/precious"] = (b"mine", objects.etag_of(b"mine"))
    tool.nc2zarr(source, "s3://bucket/out.zarr", env=env).fails(1, "exists")
    tool.nc2zarr("--overwrite", source, "s3://bucket/out.zarr", env=env).fails(1, "not a Zarr store")
    assert bucket.keys() == ["out.zarr/precious"]
    del bucket.objects["out.zarr/precious"]
    tool.nc2zarr(*CHUNKS, source, "s3://bucket/out.zarr", env=env).ok()
    for key in ("out.zarr/precious", "out.zarr/g/tas/notes.txt", "out.zarr/g/tas/c/0/0/99", "out.zarr/other/c/0", "out.zarr2/zarr.json"):
        bucket.objects[key] = (b"mine", objects.etag_of(b"mine"))
    tool.nc2zarr("--overwrite", "--chunks", "g/tas:time=12,y=32,x=48", source, "s3://bucket/out.zarr", env=env).ok()
    mine = [k for k, (data, _) in bucket.objects.items() if data == b"mine"]
    assert sorted(mine) == sorted(["out.zarr/precious", "out.zarr/g/tas/notes.txt", "out.zarr/g/tas/c/0/0/99", "out.zarr/other/c/0", "out.zarr2/zarr.json"])
    assert [k for k in bucket.keys("out.zarr/g/tas/c/") if bucket.objects[k][0] != b"mine"] == ["out.zarr/g/tas/c/0/0/0"]
    for inside in ("s3://bucket/out.zarr/x", "s3://bucket/out.zarr"):
        tool.run("rechunk", "s3://bucket/out.zarr", inside, env=env).fails(1 if inside.endswith("zarr") else 2)


def listed(bucket, prefix):
    return [q for m, _, _, q in bucket.asked if m == "GET" and q.get("prefix", "").startswith(prefix)]


@pytest.mark.long(ci=1)
@pytest.mark.parametrize("page", [1000, 50])
def test_what_is_replaced_is_listed_once(bucket, tmp_path, page):
    """Pages of its objects, and one of uploads, however many arrays there are; beside them what tells which store it is."""
    rng = np.random.default_rng(4)
    with netCDF4.Dataset(tmp_path / "in.nc", "w") as ds:
        for d, n in (("t", 40), ("x", 100)):
            ds.createDimension(d, n)
        for i in range(12):
            ds.createVariable(f"g{i % 3}/h/v{i}", "f4", ("t", "x"))[:] = rng.normal(size=(40, 100))
    env = bucket.environment()
    bucket.page = page
    convert = ("nc2zarr", "-q", "--overwrite", "--verify", "none", tmp_path / "in.nc")
    tool.run(*convert, "--chunks", "t=4,x=25", "s3://bucket/out.zarr", env=env).ok()
    tool.run(*convert, "--chunks", "t=10,x=50", "s3://bucket/other.zarr", env=env).ok()
    there = bucket.keys("out.zarr/")
    bucket.objects["out.zarr/g1/notes"] = (b"mine", objects.etag_of(b"mine"))
    bucket.asked.clear()
    tool.run(*convert, "--chunks", "t=10,x=50", "s3://bucket/out.zarr", env=env).ok()
    pages = -(-(len(there) + 1) // page)
    lists = listed(bucket, "out.zarr/")
    assert len([q for q in lists if "uploads" in q]) == 1
    assert pages < len([q for q in lists if "uploads" not in q]) <= pages + 2  # two ask whether there is anything
    assert sorted(k for m, k, *_ in bucket.asked if m == "DELETE" and "/out.zarr/" in k) == [f"bucket/{k}" for k in there]
    made = {k.partition("/")[2]: bucket.objects[k][0] for k in bucket.keys("out.zarr/")}
    assert made.pop("g1/notes") == b"mine"
    assert made == {k.partition("/")[2]: bucket.objects[k][0] for k in bucket.keys("other.zarr/")}


@pytest.mark.long(ci=1)
@pytest.mark.parametrize("then", ["--resume", "--overwrite"])
def test_killed_within_an_upload(bucket, tmp_path, then):
    """Parts that nobody will complete go with the next run."""
    with netCDF4.Dataset(tmp_path / "in.nc", "w") as ds:
        for d, n in (("time", 100), ("x", 250000)):
            ds.createDimension(d, n)
        ds.createVariable("v", "f4", ("time", "x"))[:] = np.random.default_rng(2).normal(size=(100, 250000)).astype("f4")
    options = ("-q", "--chunks", "time=1,x=125000", "--shards", "time=50,x=250000", "--codec", "none", "--memory", "112MiB")
    run = begin(bucket, *options, tmp_path / "in.nc", "s3://bucket/out.zarr", until=lambda h: h.query.get("partNumber") == "3")
    bucket.kill(run)
    assert len(bucket.uploads) >= 1 and "out.zarr/zarr.json" not in bucket.keys()
    bucket.uploads["foreign"] = ("elsewhere/v", {}, False)
    tool.nc2zarr(*options, then, tmp_path / "in.nc", "s3://bucket/out.zarr", env=bucket.environment()).ok()
    assert list(bucket.uploads) == ["foreign"]
    bucket.uploads.clear()
    tool.nc2zarr("--check", tmp_path / "in.nc", "s3://bucket/out.zarr", env=bucket.environment()).ok()
    assert not bucket.keys("out.zarr.chunkmill")


@pytest.mark.long(ci=1)
def test_a_node_of_a_store(bucket, source, tmp_path):
    env = bucket.environment()
    for where in (f"{tmp_path}/local.zarr", "s3://bucket/out.zarr"):
        tool.nc2zarr(*CHUNKS, source, where, env=env).ok()
        tool.run("rechunk", "--chunks", "12x8x8", f"{source}::g/tas", f"{where}::more/deep", env=env).ok()
        tool.run("rechunk", "--overwrite", "--chunks", "12x4x8", f"{source}::g/tas", f"{where}::more/deep", env=env).ok()
        tool.run("rechunk", f"{source}::g/tas", f"{where}::more/deep", env=env).fails(1, "exists")
    same(tmp_path / "local.zarr", bucket.get_folder("out.zarr", tmp_path / "remote"))


def begin(bucket, *args, until, env=None):
    """A run that is held at the requests for which UNTIL is true, and that no answer reaches before it is gone."""
    reached, run = [], None

    def hold(handler):
        if not until(handler):
            return None
        reached.append(handler.key)
        objects.wait_until(lambda: run is not None and run.poll() is not None)
        handler.close_connection = True
        return "done"

    bucket.fault = hold
    run = subprocess.Popen([tool.program("nc2zarr"), *map(str, args)], env=tool.environment(env or bucket.environment()),
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
    objects.wait_until(lambda: reached or run.poll() is not None)
    assert reached, run.communicate()
    return run


def test_killed_and_resumed(bucket, source, tmp_path):
    env = bucket.environment()
    tool.nc2zarr(*CHUNKS, source, tmp_path / "local.zarr").ok()
    seen = []

    def at_chunk(handler):
        if handler.command == "PUT" and "/g/tas/c/" in handler.key:
            seen.append(handler.key)
        return len(seen) > 20

    run = begin(bucket, "-j", "2", *CHUNKS, source, "s3://bucket/out.zarr", until=at_chunk)
    bucket.kill(run)
    assert "out.zarr/zarr.json" not in bucket.keys() and "out.zarr.chunkmill/journal" in bucket.keys()
    tool.nc2zarr(*CHUNKS, source, "s3://bucket/out.zarr", env=env).fails(1, "--resume")
    tool.nc2zarr("--resume", "--chunks", "g/tas:time=2,y=8,x=12", source, "s3://bucket/out.zarr", env=env).fails(1, "--overwrite")
    bucket.asked.clear()
    done = tool.nc2zarr("--resume", *CHUNKS, source, "s3://bucket/out.zarr", env=env).ok()
    again = [k for m, k, *_ in bucket.asked if m == "PUT" and "/g/tas/c/" in k]
    assert 0 < len(again) < 44, done
    same(tmp_path / "local.zarr", bucket.get_folder("out.zarr", tmp_path / "remote"))
    assert not bucket.keys("out.zarr.chunkmill")


def test_one_run_at_a_time(bucket, source):
    env = bucket.environment()
    run = begin(bucket, "-j", "1", *CHUNKS, source, "s3://bucket/out.zarr", until=lambda h: "/g/tas/c/" in h.key and h.command == "PUT")
    bucket.fault = None
    for options in ((), ("--overwrite",), ("--resume",), ("--overwrite", "--break-lock")):
        tool.nc2zarr(*options, source, "s3://bucket/out.zarr", env=env).fails(1, "another run is writing it")
    bucket.kill(run)
    # One that cannot be seen from here is believed to run, until somebody says otherwise.
    lock = json.loads(bucket.objects["out.zarr.chunkmill/lock"][0])
    lock["host"] = "elsewhere"
    data = (json.dumps(lock) + "\n").encode()
    bucket.objects["out.zarr.chunkmill/lock"] = (data, objects.etag_of(data))
    tool.nc2zarr("--overwrite", source, "s3://bucket/out.zarr", env=env).fails(1, "elsewhere")
    tool.nc2zarr("--overwrite", "--break-lock", source, "s3://bucket/out.zarr", env=env).ok()
    assert not bucket.keys("out.zarr.chunkmill")


@pytest.mark.long
def test_two_begin_together(bucket, source):
    for conditional in (True, False):
        bucket.conditional = conditional
        for _ in range(3):
            bucket.objects.clear()
            runs = [subprocess.Popen([tool.program("nc2zarr"), *CHUNKS, source, "s3://bucket/out.zarr"], env=tool.environment(bucket.environment()),
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]  # fmt: skip
            ends = [(r.communicate()[1], r.returncode) for r in runs]
            assert sorted(code for _, code in ends) in ([0, 1], [0, 0]), ends
            for text, code in ends:
                assert code == 0 or "exists" in text or "another run" in text or "changed it meanwhile" in text, ends
            tool.nc2zarr("--check", source, "s3://bucket/out.zarr", env=bucket.environment()).ok()
            assert not bucket.keys("out.zarr.chunkmill")


def test_a_server_without_conditional_writes(bucket, source):
    bucket.conditional = False
    done = tool.nc2zarr(source, "s3://bucket/out.zarr", env=bucket.environment()).ok()
    assert "advisory" in done.err


def test_stopped_by_a_signal(bucket, source, tmp_path):
    env = bucket.environment()
    count = []

    def slow(handler):
        if handler.command == "PUT" and "/g/tas/c/" in handler.key:
            count.append(1)
            time.sleep(0.05)

    bucket.fault = slow
    run = subprocess.Popen([tool.program("nc2zarr"), "-j", "2", *CHUNKS, source, "s3://bucket/out.zarr"], env=tool.environment(env),
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # fmt: skip
    objects.wait_until(lambda: len(count) > 5)
    run.send_signal(signal.SIGTERM)
    err = run.communicate(timeout=300)[1]
    assert run.returncode == -signal.SIGTERM or run.returncode == 128 + signal.SIGTERM
    assert "--resume" in err
    bucket.fault = None
    tool.nc2zarr("--resume", *CHUNKS, source, "s3://bucket/out.zarr", env=env).ok()
    tool.nc2zarr(*CHUNKS, source, tmp_path / "local.zarr").ok()
    same(tmp_path / "local.zarr", bucket.get_folder("out.zarr", tmp_path / "remote"))


@pytest.mark.few
@pytest.mark.parametrize("name", LAYOUTS)
def test_faults_change_nothing(bucket, source, tmp_path, name):
    """At 20 % of requests, answers to writes lost among them."""
    tool.nc2zarr(*LAYOUTS[name], source, tmp_path / "local.zarr").ok()
    met = objects.faults_of(bucket, 0.2, seed=3)
    tool.nc2zarr("--verify", "full", *LAYOUTS[name], source, "s3://bucket/out.zarr", env=bucket.environment()).ok()
    bucket.fault = None
    assert len(set(met)) >= 3
    same(tmp_path / "local.zarr", bucket.get_folder("out.zarr", tmp_path / "remote"))
    assert not bucket.keys("out.zarr.chunkmill")


def kind_of(handler):
    """The kind of a request that writes: method, subresource and condition."""
    if handler.command not in ("PUT", "POST", "DELETE"):
        return None
    condition = next((name for name in ("If-Match", "If-None-Match") if name in handler.headers), "")
    below = next((name for name in ("uploads", "partNumber", "uploadId") if name in handler.query), "")
    return handler.command, below, condition


IN_PARTS = ("--chunks", "time=1,x=125000", "--shards", "time=36,x=250000", "--codec", "none")  # a shard of 36 MB, in parts


@pytest.fixture(scope="module")
def long_source(tmp_path_factory):
    path = tmp_path_factory.mktemp("long") / "in.nc"
    with netCDF4.Dataset(path, "w") as ds:
        for d, n in (("time", 36), ("x", 250000)):
            ds.createDimension(d, n)
        ds.createVariable("v", "f4", ("time", "x"))[:] = np.random.default_rng(2).normal(size=(36, 250000)).astype("f4")
    return path


@pytest.mark.roomy
def test_an_answer_that_is_lost(bucket, long_source):
    """The server has done what it was asked, and nobody hears of it: puts, parts, both ends of an upload, the lock."""

    def kind_beside_another(handler):
        if "uploads" in handler.query and handler.command == "POST":
            bucket.uploads["another's"] = (handler.key.partition("/")[2] + "0", {}, False)  # of a key that only begins so
        return kind_of(handler)

    lost = objects.lose_answers(bucket, kind_beside_another)
    tool.nc2zarr(*IN_PARTS, "--verify", "full", long_source, "s3://bucket/out.zarr", env=bucket.environment()).ok()
    assert {("PUT", "", ""), ("PUT", "", "If-None-Match"), ("PUT", "partNumber", ""), ("POST", "uploads", ""), ("POST", "uploadId", ""),
            ("DELETE", "", "")} <= lost  # fmt: skip
    assert list(bucket.uploads) == ["another's"]
    bucket.uploads.clear()
    assert not bucket.keys("out.zarr.chunkmill")


CHANGES = {
    "overwrite": ({("PUT", "", ""), ("PUT", "", "If-None-Match"), ("DELETE", "", "")}, ["--overwrite", "s3://bucket/out.zarr"]),
    "append": ({("PUT", "", "If-Match"), ("PUT", "", "If-None-Match"), ("DELETE", "", "")}, ["--append", "time", "s3://bucket/out.zarr"]),
    "icechunk": ({("PUT", "", ""), ("PUT", "", "If-None-Match")}, ["icechunk:s3://bucket/new"]),
    "icechunk, append": ({("PUT", "", ""), ("PUT", "", "If-Match")}, ["--append", "time", "icechunk:s3://bucket/repo"]),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("of", ["kind", "object"])
def test_an_answer_that_is_lost_while_a_store_changes(bucket, tmp_path, name, of):
    """Of each kind of request, or of the puts of each object: what is there in the end is whole, and nothing that belongs to it is removed."""
    for day in range(2):
        with netCDF4.Dataset(tmp_path / f"{day}.nc", "w") as ds:
            ds.createDimension("time", None)
            ds.createVariable("time", "f8", ("time",))[:] = np.arange(4) + 4 * day
            ds.createVariable("v", "f4", ("time",))[:] = np.arange(4) + 10 * day
    kinds, command = CHANGES[name]
    bucket.strict = True
    env, place = bucket.environment(), command[-1]
    new = [tmp_path / "1.nc"] if "--append" in command else [tmp_path / "0.nc"]
    if not place.endswith("/new"):
        tool.nc2zarr("-q", "--chunks", "time=2", tmp_path / "0.nc", place, env=env).ok()
    lost = objects.lose_answers(bucket, kind_of if of == "kind" else lambda h: h.key if h.command == "PUT" else None)
    tool.nc2zarr("-q", *([] if "--append" in command else ["--chunks", "time=2"]), *command[:-1], *new, place, env=env).ok()
    bucket.fault = None
    assert kinds <= lost if of == "kind" else len(lost) > 5
    tool.nc2zarr("-q", "--chunks", "time=2", *([tmp_path / "0.nc"] if "--append" in command else []), *new, tmp_path / "same.zarr").ok()
    assert stores.digest(place, env) == stores.digest(tmp_path / "same.zarr")
    assert len(bucket.keys("repo/overwritten/")) == (1 if name == "icechunk, append" else 0)


@pytest.mark.roomy
@pytest.mark.parametrize("there", ["nothing", "an older object", "an older object made of parts"])
def test_an_upload_that_the_server_loses(bucket, long_source, there):
    """An object of the same length need not be the new one."""
    key = "out.zarr/v/c/0/0"

    def lose(handler):
        if handler.command == "POST" and "uploadId" in handler.query:
            bucket.uploads.clear()
            if there != "nothing":
                old = bytes(36_000_000 + 72 * 16 + 4)
                bucket.objects[key] = (old, objects.etag_of(old) if there == "an older object" else '"' + "0" * 32 + '-3"')

    bucket.fault = lose
    tool.nc2zarr(*IN_PARTS, "--verify", "none", long_source, "s3://bucket/out.zarr", env=bucket.environment()).fails(1, "v/c/0/0", "lost an upload")
    assert "out.zarr/zarr.json" not in bucket.objects


def test_a_run_that_is_stopped_gives_its_lock_back(bucket, source):
    """A run that is stopped asks for nothing twice, but for this: in which requests the server fails is chance."""
    now = {"written": False, "stopped": False, "failed": 0}
    argv = [tool.program("nc2zarr"), "--verify", "full", *CHUNKS, source, "s3://bucket/out.zarr"]

    def fault(handler):
        if handler.key.endswith("out.zarr/zarr.json"):
            now["written"] |= handler.command == "PUT"
        elif now["written"] and not now["stopped"] and "/c/" in handler.key:
            now["stopped"] = True
            process.send_signal(signal.SIGTERM)
        if now["stopped"] and handler.key.endswith("/lock") and now["failed"] < 3:
            now["failed"] += 1
            handler.reply(503, b"", {})
            return "done"
        if now["stopped"] and "/c/" in handler.key:  # else it is done before it hears
            ended.wait(300)
            handler.close_connection = True
            return "done"

    ended = threading.Event()
    bucket.fault = fault
    process = subprocess.Popen(list(map(str, argv)), env=tool.environment(bucket.environment()), stderr=subprocess.PIPE, text=True)
    said = process.communicate(timeout=300)[1]
    ended.set()
    assert process.returncode == -signal.SIGTERM and "the store is complete, but not verified" in said, said
    assert now["failed"] == 3 and not bucket.keys("out.zarr.chunkmill")


def test_a_lock_that_was_put_and_not_heard_of_is_taken_back(bucket, source):
    """The server has put it, and then fails for as long as the run waits."""
    now = {"put": 0}

    def fault(handler):
        if not handler.key.endswith("/lock"):
            return None
        if handler.command == "PUT":
            now["put"] += 1
            bucket.objects["out.zarr.chunkmill/lock"] = (handler.body, objects.etag_of(handler.body))
            handler.reply(403, b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>", {"Content-Type": "application/xml"})
            return "done"

    bucket.fault = fault
    tool.nc2zarr(*CHUNKS, source, "s3://bucket/out.zarr", env=bucket.environment()).fails(1, "cannot be locked", "access denied")
    assert now["put"] and bucket.keys() == []


def test_what_a_server_refuses(bucket, source):
    """One sentence; nothing half there, no upload left."""
    def refuse(handler):
        if handler.command == "PUT" and "/g/tas/c/" in handler.key:
            handler.reply(403, b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>", {"Content-Type": "application/xml"})
            return "done"

    bucket.fault = refuse
    done = tool.nc2zarr(*CHUNKS, source, "s3://bucket/out.zarr", env=bucket.environment()).fails(1, "access denied", "g/tas")
    assert objects.SECRET not in done.err
    assert bucket.keys() == []
    tool.nc2zarr(source, "s3://other/out.zarr", env=bucket.environment()).fails(1, "no such bucket")


@pytest.mark.parametrize("only, ntests", [pytest.param([], 15, marks=pytest.mark.long), (["*list*"], 2)])
def test_conformance(bucket, only, ntests):
    """The suite of all stores, with and without conditional writes."""
    for bucket.conditional in (True, False):
        program = paths.BUILD / "tests" / "bin" / "store_conformance"
        done = subprocess.run([program, f"s3://bucket/{bucket.conditional}", *only], env=tool.environment(bucket.environment()), capture_output=True, text=True)
        assert done.returncode == 0 and f"{ntests} test(s) run" in done.stdout + done.stderr, done.stdout[-3000:] + done.stderr[-3000:]


def test_nothing_is_written_over_http(bucket, source):
    tool.run("rechunk", source, "http://127.0.0.1:1/x.zarr").fails(2, "http")
    assert bucket.keys() == [] and not os.path.exists("s3:")


def test_short_answer_while_verifying(bucket, source):
    """An answer that is shorter, and says so, is no difference: the object is read once more; one that stays short is."""
    cut = []

    def fault(handler, always=False):
        if handler.command == "GET" and handler.key.endswith("c/0/1/0") and (always or handler.key not in cut):
            cut.append(handler.key)
            handler.reply(200, bucket.objects[handler.key.partition("/")[2]][0][:-5], {})
            return "done"
        return None

    bucket.fault = fault
    tool.nc2zarr("--verify", "full", *CHUNKS, source, "s3://bucket/out.zarr", env=bucket.environment()).ok()
    assert len(cut) == 1
    bucket.fault = lambda handler: fault(handler, always=True)
    done = tool.nc2zarr("--verify", "full", "--overwrite", *CHUNKS, source, "s3://bucket/out.zarr", env=bucket.environment())
    assert done.status == 3 and "cannot be read from the store" in done.err, done


def test_empty_folders_are_nothing(bucket, source):
    """SeaweedFS lists the folders of objects that were deleted."""
    bucket.folders = {"out.zarr/g/", "out.zarr.statistics.zarr/mean/"}
    tool.nc2zarr("-q", "--statistics", *CHUNKS, source, "s3://bucket/out.zarr", env=bucket.environment()).ok()
    tool.nc2zarr("--check", source, "s3://bucket/out.zarr", env=bucket.environment()).ok()


@pytest.mark.parametrize("options", [(), ("--statistics",)], ids=["", "statistics"])
def test_a_failed_run_that_cannot_tidy_up(bucket, tmp_path, options):
    """Chunks that the server does not remove stay somebody's: resume finishes what they belong to."""
    with netCDF4.Dataset(tmp_path / "in.nc", "w") as ds:
        ds.createDimension("x", 40)
        ds.createVariable("v", "f4", ("x",))[:] = range(40)
    command = ("-q", "-j", "1", *options, "--chunks", "v:x=4", tmp_path / "in.nc", "s3://bucket/s.zarr")

    def fault(handler):
        if (handler.command, handler.key[-6:]) in (("PUT", "/v/c/7"), ("DELETE", "/v/c/2")):
            handler.reply(403, b"<Error><Code>AccessDenied</Code></Error>", {"Content-Type": "application/xml"})
            return "done"

    bucket.fault = fault
    tool.nc2zarr(*command, env=bucket.environment()).fails(1, "v/c/7", "--resume finishes it")
    assert "s.zarr/v/c/2" in bucket.objects and "s.zarr/zarr.json" not in bucket.objects
    bucket.fault = None
    tool.nc2zarr("--resume", *command, env=bucket.environment()).ok()
    tool.nc2zarr("--check", tmp_path / "in.nc", "s3://bucket/s.zarr", env=bucket.environment()).ok()
    assert not bucket.keys("s.zarr.chunkmill/")


def test_a_small_body_comes_with_its_headers(bucket, source, monkeypatch):
    """A run that is killed leaves no request that ends behind its headers: some servers take such a one for an object of no bytes."""
    readinto = socket.SocketIO.readinto
    reads = {}

    def counted(self, buffer):
        n = readinto(self, buffer)
        reads[self] = reads.get(self, 0) + (n > 0)
        return n

    def fault(handler):
        n = reads.pop(handler.rfile.raw)
        if handler.command in ("PUT", "POST") and len(handler.body) < 4096:  # as much as this server reads at once
            small.append((handler.key, n))

    small = []
    monkeypatch.setattr(socket.SocketIO, "readinto", counted)
    bucket.fault = fault
    tool.nc2zarr("-q", *CHUNKS, source, "s3://bucket/out.zarr", env=bucket.environment()).ok()
    assert len(small) > 5 and {n for _, n in small} == {1}, small
