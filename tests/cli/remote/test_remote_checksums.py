"""Checksums of objects in a bucket: sent, held against what the server says; a bit that flips on its way is noticed."""

import re

import netCDF4
import numpy as np
import pytest

from support import objects, stores, tool

LAYOUTS = {"chunks": ("--chunks", "v:time=4,x=1000"), "shards": ("--chunks", "v:time=4,x=1000", "--shards", "v:time=8,x=2000")}


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("checksums") / "in.nc"
    with netCDF4.Dataset(path, "w") as ds:
        for d, n in (("time", 8), ("x", 4000)):
            ds.createDimension(d, n)
        ds.createVariable("v", "f4", ("time", "x"))[:] = np.random.default_rng(3).normal(size=(8, 4000)).astype("f4")
    return path


def digest(store, bucket=None, *options):
    env = bucket.environment() if bucket else None
    return stores.digest(store, env, *options)[0][0]


def flip(bucket, part, times, way):
    """A bit of objects whose key has PART flips in the first TIMES requests of WAY; the server says what it had."""
    met = []

    def fault(handler):
        if handler.command != way or part not in handler.key or len(met) >= times:
            return None
        if way == "PUT":
            met.append(handler.key)
            handler.body = handler.body[:-1] + bytes([handler.body[-1] ^ 1])
            return None
        try:
            status, body, headers = handler.answer(bucket)
        except objects.Refusal:
            return None
        met.append(handler.key)
        handler.reply(status, body[:-1] + bytes([body[-1] ^ 1]), headers)
        return "done"

    bucket.fault = fault
    return met


