"""Stores on web servers and in buckets, read by every tool; a server of the tests' own (support/objects.py)."""

import json
import re
import shlex
import threading
import time

import netCDF4
import numpy as np
import pytest
from support import objects, paths, stores, tool


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Stores of one field: in chunks, in format 2, in shards, without consolidated metadata."""
    folder = tmp_path_factory.mktemp("remote")
    source = folder / "in.nc"
    with netCDF4.Dataset(source, "w") as ds:
        for d, n in (("time", 12), ("y", 32), ("x", 48)):
            ds.createDimension(d, n)
        ds.createVariable("time", "f8", ("time",))[:] = np.arange(12)
        field = np.random.default_rng(1).normal(size=(12, 32, 48)).astype("f4")
        field[4:8, :8] = 0
        ds.createVariable("g/tas", "f4", ("time", "y", "x"))[:] = field
        ds.createVariable("name", str, ("time",))[:] = np.array([f"n{i}" for i in range(12)], dtype=object)
    chunks = ("--chunks", "g/tas:time=4,y=8,x=12")
    tool.nc2zarr(source, folder / "v3.zarr", *chunks).ok()
    tool.nc2zarr(source, folder / "v2.zarr", "--zarr-format", "2", *chunks).ok()
    tool.nc2zarr(source, folder / "shards.zarr", "--shards", "g/tas:time=8,y=32,x=48", *chunks).ok()
    tool.nc2zarr(source, folder / "plain.zarr", "--no-consolidate", *chunks).ok()
    (folder / "a b+c%20=&é.zarr").symlink_to(folder / "v3.zarr")
    return folder


STORES = ("v3.zarr", "v2.zarr", "shards.zarr", "plain.zarr")


@pytest.fixture
def web(made):
    server = objects.Server(bucket=None, signed=False)
    for name in STORES:
        server.put_folder(made / name, "data/" + name)
    yield server
    server.close()


@pytest.fixture
def bucket(made):
    server = objects.Server()
    for name in STORES:
        server.put_folder(made / name, "data/" + name)
    yield server
    server.close()


def digest(store, server=None, *options, **more):
    env = server.environment(**more) if server is not None and server.bucket else None
    return stores.digest(store, env, *options)


@pytest.mark.long(ci=1)
def test_a_web_server(web, made):
    for name in ("v3.zarr", "v2.zarr", "shards.zarr"):
        assert digest(f"{web.url}/data/{name}") == digest(made / name), name
        assert digest(f"{web.url}/data/{name}::g/tas") == digest(f"{made / name}::g/tas"), name
    tool.run("rechunk", "--digest", f"{web.url}/data/plain.zarr").fails(1, "no consolidated metadata", "cannot list")
    tool.run("rechunk", "--digest", f"{web.url}/data/none.zarr").fails(1, "none.zarr")
    tool.run("rechunk", "--digest", f"{web.url}/data/v3.zarr::nothing").fails(1, "nothing")


@pytest.mark.long(ci=1)
def test_a_bucket(bucket, made):
    for page in (1000, 3):
        bucket.page = page
        for name in STORES:
            assert digest(f"s3://bucket/data/{name}", bucket) == digest(made / name), (name, page)


def test_keys_are_encoded(bucket, made):
    odd = "a b+c%20=&é~@*.zarr"
    bucket.put_folder(made / "plain.zarr", odd)
    assert digest(f"s3://bucket/{odd}", bucket) == digest(made / "plain.zarr")


@pytest.mark.long(ci=1)
def test_every_tool(bucket, web, made, out):
    env = bucket.environment()
    for source in ("s3://bucket/data/v3.zarr", f"{web.url}/data/shards.zarr"):
        tool.run("rechunk", "--overwrite", "--chunks", "g/tas:time=12,y=4,x=4", source, out, env=env).ok()
        assert digest(out) == digest(made / "v3.zarr")
        tool.nc2zarr(source, out, "--overwrite", env=env).ok()
        assert digest(out) == digest(made / "v3.zarr")
        tool.nc2zarr("--check", made / "v3.zarr", source, env=env).ok()
        assert "g/tas" in tool.run("chunkcalc", source, env=env).ok().out
        for mode in ("threads", "processes"):
            tool.run("readbench", "--no-out", "--mode", mode, "--workers", "2", "--variable", "g/tas", "--sample", "time=2", "--batch", "2",
                     "--batches", "3", "--step-time", "0ms", "--cache", "1MiB", source, env=env).ok()  # fmt: skip


def slow(server, latency, rate):
    """Each request waits, and then sends so many bytes a second."""

    def fault(handler):
        body = server.objects.get(handler.key, (b"",))[0]
        asked = re.match(r"bytes=(\d+)-(\d+)$", handler.headers.get("Range") or "")
        n = min(len(body), int(asked[2]) + 1) - int(asked[1]) if asked else len(body)
        time.sleep(latency + max(n, 0) / rate)

    server.fault = fault


@pytest.fixture(scope="module")
def fields(tmp_path_factory):
    """Enough data to be worth measuring, in small objects, large ones and shards."""
    folder = tmp_path_factory.mktemp("fields")
    values = np.random.default_rng(3).normal(size=(48, 128, 256)).astype("f4")
    with netCDF4.Dataset(folder / "in.nc", "w") as ds:
        for d, n in zip(("time", "y", "x"), values.shape):
            ds.createDimension(d, n)
        ds.createVariable("tas", "f4", ("time", "y", "x"))[:] = values
    for name, chunks, shards in (
        ("small", "8x32x32", "none"),
        ("large", "24x64x128", "none"),
        ("shards", "8x32x32", "48x128x256"),
    ):
        tool.nc2zarr(folder / "in.nc", folder / name, "--chunks", f"tas:{chunks}", "--shards", f"tas:{shards}").ok()
    return folder


@pytest.mark.long
@pytest.mark.parametrize("name", ["small", "large", "shards"])
def test_a_slow_store_is_measured(fields, name):
    """Latency and rate by requests, few of them; chunkcalc and readbench alike, and no preset of local storage."""
    server = objects.Server(bucket=None, signed=False)
    server.put_folder(fields / name, name)
    slow(server, 0.02, 40e6)
    try:
        url = f"{server.url}/{name}"
        sample = ("--sample", "8x20x20")
        document = tool.run("chunkcalc", "--json", "--recommend", *sample, url).json()
        asked = len(server.asked)
        bench = ("--no-out", "--json", "--batch", 4, "--batches", 2, "--epochs", 1, "--mode", "sync", "--step-time", "0ms")
        (session,) = tool.run("readbench", *bench, *sample, url).json()["sessions"]
    finally:
        server.close()
    cost = document["cost"]
    assert cost["storage"] == "s3" and "a request to this store" in cost["source"]
    assert 0.015 < cost["latency_s"] < 0.2  # a sleep may be longer, not shorter
    if name == "small":
        assert "too small to tell the rate" in cost["source"]
    else:
        assert cost["bandwidth_bytes_per_s"] < 80e6
    # Two requests each time at two sizes for 0.75 s, as long for elements, and what opening takes.
    assert asked <= 2 * 24 + 0.75 / 0.02 + 20
    assert "a request to this store" in session["predicted"]["costs"]
    # Requests of a call are under way together: far fewer waits than requests.
    predicted, waits = session["predicted"], 4
    assert predicted["batch_requests"] > waits or name == "shards"
    assert predicted["batch_seconds"] > 0.5 * waits * 0.02
    assert predicted["best_seconds_per_sample"] <= predicted["seconds_per_sample"]


def test_reads_of_a_log_wait_for_their_own_requests(tmp_path):
    """One at a time, each waits for a request at least, measured and predicted, whatever the chunks; none is begun before."""
    with netCDF4.Dataset(tmp_path / "in.nc", "w") as ds:
        for d, n in (("time", 8), ("y", 32), ("x", 32)):
            ds.createDimension(d, n)
        ds.createVariable("tas", "f4", ("time", "y", "x"))[:] = np.arange(8192).reshape(8, 32, 32)
    tool.nc2zarr(tmp_path / "in.nc", tmp_path / "s", "--chunks", "tas:1x32x32", "--shards", "tas:none").ok()
    with open(tmp_path / "log", "w") as log:
        for i in range(24):
            box = [[0, 8], [i, i + 8], [24 - i, 32 - i]]
            log.write(json.dumps({"array": "tas", "box": box, "time": i, "seconds": 0.5, "pid": 1, "thread": 1, "read": i + 1}) + "\n")
    server = objects.Server(bucket=None, signed=False)
    server.put_folder(tmp_path / "s", "s")
    slow(server, 0.01, 40e6)
    try:
        answer = tool.run("chunkcalc", "--json", "--access", tmp_path / "log", "--against", "8x8x8", f"{server.url}/s").json()
    finally:
        server.close()
    assert answer["access"]["streams"] == 1
    rates = {layout["rule"]: layout["reads_per_second"] for layout in answer["layouts"]}
    assert rates["present"] <= 1 / 0.01
    # Eight requests are under way together, as one would be: far from eight times as fast.
    assert max(rates.values()) < 2 * rates["present"]
    recommended = next(layout for layout in answer["layouts"] if layout["rule"] == "recommended")
    assert recommended["chunk_nbytes"] == 4 * 8192  # not objects of 4 KiB, which are as good by the clock alone


def test_no_read_of_a_log_is_faster_than_a_request(tmp_path):
    """Also where reads of the present chunks took less than the requests that were timed say."""
    with netCDF4.Dataset(tmp_path / "in.nc", "w") as ds:
        for d, n in (("time", 8), ("y", 256), ("x", 256)):
            ds.createDimension(d, n)
        ds.createVariable("tas", "f4", ("time", "y", "x"))[:] = np.random.default_rng(1).random((8, 256, 256), "f4")
    tool.nc2zarr(tmp_path / "in.nc", tmp_path / "s", "--chunks", "tas:8x256x256", "--shards", "tas:none").ok()
    with open(tmp_path / "log", "w") as log:
        for i in range(24):
            box = [[0, 8], [i, i + 8], [24 - i, 32 - i]]
            log.write(json.dumps({"array": "tas", "box": box, "time": i, "seconds": 0.5, "pid": 1, "thread": 1, "read": i + 1}) + "\n")
    server = objects.Server(bucket=None, signed=False)
    server.put_folder(tmp_path / "s", "s")

    def fault(handler):
        n = len(server.objects.get(handler.key, (b"",))[0])
        time.sleep(0.12 if handler.headers.get("Range") else 0.01 + n / 20e6)

    server.fault = fault
    try:
        answer = tool.run("chunkcalc", "--json", "--access", tmp_path / "log", "--against", "8x8x8", f"{server.url}/s").json()
    finally:
        server.close()
    rates = {layout["rule"]: layout["reads_per_second"] for layout in answer["layouts"]}
    request = min(answer["cost"]["latency_s"], answer["cost"]["range_latency_s"])
    assert request >= 0.1
    assert max(rates.values()) <= 1.001 * max(rates["present"], answer["access"]["streams"] / request), (rates, request)


def test_a_small_store_of_tiny_objects_is_measured(tmp_path):
    """Objects that are shorter than what is asked of their beginning tell the latency, at any size of the array."""
    with netCDF4.Dataset(tmp_path / "in.nc", "w") as ds:
        for d, n in (("time", 8), ("y", 16), ("x", 16)):
            ds.createDimension(d, n)
        ds.createVariable("tas", "f4", ("time", "y", "x"))[:] = np.arange(2048).reshape(8, 16, 16)
    tool.nc2zarr(tmp_path / "in.nc", tmp_path / "tiny", "--chunks", "tas:4x8x8", "--shards", "tas:none").ok()
    server = objects.Server(bucket=None, signed=False)
    server.put_folder(tmp_path / "tiny", "tiny")
    slow(server, 0.004, 40e6)
    bench = ("--no-out", "--json", "--batch", 2, "--batches", 2, "--epochs", 1, "--mode", "sync", "--step-time", "0ms")
    try:
        (far,) = tool.run("readbench", *bench, "--sample", "4x8x8", f"{server.url}/tiny").json()["sessions"]
        (here,) = tool.run("readbench", *bench, "--sample", "4x8x8", tmp_path / "tiny").json()["sessions"]
    finally:
        server.close()
    assert "a request to this store" in far["predicted"]["costs"]
    assert here["predicted"]["costs"].startswith("measured: storage on files of the source")


@pytest.mark.long(ci=1)
def test_a_loader_has_many_requests_under_way(fields):
    """Nobody said how many workers: as many threads as keep 16 requests on their way, whoever loads."""
    server = objects.Server(bucket=None, signed=False)
    server.put_folder(fields / "small", "small")
    gate, most = threading.Lock(), [0, 0]

    def wait(handler):
        with gate:
            most[0] += 1
            most[1] = max(most)
        time.sleep(0.02)
        with gate:
            most[0] -= 1

    server.fault = wait
    bench = ("--no-out", "--batch", 16, "--batches", 2, "--epochs", 1, "--step-time", "0ms", "--order", "chunks")
    try:
        for more in ((), ("--loader", "planned", "--sample", "8x32x32", "--order", "random"), ("--mode", "processes")):
            most[:] = 0, 0
            tool.run("readbench", *bench, *more, f"{server.url}/small").ok()
            assert most[1] >= 8
    finally:
        server.close()


def test_threads_that_nobody_named(web):
    """One a worker where all chunks are requested ahead; 16 in all, or more by the CPUs, where a thread waits for one."""
    bench = ("--json", "--no-out", "--sample", "4x8x12", "--variable", "g/tas", "--batch", 1, "--batches", 1, "--epochs", 1, "--step-time", "0ms")
    for name, options, waits in (("v3.zarr", (), False), ("shards.zarr", (), True), ("v3.zarr", ("--mode", "processes"), True)):
        (session,) = tool.run("readbench", *bench, *options, f"{web.url}/data/{name}").json()["sessions"]
        n = session["loader"]
        assert n["workers"] * n["worker_threads"] >= 16 if waits else n["worker_threads"] == 1, (name, options, n)


def test_requests_are_few(web, bucket):
    """Opening is one request; a chunk is one; a sharded chunk is one once the index is known."""
    web.asked.clear()
    tool.run("rechunk", "--digest", f"{web.url}/data/v3.zarr::time").ok()
    assert [(m, k) for m, k, *_ in web.asked] == [("GET", "data/v3.zarr/zarr.json"), ("GET", "data/v3.zarr/time/c/0")]
    web.asked.clear()
    tool.run("rechunk", "--digest", "-j", "1", f"{web.url}/data/shards.zarr::g/tas").ok()
    of_shards = [(m, r) for m, k, r, _ in web.asked if "/g/tas/c/" in k]
    assert {m for m, _ in of_shards} == {"GET"}
    assert sum(r.startswith("bytes=-") for _, r in of_shards) == 2  # one suffix for each index
    assert len(of_shards) == 2 + 48
    # The stored chunks of an array are listed, not asked for one by one.
    bucket.asked.clear()
    plan = tool.run("rechunk", "--dry-run", "--json", "--chunks", "g/tas:time=12,y=4,x=4", "s3://bucket/data/v3.zarr", "x.zarr",
                    env=bucket.environment()).json()  # fmt: skip
    assert plan["variables" if "variables" in plan else "arrays"]
    assert not [k for m, k, *_ in bucket.asked if m == "HEAD"]
    assert len([1 for *_, q in bucket.asked if q.get("list-type") == "2"]) <= 4


def test_counts_are_told(web, out):
    done = tool.run("rechunk", "-v", "--digest", f"{web.url}/data/v2.zarr")
    said = int(re.search(r"network: (\d+) requests", done.err).group(1))
    assert said == len(web.asked)
    schema = json.loads((paths.ROOT / "tools" / "schema" / "rechunk.json").read_text())["$defs"]["rechunk"]
    web.asked.clear()
    met = objects.faults_of(web, 0.2)
    document = tool.run("rechunk", "--json", "--chunks", "g/tas:time=12,y=4,x=4", f"{web.url}/data/v3.zarr", out).json()
    assert set(document) - {"part"} <= set(schema["properties"])
    n = document["network"]
    # libcurl itself asks again where a connection that it kept was lost before any answer.
    silent = len(web.asked) - n["get"] - n["head"]
    assert 0 <= silent <= met.count("reset") and n["put"] == 0
    assert n["retries"] == len([m for m in met if m != "late"]) - silent


@pytest.mark.parametrize("mode, nstores", [("processes", 1), ("sync", 2)])
def test_requests_of_workers_are_counted(web, tmp_path, mode, nstores):
    """As the server counts them, whoever reads; the files of a report tell what --json does."""
    out, samples = tmp_path / "out", ("--sample", "time=2,y=8,x=12", "--variable", "g/tas", "--batch", 2, "--batches", 2)
    bench = ("--json", "--out", out, *samples, "--epochs", 1, "--step-time", "0ms", "--mode", mode)
    web.asked.clear()
    document = tool.run("readbench", *bench, *[f"{web.url}/data/v3.zarr"] * nstores).json()
    n, read = document["network"], sum(s["counts"]["stored_nbytes"] for s in document["sessions"])
    assert n["get"] == sum(m == "GET" for m, *_ in web.asked) and n["received_bytes"] > read
    assert json.loads((out / "summary.json").read_text()) == document
    assert not any("network" in json.loads(p.read_text()) for p in out.glob("*/summary.json"))


def refused(bucket, *words, status=1, env=None, url="s3://bucket/data/v3.zarr", options=()):
    """One sentence, without any secret, and no storm of requests."""
    bucket.asked.clear()
    done = tool.run("rechunk", "--digest", *options, url, env=env or bucket.environment()).fails(status, *words)
    assert len(bucket.asked) <= 9
    for secret in (objects.SECRET, "TOKEN-ONE", "wrong-secret"):
        assert secret not in done.out + done.err
    return done


def test_refusals_are_one_sentence(bucket):
    env = bucket.environment
    refused(bucket, "does not know this access key", env=env(AWS_ACCESS_KEY_ID="AKIAOTHER"))
    refused(bucket, "secret key is wrong", env=env(AWS_SECRET_ACCESS_KEY="wrong-secret"))
    refused(bucket, "region us-east-1", "AWS_REGION=us-east-1", env=env(AWS_REGION="eu-west-3"))
    refused(bucket, "no such bucket", url="s3://other/data/v3.zarr")
    refused(bucket, "nothing is there", url="s3://bucket/data/none.zarr")
    refused(bucket, "expired", env=env(AWS_SESSION_TOKEN="TOKEN-ONE"))
    refused(bucket, "access denied", options=("--anonymous",))
    refused(bucket, "no AWS credentials", env=env(AWS_ACCESS_KEY_ID="", AWS_SECRET_ACCESS_KEY="", HOME="/nonexistent"))
    refused(bucket, "AWS_SECRET_ACCESS_KEY is not", env=env(AWS_SECRET_ACCESS_KEY=""))
    refused(bucket, "profile nobody", env=env(AWS_PROFILE="nobody"))
    refused(bucket, "http:// or https://", env=env(AWS_ENDPOINT_URL="ftp://x"))
    refused(bucket, "connect", env=env(AWS_ENDPOINT_URL="http://127.0.0.1:1"))
    for url in ("s3://", "s3:///x", "s3://a b/c", "http://", "http:///x"):
        tool.run("rechunk", "--digest", url).fails(2, url)
    for url in ("http://me:TOP-SECRET@host/x", "https://host/x?token=TOP-SECRET", "https://host/x#TOP-SECRET"):
        assert "TOP-SECRET" not in tool.run("rechunk", "--digest", url).fails(2, "address").err


def test_absent_may_be_forbidden(bucket, made):
    """Where listing is not allowed, S3 answers 403 for what is absent."""
    store = "s3://bucket/data/v3.zarr"
    del bucket.objects["data/v3.zarr/g/tas/c/0/0/0"]
    expected = digest(store, bucket)
    assert expected != digest(made / "v3.zarr")
    bucket.hides_absent = True
    done = tool.run("rechunk", "--digest", store, env=bucket.environment()).fails(1, "g/tas/c/0/0/0", "access denied", "absent")
    assert objects.SECRET not in done.err
    assert digest(store, bucket, "--absent-403") == expected


def test_listing_may_be_forbidden(bucket, made, tmp_path):
    """Anybody may read, nobody may list: a store whose metadata are consolidated is read; nothing is written beside unseen objects."""

    def refuse(handler):
        if "list-type" in handler.query:
            handler.reply(403, b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>", {})
            return "done"

    bucket.fault = refuse
    env, store, out = bucket.environment(), "s3://bucket/data/v3.zarr", tmp_path / "out.zarr"
    assert digest(store, bucket) == digest(made / "v3.zarr")
    tool.run("rechunk", store, out, env=env).ok()
    assert digest(out) == digest(made / "v3.zarr")
    tool.run("readbench", "-q", "--no-out", "--batch", "2", "--batches", "3", "--sample", "2x8x12", f"{store}::g/tas", env=env).ok()
    tool.run("chunkcalc", "--sample", "2x8x12", f"{store}::g/tas", env=env).ok()
    refused(bucket, "access denied", "cannot be listed", url="s3://bucket/data/plain.zarr")
    before = dict(bucket.objects)
    tool.run("rechunk", made / "v3.zarr", "s3://bucket/data/new.zarr", env=env).fails(1, "access denied", "cannot be listed")
    tool.run("rechunk", "--overwrite", made / "v3.zarr", store, env=env).fails(1, "access denied", "cannot be listed")
    assert bucket.objects == before


def test_servers_without_ranges(web):
    web.ranges = False
    digest(f"{web.url}/data/v3.zarr")
    tool.run("rechunk", "--digest", f"{web.url}/data/shards.zarr::g/tas").fails(1, "parts of objects")


@pytest.mark.parametrize("told", ["ETag", "ETag that is not compared", "Last-Modified", "length", "less"])
def test_an_object_that_changes(web, told):
    """Index and chunk are of one object, which is opened again a few times, or nothing is read."""
    key = next(k for k in web.objects if "/shards.zarr/g/tas/c/" in k)
    changes, most = [], 1
    whole = web.objects[key][0]

    def change(handler):
        if told.startswith("ETag "):
            del handler.headers["If-Match"]
        if handler.key == key and not handler.headers["Range"].startswith("bytes=-") and len(changes) < most:
            changes.append(key)
            n = len(changes)
            # Stored chunks are found by their offsets: what is added comes before them, as other chunks would.
            data = bytes(n) + whole if told == "length" else whole[-50 - n :] if told == "less" else whole
            web.objects[key] = (data, f'"another{n}"')
            web.times[key] = 1672531200 + n
        elif handler.key == key and told in ("length", "less"):
            web.objects[key] = (whole, '"whole"')

    web.hidden = set() if told.startswith("ETag") else {"ETag"} if told == "Last-Modified" else {"ETag", "Last-Modified"}

    url = f"{web.url}/data/shards.zarr::g/tas"
    want = tool.run("rechunk", "--digest", url).ok().out
    web.fault = change
    assert tool.run("rechunk", "--digest", url).ok().out == want and len(changes) == 1
    most = 1000
    tool.run("rechunk", "--digest", url).fails(1, "changed while it was read")


@pytest.mark.parametrize("ranges", [True, False], ids=["ranges", "whole"])
def test_a_length_that_head_does_not_tell(bucket, made, out, ranges):
    """It is not taken for 0: the object says it, or nothing is read."""
    bucket.hidden, bucket.ranges = {"Content-Length"}, ranges
    bucket.objects["in.nc"] = ((made / "in.nc").read_bytes(), '"x"')
    env = bucket.environment()
    copy = tool.run("rechunk", "-q", "--verify", "none", "s3://bucket/data/v3.zarr", "s3://bucket/copy.zarr", env=env)
    read = tool.nc2zarr("-q", "s3://bucket/in.nc", out, env=env)
    if ranges:
        copy.ok(), read.ok()
        assert digest("s3://bucket/copy.zarr", bucket) == digest(out) == digest(made / "v3.zarr")
    else:
        read.fails(1, "in.nc", "does not say how long it is")
        assert not copy.status or "does not say how long it is" in copy.err
        assert copy.status or digest("s3://bucket/copy.zarr", bucket) == digest(made / "v3.zarr")


def test_redirects_of_a_web_server(web, made):
    def redirect(handler):
        if handler.key.startswith("old/"):
            handler.reply(302, b"", {"Location": f"{web.url}/data/{handler.key[4:]}"})
            return "done"

    web.fault = redirect
    assert digest(f"{web.url}/old/v3.zarr") == digest(made / "v3.zarr")


@pytest.mark.few(2)
@pytest.mark.parametrize("name", STORES)
def test_faults_change_nothing(bucket, made, name):
    met = objects.faults_of(bucket, 0.2)
    assert digest(f"s3://bucket/data/{name}", bucket) == digest(made / name)
    assert len(set(met)) >= 2


def test_what_always_fails_ends_in_time(web):
    objects.faults_of(web, 1.0)
    web.fault = lambda h: h.reply(503, b"", {}) or "done"
    tool.run("rechunk", "--digest", "--timeout", "2s", f"{web.url}/data/v3.zarr").fails(1, "503", "tried")
    assert len(web.asked) < 40


def test_lengths_that_are_lies(web, made):
    """More or fewer bytes than the range has: asked again, never taken."""
    lied = []

    def lie(handler):
        r = handler.headers.get("Range") or ""
        if "/shards.zarr/g/tas/c/" in handler.key and not r.startswith("bytes=-") and len(lied) % 2 == 0 and len(lied) < 8:
            lied.append(r)
            first, last = map(int, r[6:].split("-"))
            n = len(web.objects[handler.key][0])
            wrong = last - 1 if len(lied) % 4 < 2 else last
            handler.reply(206, b"?" * (wrong - first + 1), {"Content-Range": f"bytes {first + (wrong == last)}-{wrong}/{n}"})
            return "done"
        if r:
            lied.append(r)

    web.fault = lie
    assert digest(f"{web.url}/data/shards.zarr::g/tas") == digest(f"{made / 'shards.zarr'}::g/tas")
    assert len(lied) >= 8


def test_what_is_no_http(web, made):
    """Bytes behind an answer that said it was shorter come before the next answer of their connection: asked again."""
    met = []

    def babble(handler):
        if "/c/" in handler.key and handler.key not in met:
            handler.wfile.write(b"\x01\x02\x03 nothing of HTTP\r\n")
            handler.connection.shutdown(2)
            handler.close_connection = True
        met.append(handler.key)
        return "done" if handler.close_connection else None

    web.fault = babble
    assert digest(f"{web.url}/data/v3.zarr::g/tas") == digest(f"{made / 'v3.zarr'}::g/tas")
    assert len(met) >= 6
    web.fault = lambda h: h.wfile.write(b"220 this is for mail\r\n") and setattr(h, "close_connection", True) or "done"
    web.asked.clear()
    tool.run("rechunk", "--digest", f"{web.url}/data/v3.zarr").fails(1, "does not answer in HTTP")
    assert len(web.asked) < 10


# ---- NetCDF ----


def test_a_file_is_fetched(bucket, web, made, out, tmp_path):
    """By ranges, checked to be of one object, kept in the scratch folder, and gone afterwards."""
    scratch, work = tmp_path / "scratch", tmp_path / "work"
    scratch.mkdir(), work.mkdir()
    data = (made / "in.nc").read_bytes()
    name = "in put+%é.nc"
    for server in (bucket, web):
        server.objects["data/" + name] = (data, objects.etag_of(data))
    env = bucket.environment(TMPDIR=str(scratch))
    expected = digest(made / "in.nc")
    for source in (f"s3://bucket/data/{name}", f"{web.url}/data/in%20put%2B%25%C3%A9.nc"):
        tool.nc2zarr("--overwrite", "--verify", "full", "--certificate", tmp_path / "proof.json", source, out, env=env).ok()
        assert json.loads((tmp_path / "proof.json").read_text())["input"]["path"] == source
        assert digest(out) == expected
        tool.nc2zarr("--check", source, out, env=env).ok()
        assert stores.digest(source, env) == expected
        assert "g/tas" in tool.run("chunkcalc", source, env=env).ok().out
        answer = tool.run("chunkcalc", "--sample", "1x1x1", "--variable", "tas", source, env=env).ok().out
        assert shlex.split(answer.split("\n")[2])[-2] == source
        tool.nc2zarr("--resume", source, out, env=env).ok()
        tool.run("readbench", "--no-out", "--sample", "2", source, env=env).fails(2, "not built yet")
    tool.nc2zarr(source, cwd=work, env=env).ok()
    assert [p.name for p in work.iterdir()] == ["in put+%é.zarr"]
    bucket.objects["cut.nc"] = (data[:-4000], '"cut"')
    tool.nc2zarr("s3://bucket/cut.nc", tmp_path / "x.zarr", env=env).fails(1, "s3://bucket/cut.nc")
    tool.nc2zarr("s3://bucket/none.nc", tmp_path / "x.zarr", env=env).fails(1, "none.nc")
    assert list(scratch.iterdir()) == [] and not (tmp_path / "x.zarr").exists()


# ---- credentials ----


def test_profiles(bucket, made, tmp_path):
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "config").write_text(
        f"[default]\nregion = nowhere-1\n[profile lab]\nregion = us-east-1\nendpoint_url = {bucket.url}/\ns3 =\n  addressing_style = path\n"
        f"[profile process]\nendpoint_url = {bucket.url}\ncredential_process = cat '{tmp_path}/keys.json'\n"
        "[profile sso]\nsso_session = x\n"
    )
    (tmp_path / ".aws" / "credentials").write_text(
        f"# comment\n[lab]\naws_access_key_id={objects.KEY}\naws_secret_access_key = {objects.SECRET}\n"
    )
    (tmp_path / "keys.json").write_text(json.dumps({"Version": 1, "AccessKeyId": objects.KEY, "SecretAccessKey": objects.SECRET}))
    bare = {
        "HOME": str(tmp_path),
        "AWS_EC2_METADATA_DISABLED": "true",
        **{k: "" for k in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_CONFIG_FILE", "AWS_REGION", "AWS_ENDPOINT_URL")},
    }
    for profile in ("lab", "process"):
        done = tool.run("rechunk", "--digest", "s3://bucket/data/v3.zarr", env=bare | {"AWS_PROFILE": profile}).ok()
        assert sorted(line.split() for line in done.out.splitlines()) == digest(made / "v3.zarr")
    tool.run("rechunk", "--digest", "s3://bucket/data/v3.zarr", env=bare | {"AWS_PROFILE": "sso"}).fails(1, "sso_session", "export-credentials")
    (tmp_path / "keys.json").write_text('{"Version": 1, "SecretAccessKey": "TOP-SECRET"}')
    failed = tool.run("rechunk", "--digest", "s3://bucket/data/v3.zarr", env=bare | {"AWS_PROFILE": "process"}).fails(1, "credential_process")
    assert "TOP-SECRET" not in failed.err


class Metadata:
    """The metadata service of an instance, and that of a container."""

    def __init__(self, bucket):
        self.bucket, self.lives = bucket, 3600
        self.server = objects.Server(bucket=None, signed=False)
        self.server.fault = self.answer

    def keys(self):
        end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + self.lives))
        text = {"AccessKeyId": objects.KEY, "SecretAccessKey": objects.SECRET, "Token": self.bucket.token, "Expiration": end}
        return json.dumps(text).encode()

    def answer(self, h):
        if h.command == "PUT" and h.key == "latest/api/token":
            h.reply(200, b"METADATA-TOKEN", {})
        elif h.key == "container" and h.headers.get("Authorization") == "AUTHORIZED":
            h.reply(200, self.keys(), {})
        elif h.headers.get("X-aws-ec2-metadata-token") != "METADATA-TOKEN":
            h.reply(401, b"", {})
        elif h.key == "latest/meta-data/iam/security-credentials/":
            h.reply(200, b"a-role\n", {})
        elif h.key == "latest/meta-data/iam/security-credentials/a-role":
            h.reply(200, self.keys(), {})
        return "done"


def test_instances_and_containers(bucket, made):
    bucket.token = "TOKEN-ONE"
    metadata = Metadata(bucket)
    bare = bucket.environment(AWS_ACCESS_KEY_ID="", AWS_SECRET_ACCESS_KEY="", HOME="/nonexistent", AWS_EC2_METADATA_DISABLED="")
    for place in (
        {"AWS_EC2_METADATA_SERVICE_ENDPOINT": metadata.server.url + "/"},
        {"AWS_CONTAINER_CREDENTIALS_FULL_URI": metadata.server.url + "/container", "AWS_CONTAINER_AUTHORIZATION_TOKEN": "AUTHORIZED"},
    ):
        done = tool.run("rechunk", "--digest", "s3://bucket/data/v3.zarr", env=bare | place).ok()
        assert sorted(line.split() for line in done.out.splitlines()) == digest(made / "v3.zarr")
    metadata.server.close()


def test_tokens_that_expire_are_renewed(bucket, made):
    """In the middle of a run: once by their date, once because the server says so."""
    bucket.token = "TOKEN-ONE"
    metadata = Metadata(bucket)
    env = bucket.environment(AWS_ACCESS_KEY_ID="", AWS_SECRET_ACCESS_KEY="", HOME="/nonexistent", AWS_EC2_METADATA_DISABLED="",
                             AWS_EC2_METADATA_SERVICE_ENDPOINT=metadata.server.url)  # fmt: skip
    for lives in (3600, 60):
        metadata.lives = lives
        bucket.asked.clear()
        bucket.token = "TOKEN-ONE"

        def turn(handler):
            if len(bucket.asked) == 10:
                bucket.token = "TOKEN-TWO"

        bucket.fault = turn
        done = tool.run("rechunk", "--digest", "s3://bucket/data/v3.zarr", env=env).ok()
        assert sorted(line.split() for line in done.out.splitlines()) == digest(made / "v3.zarr")
        assert len(bucket.asked) < 200
    metadata.server.close()


def test_a_role_by_web_identity(bucket, made, tmp_path):
    sts = objects.Server(bucket=None, signed=False)
    bucket.token = "TOKEN-ONE"
    (tmp_path / "token").write_text("IDENTITY\n")

    def answer(h):
        assert h.command == "POST" and b"WebIdentityToken=IDENTITY" in h.body and b"RoleArn=arn%3Aaws%3Ax" in h.body
        h.reply(200, f"""<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
            <AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>{objects.KEY}</AccessKeyId>
            <SecretAccessKey>{objects.SECRET}</SecretAccessKey><SessionToken>TOKEN-ONE</SessionToken>
            <Expiration>2090-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleWithWebIdentityResult>
            </AssumeRoleWithWebIdentityResponse>""".encode(), {"Content-Type": "text/xml"})  # fmt: skip
        return "done"

    sts.fault = answer
    env = bucket.environment(AWS_ACCESS_KEY_ID="", AWS_SECRET_ACCESS_KEY="", HOME="/nonexistent", AWS_ROLE_ARN="arn:aws:x",
                             AWS_WEB_IDENTITY_TOKEN_FILE=str(tmp_path / "token"), AWS_ENDPOINT_URL_STS=sts.url)  # fmt: skip
    done = tool.run("rechunk", "--digest", "s3://bucket/data/v3.zarr", env=env).ok()
    assert sorted(line.split() for line in done.out.splitlines()) == digest(made / "v3.zarr")
    sts.close()


def test_a_certificate_that_nobody_signed(made, tmp_path):
    ssl, subprocess = __import__("ssl"), __import__("subprocess")
    if subprocess.run(["openssl", "version"], capture_output=True).returncode != 0:
        pytest.skip("openssl is not installed")
    pem = tmp_path / "pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost", "-addext",
                    "subjectAltName=IP:127.0.0.1", "-keyout", pem, "-out", tmp_path / "cert"], check=True, capture_output=True)  # fmt: skip
    server = objects.Server(bucket=None, signed=False)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert", pem)
    server.http.socket = context.wrap_socket(server.http.socket, server_side=True)
    server.put_folder(made / "v3.zarr", "v3.zarr")
    tool.run("rechunk", "--digest", f"{server.url.replace('http', 'https')}/v3.zarr").fails(1, "certificate is not trusted")
    assert server.asked == []
    server.close()

