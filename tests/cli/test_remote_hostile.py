"""Servers that lie, and what they must not get (server of support/objects.py)."""

import json
import time

import pytest
from support import objects, tool

ARRAY = {"zarr_format": 2, "shape": [1], "chunks": [1], "dtype": "<f8", "compressor": None, "filters": None, "fill_value": 0, "order": "C"}


@pytest.fixture
def bucket():
    server = objects.Server()
    yield server
    server.close()


@pytest.fixture
def web():
    server = objects.Server(bucket=None, signed=False)
    server.objects = {k: (v, objects.etag_of(v)) for k, v in store("a.zarr/").items()}
    yield server
    server.close()


def store(prefix):
    return {
        f"{prefix}.zmetadata": json.dumps({"zarr_consolidated_format": 1, "metadata": {".zgroup": {"zarr_format": 2}, "t/.zarray": ARRAY}}).encode(),
        f"{prefix}t/0": b"12345678",
    }


# ---- listings ----

LISTINGS = {  # what page N holds, and the token of the next one
    "one token": lambda n: (f"k{n}", "again"),
    "tokens in turn": lambda n: (f"k{n}", f"token{n % 7}"),
    "the same names": lambda n: ("k", f"token{n}"),
    "names in turn": lambda n: (f"k{n % 5}", f"token{n}"),
    "no names": lambda n: (None, f"token{n}"),
}


@pytest.mark.parametrize("kind", LISTINGS)
def test_a_listing_that_goes_round_is_an_error(bucket, kind):
    pages = []

    def listing(handler):
        if handler.query.get("list-type") != "2":
            return None
        name, token = LISTINGS[kind](len(pages))
        pages.append(name)
        assert len(pages) < 100, "it goes on and on"
        key = f"<Contents><Key>a.zarr/{name}</Key><Size>8</Size></Contents>" if name else ""
        text = f"<ListBucketResult><IsTruncated>true</IsTruncated>{key}<NextContinuationToken>{token}</NextContinuationToken></ListBucketResult>"
        handler.reply(200, text.encode(), {"Content-Type": "application/xml"})
        return "done"

    bucket.fault = listing
    tool.run("rechunk", "--digest", "s3://bucket/a.zarr", env=bucket.environment()).fails(1, "s3://bucket/a.zarr", "listing has no end")
    assert 2 <= len(pages) < 30