@pytest.mark.parametrize("kind", ["crc32c", "md5"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_object_has_one(bucket, source, kind, layout):
    done = tool.nc2zarr("-v", "--checksum", kind, *LAYOUTS[layout], source, "s3://bucket/out.zarr", env=bucket.environment()).ok()
    assert {w for w, _ in bucket.summed} == {kind}
    assert {key for _, key in bucket.summed} >= set(bucket.keys("out.zarr/"))
    assert re.search(r"(\d+) of \1 checksums of objects could be held", done.err)
    assert digest("s3://bucket/out.zarr", bucket, "--checksum", kind) == digest(source)


def test_none_but_where_it_is_wanted(bucket, source):
    tool.nc2zarr(source, "s3://bucket/out.zarr", env=bucket.environment()).ok()
    tool.nc2zarr("--overwrite", "--checksum", "none", source, "s3://bucket/out.zarr", env=bucket.environment()).ok()
    assert bucket.summed == []
    document = tool.run("rechunk", "--json", "s3://bucket/out.zarr", "s3://bucket/two.zarr", env=bucket.environment()).json()
    assert document["network"]["checksums_compared"] == 0


def test_aws_gets_crc32c(bucket, source):
    """By its name, which a proxy here stands for."""
    names = {"http_proxy": bucket.url, "no_proxy": ""}
    for host, kinds in (("s3.us-east-1.amazonaws.com", {"crc32c"}), ("s3.example.com", set()), ("xamazonaws.com", set())):
        bucket.summed.clear()
        env = bucket.environment(AWS_ENDPOINT_URL=f"http://{host}", **names)
        tool.nc2zarr("--overwrite", source, "s3://bucket/out.zarr", env=env).ok()
        assert {w for w, _ in bucket.summed} == kinds
        assert tool.run("rechunk", "--digest", "s3://bucket/out.zarr", env=env).ok().out.split()[0] == digest(source)


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", ["crc32c", "md5"])
@pytest.mark.parametrize("part", ["/v/c/", "zarr.json"])
def test_a_bit_flips_on_the_way_to_the_server(bucket, source, kind, part):
    met = flip(bucket, part, 2, "PUT")
    tool.nc2zarr("--checksum", kind, *LAYOUTS["chunks"], source, "s3://bucket/out.zarr", env=bucket.environment()).ok()
    assert len(met) == 2
    bucket.fault = None
    assert digest("s3://bucket/out.zarr", bucket) == digest(source)


@pytest.mark.few
@pytest.mark.parametrize("kind", ["crc32c", "md5"])
def test_always_flipped(bucket, source, kind):
    flip(bucket, "/v/c/", 10**9, "PUT")
    tool.nc2zarr("--checksum", kind, *LAYOUTS["chunks"], source, "s3://bucket/out.zarr", env=bucket.environment()).fails(
        1, "the server got other bytes than were sent", "BadDigest", "tried 4 times"
    )
    assert bucket.keys() == []


def stored_wrongly(handler, bucket):
    """The server keeps other bytes than it was sent, and says so by the ETag alone."""
    key = handler.key.partition("/")[2]
    wrong = handler.body[:-1] + bytes([handler.body[-1] ^ 1])
    bucket.objects[key] = (wrong, objects.etag_of(wrong))
    handler.reply(200, b"", {"ETag": objects.etag_of(wrong), "x-amz-checksum-crc32c": objects.crc32c_of(wrong)})
    return "done"


@pytest.mark.few
@pytest.mark.parametrize("kind", ["crc32c", "md5"])
def test_a_server_that_keeps_other_bytes(bucket, source, kind):
    met = []

    def fault(handler):
        if handler.command == "PUT" and "/v/c/" in handler.key and len(met) < 2:
            met.append(handler.key)
            return stored_wrongly(handler, bucket)

    bucket.fault = fault
    tool.nc2zarr("--checksum", kind, *LAYOUTS["chunks"], source, "s3://bucket/out.zarr", env=bucket.environment()).ok()
    assert len(met) == 2 and digest("s3://bucket/out.zarr", bucket) == digest(source)
    bucket.fault = lambda h: stored_wrongly(h, bucket) if h.command == "PUT" and "/v/c/" in h.key else None
    tool.nc2zarr("--overwrite", "--checksum", kind, *LAYOUTS["chunks"], source, "s3://bucket/out.zarr", env=bucket.environment()).fails(
        1, "the server has other bytes than were sent", "tried 4 times"
    )


@pytest.mark.few
@pytest.mark.parametrize("kind", ["crc32c", "md5"])
def test_a_bit_flips_on_the_way_back(bucket, source, kind):
    options = ("--codec", "none", *LAYOUTS["chunks"])
    tool.nc2zarr("--checksum", kind, *options, source, "s3://bucket/out.zarr", env=bucket.environment()).ok()
    met = flip(bucket, "/v/c/", 3, "GET")
    assert digest("s3://bucket/out.zarr", bucket, "--checksum", kind) == digest(source)
    assert len(met) == 3
    flip(bucket, "/v/c/", 3, "GET")
    assert digest("s3://bucket/out.zarr", bucket) != digest(source)  # nobody else would notice
    flip(bucket, "/v/c/", 10**9, "GET")
    tool.run("rechunk", "--digest", "--checksum", kind, "s3://bucket/out.zarr", env=bucket.environment()).fails(1, "another checksum", "tried 4 times")


@pytest.mark.few
@pytest.mark.parametrize("kind", ["crc32c", "md5"])
@pytest.mark.roomy
def test_parts_of_a_long_object(bucket, tmp_path, kind):
    with netCDF4.Dataset(tmp_path / "in.nc", "w") as ds:
        for d, n in (("time", 36), ("x", 250000)):
            ds.createDimension(d, n)
        ds.createVariable("v", "f4", ("time", "x"))[:] = np.random.default_rng(2).normal(size=(36, 250000)).astype("f4")
    options = ("--checksum", kind, "--chunks", "time=1,x=125000", "--shards", "time=36,x=250000", "--codec", "none", "--verify", "full")
    met = flip(bucket, "/v/c/", 2, "PUT")
    tool.nc2zarr(*options, tmp_path / "in.nc", "s3://bucket/out.zarr", env=bucket.environment()).ok()
    assert len(met) == 2 and len([key for w, key in bucket.summed if "/v/c/" in key]) == 3
    assert not bucket.uploads


def test_encrypted_objects_have_no_md5(bucket, source):
    tool.nc2zarr(*LAYOUTS["chunks"], source, "s3://bucket/out.zarr", env=bucket.environment()).ok()

    def encrypted(handler):
        status, body, headers = handler.answer(bucket)
        handler.reply(status, body, headers | {"ETag": '"' + "0" * 32 + '"', "x-amz-server-side-encryption": "aws:kms"})
        return "done"

    bucket.fault = lambda h: encrypted(h) if "/v/c/" in h.key and h.command == "GET" else None
    assert digest("s3://bucket/out.zarr", bucket, "--checksum", "md5") == digest(source)


def test_a_server_that_knows_none(bucket, source):
    def refuse(handler):
        if handler.headers.get("x-amz-checksum-crc32c") and "/v/c/" in handler.key:
            handler.reply(501, b"<Error><Code>NotImplemented</Code><Message>no such header</Message></Error>", {"Content-Type": "application/xml"})
            return "done"

    bucket.fault = refuse
    done = tool.nc2zarr("--checksum", "crc32c", source, "s3://bucket/out.zarr", env=bucket.environment()).fails(1, "no such header", "--checksum none")
    assert done.err.count("\n") == 1
