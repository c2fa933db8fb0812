"""Statistics beside a store in a bucket, and consolidated metadata renewed there: the bytes of a folder, whatever is killed."""

import filecmp
import json
import shutil

import netCDF4
import numpy as np
import pytest
from support import objects, paths, tool

OPTIONS = ("--chunks", "g/tas:time=4,x=24", "--statistics")
STORE = "s3://bucket/a/out.zarr"
BESIDE = "a/out.zarr.statistics.zarr"


def write(path, first, last):
    with netCDF4.Dataset(path, "w") as ds:
        ds.createDimension("time", None)
        ds.createDimension("x", 48)
        ds.createVariable("time", "f8", ("time",))[:] = np.arange(first, last)
        tas = ds.createVariable("g/tas", "f4", ("time", "x"), fill_value=-1)
        tas[:] = np.random.default_rng(first).normal(size=(last - first, 48)).astype("f4")
    return path


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return write(tmp_path_factory.mktemp("statistics") / "in.nc", 0, 12)


@pytest.fixture(params=[True, False], ids=["conditional", "plain"])
def bucket(request):
    server = objects.Server(conditional=request.param)
    yield server
    server.close()


def folder(bucket, prefix, path):
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    return bucket.get_folder(prefix, path)


def same(left, right):
    files = [{str(p.relative_to(f)) for p in f.rglob("*") if p.is_file()} for f in (left, right)]
    assert files[0] == files[1] and files[0]
    assert filecmp.cmpfiles(left, right, files[0], shallow=False)[1:] == ([], [])


@pytest.mark.few
def test_the_bytes_of_a_folder(bucket, source, tmp_path):
    env = bucket.environment()
    tool.nc2zarr(*OPTIONS, source, tmp_path / "out.zarr").ok()
    for part in (1, 2):
        tool.nc2zarr("--part", f"{part}/2", *OPTIONS, source, "s3://bucket/parts.zarr", env=env).ok()
    done = tool.nc2zarr(*OPTIONS, source, STORE, env=env).ok()
    assert f"Statistics of 1 variable in {STORE}.statistics.zarr" in done.out
    want = tmp_path / "out.zarr.statistics.zarr"
    same(want, folder(bucket, BESIDE, tmp_path / "got"))
    for path in want.rglob("zarr.json"):
        path.write_text(path.read_text().replace('"out.zarr"', '"parts.zarr"'))
    same(want, folder(bucket, "parts.zarr.statistics.zarr", tmp_path / "parts"))
    tool.nc2zarr(*OPTIONS, source, STORE, env=env).fails(1, "exists")


def test_what_is_there_is_not_touched(bucket, source):
    env = bucket.environment()
    bucket.objects[f"{BESIDE}/notes.txt"] = (b"mine", objects.etag_of(b"mine"))
    tool.nc2zarr(*OPTIONS, source, STORE, env=env).fails(1, f"{STORE}.statistics.zarr", "something else")
    tool.nc2zarr("--overwrite", *OPTIONS, source, STORE, env=env).fails(1, "something else")
    assert bucket.keys() == [f"{BESIDE}/notes.txt"]


@pytest.mark.few
def test_they_are_of_the_store_as_it_is(bucket, source, tmp_path):
    """A store that is made anew or grows loses what was counted of it before, and before it shows another dataset."""
    env = bucket.environment()
    more = write(tmp_path / "more.nc", 12, 20)
    for command in (("--append", "time", more), ("--overwrite", "--chunks", "g/tas:time=12,x=48", source)):
        tool.nc2zarr("--overwrite", *OPTIONS, source, STORE, env=env).ok()
        bucket.objects[f"{BESIDE}/notes.txt"] = (b"mine", objects.etag_of(b"mine"))
        bucket.asked.clear()
        tool.nc2zarr(*command, STORE, env=env).ok()
        assert bucket.keys(BESIDE) == [f"{BESIDE}/notes.txt"]
        changes = [k for m, k, *_ in bucket.asked if m in ("PUT", "DELETE") and ("/out.zarr/" in k or BESIDE in k)]
        last = max(i for i, k in enumerate(changes) if BESIDE in k)
        assert not any("/out.zarr/" in k and k.endswith(".json") for k in changes[:last])
        del bucket.objects[f"{BESIDE}/notes.txt"]


@pytest.mark.long(ci=1)
@pytest.mark.parametrize("done", [True, False], ids=["done", "lost"])
def test_killed_while_they_are_written(bucket, source, tmp_path, done):
    """At every request that writes them: none that is whole, or all; the same command finishes them."""
    tool.nc2zarr(*OPTIONS, source, tmp_path / "out.zarr").ok()
    want, nth, killed = tmp_path / "out.zarr.statistics.zarr", 1, 0
    while True:
        bucket.objects.clear()
        status, writes, _ = objects.kill_at(bucket, nth, done, *OPTIONS, source, STORE)
        if status == 0:
            break
        if any(BESIDE in key for key in writes):
            killed += 1
            root = json.loads(bucket.objects.get(f"{BESIDE}/zarr.json", (b"{}",))[0])
            gone = writes[-1].endswith((".chunkmill-statistics", "journal", "lock"))
            assert not root or f"{BESIDE}/.chunkmill-statistics" in bucket.objects or gone
            tool.nc2zarr("--resume", *OPTIONS, source, STORE, env=bucket.environment()).ok()
            same(want, folder(bucket, BESIDE, tmp_path / "got"))
            assert not bucket.keys("a/out.zarr.chunkmill")
        # The first requests are those of the store itself, which other tests kill.
        nth += paths.tries(5, 3, 1) if nth > 12 else 4
    assert killed > 4


