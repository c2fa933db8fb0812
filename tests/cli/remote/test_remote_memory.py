"""Long shards go into a bucket in the memory of parts on their way: below --memory always, and as the plan says."""

import random
import re
import time

import netCDF4
import numpy as np
import pytest
from support import objects, paths, tool

pytestmark = pytest.mark.skipif(paths.SANITIZED, reason="a sanitizer's own memory would be counted")
MIB = 1 << 20


class Sink(objects.Server):
    """Takes long objects without keeping them; a part may take its time."""

    seconds = 0.0
    sent = {}  # bytes of each object

    def __init__(self):
        super().__init__()
        self.fault, self.sent, self.parts = self.take, {}, set()

    def take(self, handler):
        if handler.command == "PUT" and len(handler.body) > MIB:
            time.sleep(self.seconds)
            key = handler.key.partition("/")[2]
            with self.lock:
                self.sent[key] = self.sent.get(key, 0) + len(handler.body)
                self.parts.add(len(handler.body))
            if "uploadId" not in handler.query:
                self.objects[key] = (b"", '"x"')
            handler.reply(200, b"", {"ETag": '"x"'})
            return "done"
        if handler.command == "POST" and "uploadId" in handler.query:
            self.uploads.pop(handler.query["uploadId"])
            self.objects[handler.key.partition("/")[2]] = (b"", '"x"')
            handler.reply(200, b"<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>", {"Content-Type": "application/xml"})
            return "done"
        return None


@pytest.fixture
def sink():
    server = Sink()
    yield server
    assert server.uploads == {}, "an upload in parts was left over"
    server.close()


def incompressible(path, names, shape, chunks=None):
    rng = np.random.default_rng(3)
    with netCDF4.Dataset(path, "w", format="NETCDF4" if chunks else "NETCDF3_64BIT_DATA") as ds:
        for d, n in zip("tyx", shape):
            ds.createDimension(d, n)
        for name in names:
            v = ds.createVariable(name, "f4", ("t", "y", "x"), **({"chunksizes": chunks} if chunks else {}))
            for t in range(shape[0]):
                v[t] = rng.integers(0, 1 << 30, size=shape[1:], dtype="i4").view("f4")
    return path


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    folder = tmp_path_factory.mktemp("memory")
    classic = incompressible(folder / "classic.nc", "v", (64, 1024, 1024))
    chunked = incompressible(folder / "chunked.nc", "ab", (64, 512, 1024), (8, 512, 128))
    stored = folder / "stored.zarr"
    tool.nc2zarr("-q", "--codec", "none", "--chunks", "t=8,y=128,x=128", classic, stored).ok()
    return {"classic": ("nc2zarr", classic), "chunked": ("nc2zarr", chunked), "stored": ("rechunk", stored)}


def lengths(text):
    return dict(zip("tyx", text.split("x")))


def options(chunks, shards, codec):
    said = [",".join(f"{d}={n}" for d, n in lengths(text).items()) for text in (chunks, shards)]
    return ["--chunks", said[0], "--shards", said[1], "--codec", codec]


# Inner chunks of 64 KiB to 16 MiB; shards of all, of some that are open at once, of less than two parts.
GEOMETRIES = [
    ("classic", "1x128x128", "64x1024x1024", "none"),
    ("classic", "4x1024x1024", "64x1024x1024", "none"),
    ("classic", "16x128x128", "64x1024x1024", "blosc"),
    ("classic", "2x256x256", "64x512x256", "none"),
    ("classic", "1x512x512", "4x1024x1024", "none"),
    ("chunked", "8x512x128", "64x512x1024", "none"),
    ("chunked", "64x64x64", "64x512x1024", "zstd:1"),
    ("stored", "8x128x128", "64x1024x1024", "none"),
    ("stored", "1x256x256", "64x1024x512", "none"),
]


def planned(name, args, env):
    done = tool.run(name, "--dry-run", "--json", *args, env=env)
    return done.json()["memory"]["planned_nbytes"] if done.status == 0 else None


def convert(sink, sources, geometry, threads, memory):
    """Its peak, and what the plan said; with too little memory the plan has said the least, which is enough."""
    source, *rest = geometry
    name, path = sources[source]
    env = sink.environment()
    for _ in range(2):
        limit = ["--memory", memory] if memory else []
        args = ["--overwrite", "--verify", "none", *options(*rest), "-j", threads, *limit, path, "s3://bucket/out.zarr"]
        plan = planned(name, args, env)
        sink.sent.clear()
        done = tool.run(name, "-q", *args, env=env, peak=True)
        if done.status == 0:
            break
        assert plan is None and memory, done
        least = float(re.search(r"need at least ([\d.]+) MiB", done.fails(1, "not enough memory").err).group(1))
        memory = f"{int(least) + 1}MiB"
    done.ok()
    limit = int(memory[:-3]) * MIB if memory else plan
    assert done.peak <= limit, (geometry, threads, memory, done.peak / MIB, plan / MIB)
    assert plan <= limit
    assert sum(sink.sent.values()) >= 256 * MIB * (0.8 if rest[2] != "none" else 1)
    return done.peak, plan


@pytest.mark.long
@pytest.mark.parametrize("geometry", GEOMETRIES, ids="-".join)
def test_below_the_limit(sink, sources, geometry):
    """For any number of threads, with memory that is short, and with what the plan wants; servers fast and slow."""
    chance = random.Random(str(geometry))
    cases = [(threads, memory) for threads in (1, 2, 8) for memory in ("64MiB", "160MiB", None)]
    for threads, memory in cases if paths.FULL else chance.sample(cases, 4):
        sink.seconds = chance.choice((0, 0.05, 0.2))
        convert(sink, sources, geometry, threads, memory)
    assert len(sink.parts) > 0


@pytest.mark.long
def test_a_shard_is_not_held(sink, sources):
    """Without a limit: the part that is filled and eight on their way, of 16 MiB each, whatever the shard has."""
    sink.seconds = 0.1
    peak, plan = convert(sink, sources, GEOMETRIES[0], 2, None)
    assert peak < plan < (16 * 9 + 64) * MIB
    assert 16 * MIB in sink.parts


def test_the_plan_counts_parts(sink, tmp_path):
    """A dry run says more of a bucket than of a folder, and what is left of the memory decides how large parts are."""
    source = incompressible(tmp_path / "in.nc", "v", (24, 512, 1024))
    layout = ["--chunks", "t=1,y=256,x=256", "--shards", "t=24,y=512,x=1024", "--codec", "none", "-j", "2", "--verify", "none"]
    env = sink.environment()
    folder = planned("nc2zarr", ["--memory", "1GiB", *layout, source, tmp_path / "out.zarr"], env)
    bucket = planned("nc2zarr", ["--memory", "1GiB", *layout, source, "s3://bucket/out.zarr"], env)
    assert 9 * 16 * MIB <= bucket - folder < 11 * 16 * MIB
    assert {method for method, *_ in sink.asked} <= {"GET", "HEAD"}, "it is only read"
    least = tool.least_mib("nc2zarr", "-q", "--overwrite", *layout, source, "s3://bucket/out.zarr", env=env)
    for memory, part in ((f"{least}MiB", 5), ("112MiB", 8), ("1GiB", 16)):
        sink.parts.clear()
        done = tool.nc2zarr("-q", "--overwrite", "--memory", memory, *layout, source, "s3://bucket/out.zarr", env=env, peak=True)
        assert done.status == 0 and done.peak <= int(memory[:-3]) * (MIB if "M" in memory else 1 << 30), (done, done.peak / MIB)
        assert max(sink.parts) == part * MIB, memory
