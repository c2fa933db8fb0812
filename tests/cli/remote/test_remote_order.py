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


def test_a_repository_needs_etags(bucket, file, monkeypatch):
    """Without them a commit of another writer in the same moment would be lost."""
    whole = objects.Handler.get
    env = bucket.environment()
    tool.nc2zarr("-q", file, "icechunk:s3://bucket/r", env=env).ok()
    (repo,) = (key for key in bucket.objects if key.endswith("r/repo"))
    before = bucket.objects[repo]

    def bare(handler, server):
        status, body, head = whole(handler, server)
        return status, body, {k: v for k, v in head.items() if k != "ETag"}

    monkeypatch.setattr(objects.Handler, "get", bare)
    tool.nc2zarr("-q", file, "icechunk:s3://bucket/r::more", env=env).fails(1, "repo", "no ETag")
    assert bucket.objects[repo] == before
