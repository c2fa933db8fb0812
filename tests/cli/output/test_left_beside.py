"""A run that ends well and cannot remove its own lock or journal says so, by name, and the next one knows what it has before it."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from append import files as F
from support import objects, tool

DENIED = b"<Error><Code>AccessDenied</Code><Message>no</Message></Error>"


def denied(handler):
    if handler.command == "DELETE" and ".chunkmill/" in handler.key and handler.key.split("/")[-1] in ("lock", "journal", "append-begun"):
        handler.reply(403, DENIED, {"Content-Type": "application/xml"})
        return "done"


def test_what_cannot_be_removed_is_named(tmp_path):
    bucket, days = objects.Server(), F.days(tmp_path, 0, 6)
    days = [tmp_path / f"day{i:05}.nc" for i in range(6)]
    for name in ("grown", "renewed"):
        tool.nc2zarr("-q", *days[:3], f"s3://bucket/{name}.zarr", env=bucket.environment()).ok()
    runs = {
        "made": ["-q", *days[:3]],
        "grown": ["--append", "time", *days[3:]],
        "renewed": ["--consolidate"],
        "part": ["-q", "--part", "1/1", *days[:3]],
    }
    bucket.fault = denied
    bucket.asked.clear()
    with ThreadPoolExecutor(4) as pool:
        done = dict(zip(runs, pool.map(lambda n: tool.nc2zarr(*runs[n], f"s3://bucket/{n}.zarr", env=bucket.environment()), runs)))
    for name, left in {"made": ("lock", "journal"), "grown": ("lock", "append-begun"), "renewed": ("lock",)}.items():
        assert done[name].ok().err.count("could not be removed") == 1
        assert all(f"s3://bucket/{name}.zarr.chunkmill/{key}" in done[name].err for key in left)
        assert {f"{name}.zarr.chunkmill/{key}" for key in left} <= set(bucket.objects)
    asked = [key for method, key, *_ in bucket.asked if method == "DELETE" and key.endswith(".chunkmill/lock")]
    assert len(asked) == len(set(asked)) == len(runs), "a refusal is final"
    # It needs the lock that it could not give back, and does not wait for itself.
    done["part"].fails(1, "part.zarr.chunkmill/lock", "could not be removed")
    bucket.fault = None
    tool.nc2zarr(*runs["part"], "s3://bucket/part.zarr", env=bucket.environment()).ok()
    for name, command in {"made": ["--overwrite", *days[:3]], "grown": ["--append", "time", *days[3:]]}.items():
        assert "could not" not in tool.nc2zarr(*command, f"s3://bucket/{name}.zarr", env=bucket.environment()).ok().err
    assert [key for key in bucket.objects if key.endswith(("/lock", "/journal", "begun")) and "renewed" not in key] == []
    digests = {tool.run("rechunk", "--digest", f"s3://bucket/{n}.zarr", env=bucket.environment()).ok().out.splitlines()[-1] for n in ("made", "part")}
    assert len(digests) == 1
    bucket.close()


def test_what_parts_leave_is_named(tmp_path):
    """The store is complete; what one of them had noted stays, with a word, until who makes it anew removes it."""
    bucket = objects.Server()
    F.days(tmp_path, 0, 3)
    days, store = [tmp_path / f"day{i:05}.nc" for i in range(3)], "s3://bucket/s.zarr"
    tool.nc2zarr("-q", "--part", "1/2", *days, store, env=bucket.environment()).ok()
    bucket.fault = lambda h: h.reply(403, DENIED, {"Content-Type": "application/xml"}) or "done" if (h.command, h.key[-5:]) == ("DELETE", ".done") else None
    done = tool.nc2zarr("--part", "2/2", *days, store, env=bucket.environment()).ok()
    assert done.err.count("could not") == 1 and f"{store}.chunkmill/part-1.done and 1 other file of parts could not be removed" in done.err, done
    bucket.fault = None
    assert "s.zarr/zarr.json" in bucket.objects and {"part-1.done", "part-2.done"} <= {k.split("/")[-1] for k in bucket.keys("s.zarr.chunkmill/")}
    done = tool.nc2zarr("--part", "1/2", *days, store, env=bucket.environment()).ok()
    assert "could not" not in done.err and [k for k in bucket.keys("s.zarr.chunkmill/") if "part-" in k] == []
    bucket.close()
