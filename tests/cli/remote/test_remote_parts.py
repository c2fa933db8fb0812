"""One store in a bucket made by several processes: whatever their order, number and fate, the objects of a folder."""

import json
import random
import shutil
import subprocess
import threading
import time

import netCDF4
import numpy as np
import pytest
from support import failio, objects, paths, stores, tool
from support.locks import lock_text

STORE = "s3://bucket/s.zarr"
LAYOUTS = {
    "small": ("--chunks", "time=11,lat=13,lon=17"),
    "shards": ("--chunks", "time=5,lat=9,lon=10", "--shards", "time=45,lat=45,lon=70"),
    "version 2": ("--zarr-format", "2", "--chunks", "time=8,lat=9,lon=full"),
    "default": (),
}


@pytest.fixture(scope="module")
def field(tmp_path_factory):
    """Odd sizes, a stretch of fill, text, a scalar, a group."""
    path = tmp_path_factory.mktemp("parts") / "field.nc"
    rng = np.random.default_rng(3)
    with netCDF4.Dataset(path, "w") as ds:
        for d, n in (("time", None), ("lat", 45), ("lon", 70), ("station", 5)):
            ds.createDimension(d, n)
        tas = ds.createVariable("tas", "f4", ("time", "lat", "lon"), zlib=True, chunksizes=(7, 20, 30), fill_value=1e20)
        data = rng.normal(size=(60, 45, 70)).astype("f4").round(2)
        data[20:40] = 1e20
        tas[:] = data
        ds.createVariable("oro", "f8", ("lat", "lon"))[:] = rng.normal(size=(45, 70))
        ds.createVariable("crs", "i4", ())[...] = 4
        ds.createVariable("name", str, ("station",))[:] = np.array(["a", "bb", "", "dd", "e"], object)
        ds.createGroup("inner").createVariable("x", "f8", ("lat",))[:] = np.arange(45)
    return path


@pytest.fixture(params=[True, False], ids=["conditional", "unconditional"])
def bucket(request):
    server = objects.Server(conditional=request.param)
    yield server
    server.close()


def part(bucket, k, n, *args):
    return tool.nc2zarr("-q", "-j", "1", "--part", f"{k}/{n}", *args, env=bucket.environment())


def same(bucket, want, folder):
    shutil.rmtree(folder, ignore_errors=True)
    got = bucket.get_folder("s.zarr", folder)
    if "sharding_indexed" not in (want / "zarr.json").read_text() if (want / "zarr.json").exists() else True:
        assert failio.contents(got) == failio.contents(want)
    else:
        assert set(failio.contents(got)) == set(failio.contents(want))
        assert stores.digest(got) == stores.digest(want)
    assert bucket.keys("s.zarr.chunkmill") == ["s.zarr.chunkmill/complete", "s.zarr.chunkmill/plan"]
    assert bucket.uploads == {}


@pytest.mark.long
@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_order_some_twice(bucket, field, tmp_path, layout):
    tool.nc2zarr("-q", *LAYOUTS[layout], field, tmp_path / "one.zarr").ok()
    for k in (3, 1, 3, 4):
        part(bucket, k, 4, *LAYOUTS[layout], field, STORE).ok()
        assert "s.zarr/zarr.json" not in bucket.objects and "s.zarr/.zgroup" not in bucket.objects
    status = tool.nc2zarr("--parts-status", "--json", STORE, env=bucket.environment()).json()
    assert {p["number"]: p["state"] for p in status["parts"]} == {1: "done", 2: "missing", 3: "done", 4: "done"}
    tool.nc2zarr("-q", field, STORE, env=bucket.environment()).fails(1, "begun in 4 parts")
    part(bucket, 2, 4, "--codec", "zstd:3", *LAYOUTS[layout], field, STORE).fails(1)
    part(bucket, 2, 4, *LAYOUTS[layout], field, STORE).ok()
    same(bucket, tmp_path / "one.zarr", tmp_path / "got")
    before = dict(bucket.objects)
    part(bucket, 1, 4, *LAYOUTS[layout], field, STORE).ok()
    assert bucket.objects == before
    tool.nc2zarr("--check", field, STORE, env=bucket.environment()).ok()


@pytest.mark.few
def test_all_at_once(bucket, field, tmp_path):
    options = ("-q", "-j", "1", *LAYOUTS["small"], str(field))
    tool.nc2zarr(*options, tmp_path / "one.zarr").ok()
    for _ in range(paths.tries(1, 4, 20)):
        bucket.objects.clear()
        argv = [tool.program("nc2zarr"), *options, STORE, "--part"]
        runs = [subprocess.Popen([*argv, f"{k}/5"], env=tool.environment(bucket.environment()), stderr=subprocess.PIPE, text=True) for k in range(1, 6)]
        ends = [(r.communicate(timeout=300)[1], r.returncode) for r in runs]
        assert [code for _, code in ends] == [0] * 5, ends
        same(bucket, tmp_path / "one.zarr", tmp_path / "got")


@pytest.mark.long
@pytest.mark.parametrize("layout", ["small", "shards"])
def test_parts_that_are_killed_are_run_again(bucket, field, tmp_path, layout):
    """At any request that writes, done by the server or not."""
    options = ("--verify", "none", *LAYOUTS[layout], field, STORE)
    tool.nc2zarr("-q", *LAYOUTS[layout], field, tmp_path / "one.zarr").ok()
    rng = random.Random(5)
    for _ in range(paths.tries(3, 8, 200)):
        bucket.objects.clear()
        bucket.uploads.clear()
        for k in (2, 1, 3):
            objects.kill_at(bucket, rng.randint(1, 40), rng.random() < 0.5, "-q", "-j", "1", "--part", f"{k}/3", *options)
            assert "s.zarr/zarr.json" not in bucket.objects or k == 3
        for k in (1, 2, 3, 1):
            part(bucket, k, 3, *options).ok()
        same(bucket, tmp_path / "one.zarr", tmp_path / "got")