# ---- consolidated metadata ----


def consolidate(bucket, *options):
    return tool.nc2zarr("--consolidate", *options, STORE, env=bucket.environment())


def put_text(bucket, key, old, new):
    text = bucket.objects[key][0].replace(old, new)
    assert text != bucket.objects[key][0]
    bucket.objects[key] = (text, objects.etag_of(text))


LAYOUTS = {"format 3": (), "format 2": ("--zarr-format", "2"), "none before": ("--zarr-format", "2", "--no-consolidate")}


@pytest.mark.few(2)
@pytest.mark.parametrize("name", LAYOUTS)
def test_consolidated_as_in_a_folder(bucket, source, tmp_path, name):
    tool.nc2zarr(*LAYOUTS[name], source, STORE, env=bucket.environment()).ok()
    document = "a/out.zarr/g/tas/" + ("zarr.json" if name == "format 3" else ".zarray")
    put_text(bucket, document, b'"chunk', b' "chunk')
    local = folder(bucket, "a/out.zarr", tmp_path / "local.zarr")
    tool.nc2zarr("--consolidate", local).ok()
    consolidate(bucket).ok()
    same(local, folder(bucket, "a/out.zarr", tmp_path / "got"))
    assert not bucket.keys("a/out.zarr.chunkmill")
    bucket.asked.clear()
    assert "already" in consolidate(bucket).ok().out
    assert not [k for m, k, *_ in bucket.asked if m == "PUT" and "/out.zarr/" in k]


def at_the(nth, method, key, then):
    """A fault that does nothing to requests: THEN is called before the NTH by METHOD for KEY is answered."""
    seen = []

    def fault(handler):
        if (handler.command, handler.key) == (method, f"bucket/{key}"):
            seen.append(1)
            if len(seen) == nth:
                then()

    return fault


def test_a_document_that_changes_meanwhile_stays(bucket, source):
    """Between reading and writing: nothing of somebody else is lost; in the last moment only where the server has conditional writes."""
    root = "a/out.zarr/zarr.json"
    tool.nc2zarr(source, STORE, env=bucket.environment()).ok()
    put_text(bucket, "a/out.zarr/g/tas/zarr.json", b'"chunk', b' "chunk')
    before = dict(bucket.objects)
    bucket.asked.clear()
    consolidate(bucket).ok()
    looks = sum((m, k) == ("GET", f"bucket/{root}") for m, k, *_ in bucket.asked)
    moments = [(looks, "GET"), (1, "PUT")] if bucket.conditional else [(looks, "GET")]
    for nth, method in moments:
        bucket.objects = dict(before)
        bucket.fault = at_the(nth, method, root, lambda: put_text(bucket, root, b"{", b"{ "))
        consolidate(bucket, "-q").fails(1, "zarr.json", "somebody else")
        bucket.fault = None
        assert bucket.objects[root][0].startswith(b"{ ")


@pytest.mark.long(ci=1)
@pytest.mark.parametrize("done", [True, False], ids=["done", "lost"])
def test_killed_while_it_consolidates(bucket, source, tmp_path, done):
    """Each document is the old one or the new one, and the same command finishes it."""
    env = bucket.environment()
    tool.nc2zarr(source, STORE, env=env).ok()
    put_text(bucket, "a/out.zarr/g/tas/zarr.json", b'"chunk', b' "chunk')
    before = dict(bucket.objects)
    consolidate(bucket).ok()
    after, nth, killed = dict(bucket.objects), 1, 0
    while True:
        bucket.objects = dict(before)
        status, _, _ = objects.kill_at(bucket, nth, done, "--consolidate", STORE)
        if status == 0:
            break
        killed += 1
        for key, (data, _) in bucket.objects.items():
            assert "chunkmill/" in key or data in (before[key][0], after[key][0])
        consolidate(bucket).ok()
        assert bucket.objects == after
        nth += 1
    assert killed >= 4


def test_an_answer_that_is_lost(bucket, source):
    """The server has written, and nobody heard it: the next try finds its own text."""
    tool.nc2zarr(source, STORE, env=bucket.environment()).ok()
    put_text(bucket, "a/out.zarr/g/tas/zarr.json", b'"chunk', b' "chunk')
    lost = []

    def fault(handler):
        if handler.command == "PUT" and "/out.zarr/" in "/" + handler.key and handler.key not in lost:
            lost.append(handler.key)
            handler.answer(bucket)
            handler.connection.shutdown(2)
            handler.close_connection = True
            return "done"
        return None

    bucket.fault = fault
    consolidate(bucket).ok()
    bucket.fault = None
    assert lost and "already" in consolidate(bucket).ok().out


def test_what_cannot_be_consolidated(bucket, source):
    tool.nc2zarr(source, STORE, env=bucket.environment()).ok()
    bucket.asked.clear()
    tool.nc2zarr("--consolidate", f"{bucket.url}/bucket/a/out.zarr").fails(2, "over HTTP")
    tool.nc2zarr("--consolidate", "s3://bucket/none.zarr", env=bucket.environment()).fails(1, "no Zarr store")
    assert not [m for m, *_ in bucket.asked if m == "PUT"]
