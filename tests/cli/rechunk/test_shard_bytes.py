"""The bytes of a shard follow from its elements: its inner chunks lie in the order of the grid, whatever made it."""

import json
import signal
import struct
import subprocess
import time

import netCDF4
import numpy as np
import pytest

from support import stores, tool


@pytest.fixture(scope="session")
def field(tmp_path_factory):
    """Chunks that are written to the file backwards; a stretch that is fill."""
    path = tmp_path_factory.mktemp("shards") / "field.nc"
    data = np.random.default_rng(3).normal(size=(96, 90, 120)).astype("f4").round(1)
    data[40:60, :45] = 1e20
    with netCDF4.Dataset(path, "w") as ds:
        for d, n in (("time", 96), ("lat", 90), ("lon", 120)):
            ds.createDimension(d, n)
        tas = ds.createVariable("tas", "f4", ("time", "lat", "lon"), zlib=True, chunksizes=(1, 90, 120), fill_value=1e20)
        for k in reversed(range(96)):
            tas[k] = data[k]
    return path


def check_order(store):
    """Of each shard: by its index, the inner chunks follow each other without gaps."""
    array = json.loads((store / "tas" / "zarr.json").read_text())
    inner = array["codecs"][0]["configuration"]["chunk_shape"]
    n = int(np.prod([s // c for s, c in zip(array["chunk_grid"]["configuration"]["chunk_shape"], inner)]))
    shards = [p for p in (store / "tas" / "c").rglob("*") if p.is_file()]
    for shard in shards:
        data, at = shard.read_bytes(), 0
        for offset, nbytes in struct.iter_unpack("<QQ", data[-16 * n - 4 : -4]):
            if offset != 2**64 - 1:
                assert offset == at, shard
                at += nbytes
        assert at == len(data) - 16 * n - 4
    return len(shards)


SHARDS = {
    "the grid": (("--chunks", "time=8,lat=15,lon=20", "--shards", "time=32,lat=45,lon=120"), ()),
    "series": (("--chunks", "time=full,lat=5,lon=6", "--shards", "time=full,lat=45,lon=60"), ("--memory", "40MiB")),
    "odd": (("--chunks", "time=7,lat=13,lon=29", "--shards", "time=35,lat=26,lon=58"), ("--memory", "40MiB")),
    "one": (("--chunks", "time=12,lat=10,lon=10", "--shards", "time=96,lat=90,lon=120"), ("--memory", "40MiB")),
    "tiny": (("--chunks", "time=1,lat=9,lon=10", "--shards", "time=48,lat=90,lon=120", "--codec", "none"), ()),
    "passed on": (("--codec", "keep", "--shards", "time=24,lat=90,lon=120"), ()),
}


@pytest.mark.few
@pytest.mark.parametrize("shards", SHARDS)
def test_threads_and_memory_do_not_matter(field, tmp_path, shards):
    options, little = SHARDS[shards]
    tool.nc2zarr("-q", "-j", "1", *options, field, tmp_path / "one.zarr").ok()
    assert check_order(tmp_path / "one.zarr") > 0
    ways = (("-j", "2"), ("-j", "4"), ("-j", "1", *little), ("-j", "3", *little), ("-j", "2", *little, "--scratch", str(tmp_path)))
    for i, way in enumerate(ways):
        tool.nc2zarr("-q", *way, *options, field, tmp_path / f"{i}.zarr").ok()
        stores.same_files(tmp_path / "one.zarr", tmp_path / f"{i}.zarr")
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]


@pytest.mark.long(ci=1)
def test_rechunk_by_every_plan(tmp_path):
    """In one pass, through scratch, in parts that read again, from shards to shards."""
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as ds:
        for d, n in (("time", 400), ("lat", 128), ("lon", 128)):
            ds.createDimension(d, n)
        data = np.random.default_rng(7).normal(size=(400, 128, 128)).astype("f4").round(0)
        ds.createVariable("tas", "f4", ("time", "lat", "lon"), chunksizes=(1, 128, 128))[:] = data
    source = tmp_path / "source.zarr"
    tool.nc2zarr("-q", "--codec", "keep", tmp_path / "a.nc", source).ok()
    options = ("--chunks", "time=400,lat=8,lon=8", "--shards", "time=400,lat=128,lon=128", "--codec", "zstd:1")
    out = {name: tmp_path / f"{name}.zarr" for name in ("one", "pass", "spill", "small", "parts", "shards")}
    tool.run("rechunk", "-q", "-j", "1", *options, source, out["one"]).ok()
    assert check_order(out["one"]) == 1
    tool.run("rechunk", "-q", "-j", "4", *options, source, out["pass"]).ok()
    spilled = tool.run("rechunk", "--json", "-j", "2", "--memory", "34MiB", *options, source, out["spill"]).json()
    assert spilled["arrays"][0]["plan"]["kind"] == "spill"
    for k in (1, 2):
        tool.run("rechunk", "-q", "--part", f"{k}/2", "-j", "2", "--memory", "34MiB", *options, source, out["parts"]).ok()
    tool.run("rechunk", "-q", "-j", "2", "--shards", "time=400,lat=64,lon=32", out["one"], out["small"]).ok()
    tool.run("rechunk", "-q", "-j", "3", "--shards", "time=400,lat=128,lon=128", out["small"], out["shards"]).ok()
    for name in ("pass", "spill", "parts", "shards"):
        stores.same_files(out["one"], out[name])


def test_a_run_that_goes_on_makes_the_same(field, tmp_path):
    options = ("-q", "-j", "3", "--codec", "zstd:12", "--chunks", "time=8,lat=15,lon=20", "--shards", "time=8,lat=45,lon=60")
    tool.nc2zarr(*options, field, tmp_path / "one.zarr").ok()
    out = tmp_path / "o.zarr"
    p = subprocess.Popen([str(a) for a in (tool.program("nc2zarr"), *options, field, out)])
    while not [f for f in out.glob("tas/c/*/*/*") if f.is_file() and not f.name.startswith(".")]:
        assert p.poll() is None
        time.sleep(0.001)
    p.send_signal(signal.SIGKILL)
    p.wait()
    tool.nc2zarr(*options, "--resume", field, out).ok()
    stores.same_files(tmp_path / "one.zarr", out)