@pytest.mark.roomy
@pytest.mark.few
def test_uploads_of_a_part_that_was_killed(bucket, tmp_path):
    """A shard of 40 MB goes in parts of an upload: none is left when the store is complete."""
    with netCDF4.Dataset(tmp_path / "in.nc", "w") as ds:
        for d, n in (("time", 40), ("x", 250000)):
            ds.createDimension(d, n)
        ds.createVariable("v", "f4", ("time", "x"))[:] = np.random.default_rng(2).normal(size=(40, 250000)).astype("f4")
    options = ("--chunks", "time=1,x=125000", "--shards", "time=40,x=250000", "--codec", "none", tmp_path / "in.nc", STORE)
    seen = []

    def fault(handler):
        if handler.command == "PUT" and "partNumber" in handler.query:
            seen.append(1)
            run.kill()
            return "done"

    bucket.fault = fault
    run = subprocess.Popen([tool.program("nc2zarr"), "-q", "--part", "1/1", *map(str, options)], env=tool.environment(bucket.environment()))
    run.wait(300)
    bucket.fault = None
    bucket.settle()
    assert seen and bucket.uploads
    part(bucket, 1, 1, *options).ok()
    assert bucket.uploads == {} and "s.zarr/zarr.json" in bucket.objects


@pytest.mark.long
@pytest.mark.parametrize("accident", ["removed", "shorter"])
def test_objects_that_are_gone_are_missed(bucket, field, tmp_path, accident):
    options = (*LAYOUTS["small"], field, STORE)
    tool.nc2zarr("-q", *LAYOUTS["small"], field, tmp_path / "one.zarr").ok()
    part(bucket, 1, 2, *options).ok()
    key = bucket.keys("s.zarr/tas/c/")[0]
    if accident == "removed":
        del bucket.objects[key]
    else:
        data = bucket.objects[key][0][:-1]
        bucket.objects[key] = (data, objects.etag_of(data))
    part(bucket, 2, 2, *options).fails(1, "run part 1 again")
    assert "s.zarr/zarr.json" not in bucket.objects
    part(bucket, 1, 2, *options).ok()
    same(bucket, tmp_path / "one.zarr", tmp_path / "got")
    for k in bucket.keys("s.zarr/"):
        del bucket.objects[k]
    for k in (1, 2):
        part(bucket, k, 2, *options).ok()
    same(bucket, tmp_path / "one.zarr", tmp_path / "got")


@pytest.mark.few
@pytest.mark.parametrize("step", [-3600, 3600])
def test_the_clock_of_the_server_is_set(bucket, field, step):
    """Whatever the ages of its beats: a run that goes on keeps its lock."""
    lock = lock_text(host="elsewhere", beats=True).encode()
    key, over = "s.zarr.chunkmill/lock", threading.Event()
    bucket.objects[key] = (lock, objects.etag_of(lock))

    def go_on():
        while not over.wait(0.5):
            bucket.times[key] = time.time() + step

    bucket.times[key] = time.time() + step
    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        tool.nc2zarr("-q", *LAYOUTS["small"], field, STORE, env=bucket.environment()).fails(1, "elsewhere")
        assert bucket.objects[key][0] == lock and "s.zarr/zarr.json" not in bucket.objects
    finally:
        over.set()
        thread.join()


@pytest.mark.long
def test_a_lock_of_a_part_elsewhere(bucket, field):
    """Five minutes of silence, and a minute in which it is watched: then it is taken over."""
    options = (*LAYOUTS["small"], field, STORE)
    part(bucket, 1, 2, *options).ok()
    lock = json.dumps({"chunkmill lock": 1, "host": "elsewhere", "process": 17, "process start": 1, "boot": "", "machine": "",
                       "process space": "", "time": "2026-01-01T00:00:00Z", "part": True, "beats": True}) + "\n"  # fmt: skip
    key = "s.zarr.chunkmill/part-2.lock"
    bucket.objects[key] = (lock.encode(), objects.etag_of(lock.encode()))
    bucket.times[key] = time.time() - 600
    document = tool.nc2zarr("--parts-status", "--json", STORE, env=bucket.environment()).json()
    assert document["parts"][1]["state"] == "stale"
    part(bucket, 2, 2, *options).ok()
    assert "s.zarr/zarr.json" in bucket.objects


@pytest.mark.long(ci=1)
def test_short_answers_to_parts(bucket, field, tmp_path):
    """Answers that are shorter, and say so: a part that is done counts as done, and the last one completes the store."""
    options = (*LAYOUTS["small"], field, STORE)
    tool.nc2zarr("-q", *LAYOUTS["small"], field, tmp_path / "one.zarr").ok()
    cut = []

    def fault(handler):
        key = handler.key.partition("/")[2]
        if handler.command == "GET" and key.endswith(".done") and key in bucket.objects and cut.count(key) < 2:
            cut.append(key)
            handler.reply(200, bucket.objects[key][0][:-5], {})
            return "done"
        return None

    bucket.fault = fault
    for k in (2, 1, 3):
        part(bucket, k, 3, *options).ok()
    assert len(cut) >= 4
    same(bucket, tmp_path / "one.zarr", tmp_path / "got")
