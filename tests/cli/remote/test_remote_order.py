"""Servers that list objects in any order, or send no ETag, as they may."""

import random
import re

import netCDF4
import numpy as np
import pytest

from support import objects, rechunked, tool

ITEM = re.compile(r"<Contents>.*?</Contents>|<CommonPrefixes>.*?</CommonPrefixes>")


@pytest.fixture
def file(tmp_path):
    with netCDF4.Dataset(tmp_path / "in.nc", "w") as ds:
        ds.createDimension("t", 12)
        ds.createDimension("x", 8)
        ds.createVariable("v", "f4", ("t", "x"))[:] = np.arange(96).reshape(12, 8) + 1
    return tmp_path / "in.nc"


def test_a_listing_in_no_order(bucket, file, tmp_path, monkeypatch):
    """Directory buckets list so; every chunk that exists is read."""
    whole = objects.Handler.list

    def shuffled(handler, server):
        status, body, head = whole(handler, server)
        text = body.decode()
        items = ITEM.findall(text)
        random.Random(3).shuffle(items)
        return status, ITEM.sub("", text).replace("</ListBucketResult>", "".join(items) + "</ListBucketResult>").encode(), head

    monkeypatch.setattr(objects.Handler, "list", shuffled)
    env = bucket.environment()
    tool.nc2zarr("-q", "--chunks", "1x8", file, "s3://bucket/s.zarr", env=env).ok()
    tool.run("rechunk", "-q", "--verify", "none", "--chunks", "12x2", "s3://bucket/s.zarr", tmp_path / "o.zarr", env=env).ok()
    tool.nc2zarr("-q", "--chunks", "12x2", file, tmp_path / "same.zarr").ok()
    assert rechunked.digests(tmp_path / "o.zarr") == rechunked.digests(tmp_path / "same.zarr")
    for k in (1, 2):
        tool.nc2zarr("-q", "--chunks", "1x8", "--part", f"{k}/2", file, "s3://bucket/p.zarr", env=env).ok()


def weak(etag):
    return {"ETag": f"W/{etag}"}


@pytest.mark.parametrize("given, said", [(lambda etag: {}, "no ETag"), (weak, "weak ETag")])
def test_a_repository_needs_etags(bucket, file, monkeypatch, given, said):
    """Without them a commit of another writer in the same moment would be lost."""
    whole = objects.Handler.get
    env = bucket.environment()
    tool.nc2zarr("-q", file, "icechunk:s3://bucket/r", env=env).ok()
    (repo,) = (key for key in bucket.objects if key.endswith("r/repo"))
    before = bucket.objects[repo]

    def bare(handler, server):
        status, body, head = whole(handler, server)
        return status, body, {k: v for k, v in head.items() if k != "ETag"} | given(head.get("ETag"))

    monkeypatch.setattr(objects.Handler, "get", bare)
    tool.nc2zarr("-q", file, "icechunk:s3://bucket/r::more", env=env).fails(1, "repo", said)
    assert bucket.objects[repo] == before


@pytest.mark.parametrize("given", [lambda etag: {}, weak])
def test_consolidated_without_etags(bucket, file, monkeypatch, given):
    """Nobody else writes, and nobody is said to."""
    whole = objects.Handler.get
    env = bucket.environment()
    tool.nc2zarr("-q", "--no-consolidate", file, "s3://bucket/s.zarr", env=env).ok()

    def bare(handler, server):
        status, body, head = whole(handler, server)
        return status, body, {k: v for k, v in head.items() if k != "ETag"} | given(head.get("ETag"))

    monkeypatch.setattr(objects.Handler, "get", bare)
    tool.nc2zarr("-q", "--consolidate", "s3://bucket/s.zarr", env=env).ok()
    assert b"consolidated_metadata" in bucket.objects["s.zarr/zarr.json"][0]
