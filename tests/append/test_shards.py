"""A shard that an append replaces: whoever has the index of the old one reads from the new one what it was."""

import json
import shutil
import struct
import threading

import numpy as np
import pytest
import tensorstore as ts
import zarr

from support import paths as support_paths
from support import tool

from . import files as F

MISSING = 2**64 - 1
LAYOUT = ["-q", "--chunks", "time=4,lat=3,lon=4", "--shards", "time=16,lat=6,lon=8"]
SHAPES = ([4, 3, 4], [16, 6, 8])
WRITERS = ["nc2zarr", "zarr-python", "tensorstore"]


def noise(rng, n):
    """Of n days, each compressed to another length; some are all fill."""
    keep = rng.random((n, F.NLAT, F.NLON)) < rng.random((n, 1, 1))
    data = np.where(keep, rng.random((n, F.NLAT, F.NLON)), 0).astype("f4")
    data[rng.random(n) < 0.15] = 1e20
    return data


def rewrite(store, data, writer, location, shapes=SHAPES):
    """The shards of tas as another program makes them, with the index at another end and room for days to come."""
    path = store / "tas" / "zarr.json"
    document = json.loads(path.read_text())
    document["codecs"][0]["configuration"].update(index_location=location, chunk_shape=shapes[0])
    document["chunk_grid"]["configuration"]["chunk_shape"] = shapes[1]
    path.write_text(json.dumps(document))
    shutil.rmtree(store / "tas" / "c")
    if writer == "tensorstore":
        spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(store / "tas")}}
        ts.open(spec, open=True, write=True).result().write(data).result()
    else:
        zarr.open_array(store, path="tas", mode="r+", zarr_format=3)[...] = data
    zarr.consolidate_metadata(store)


def make(folder, files, data, writer, location):
    store = folder / "s.zarr"
    tool.nc2zarr(*LAYOUT, *files, store).ok()
    if writer != "nc2zarr":
        rewrite(store, data, writer, location)
    return store


def shards(store):
    return {p: p.read_bytes() for p in sorted((store / "tas" / "c").rglob("*")) if p.is_file()}


def index(stored, location, n):
    nbytes = 16 * n + 4
    at = 0 if location == "start" else len(stored) - nbytes
    numbers = struct.unpack_from(f"<{2 * n}Q", stored, at)
    return [e for e in zip(numbers[::2], numbers[1::2], strict=True) if e != (MISSING, MISSING)]


def check_old_indices(store, before, after, location):
    """How many inner chunks are where the old indices say, in shards that were replaced."""
    found = 0
    tas = zarr.open_array(store, path="tas", mode="r")
    n = np.prod([s // c for s, c in zip(tas.shards, tas.chunks, strict=True)])
    for path, old in before.items():
        for offset, nbytes in index(old, location, n):
            assert after[path][offset : offset + nbytes] == old[offset : offset + nbytes], (path, offset)
            found += after[path] != old
    return found


@pytest.mark.parametrize("location", ["end", "start"])
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("seed", range(support_paths.tries(2, 6, 40)))
def test_old_indices(writer, location, seed, tmp_path):
    if writer == "nc2zarr" and location == "start":
        pytest.skip("it writes the index at the end")
    rng = np.random.default_rng([seed, WRITERS.index(writer), location == "start"])
    steps = [int(n) for n in rng.integers(1, 7, 8)]
    data = noise(rng, sum(steps))
    files, at = [], 0
    for n in steps:
        files.append(F.day(tmp_path / f"{at:03}.nc", at, n, data=data[at : at + n]))
        at += n
    (tmp_path / "out").mkdir()
    store = make(tmp_path / "out", files[:2], data[: sum(steps[:2])], writer, location)
    want, found = tmp_path / "want.zarr", 0
    for p in files[2:]:
        before = shards(store)
        tool.nc2zarr("-q", "--append", "time", "--verify", "full", p, store).ok()
        found += check_old_indices(store, before, shards(store), location)
    assert found > 0
    tool.nc2zarr(*LAYOUT, *files, want).ok()
    assert tool.run("rechunk", "--digest", store).ok().out == tool.run("rechunk", "--digest", want).ok().out
    np.testing.assert_array_equal(zarr.open_array(store, path="tas", mode="r")[...], data)


@pytest.mark.long(ci=1)
def test_dead_bytes_are_used_again(tmp_path):
    """Each append leaves one chunk dead in each shard; the shards do not grow by all of them."""
    rng = np.random.default_rng(5)
    data = rng.random((60, F.NLAT, F.NLON)).astype("f4")
    files = [F.day(tmp_path / f"{i:03}.nc", i, 1, data=data[i : i + 1]) for i in range(60)]
    layout = ["-q", "--chunks", "time=30", "--shards", "time=60"]
    store, want = tmp_path / "s.zarr", tmp_path / "w.zarr"
    tool.nc2zarr(*layout, *files[:2], store).ok()
    rewrite(store, data[:2], "zarr-python", "end", ([30, F.NLAT, F.NLON], [60, F.NLAT, F.NLON]))
    for p in files[2:]:
        tool.nc2zarr("-q", "--append", "time", p, store).ok()
    tool.nc2zarr(*layout, *files, want).ok()
    (grown,), (once,) = shards(store).values(), shards(want).values()
    assert len(grown) < 4 * len(once), (len(grown), len(once))
    np.testing.assert_array_equal(zarr.open_array(store, path="tas", mode="r")[...], data)


class Reader(threading.Thread):
    """Reads what zarr-python's consolidated metadata show, again and again."""

    def __init__(self, store, data):
        super().__init__(daemon=True)
        self.store, self.data = store, data
        self.passes, self.error, self.lengths = 0, None, set()
        self.passed, self.stopping = threading.Condition(), threading.Event()

    def run(self):
        while self.error is None and not self.stopping.is_set():
            try:
                tas = zarr.open_group(self.store, mode="r", use_consolidated=True)["tas"]
                np.testing.assert_array_equal(tas[...], self.data[: tas.shape[0]])
                self.lengths.add(tas.shape[0])
            except Exception as error:  # told by the thread that waits
                self.error = error
            with self.passed:
                self.passes += 1
                self.passed.notify_all()

    def see(self):
        """Until one whole pass has begun since the call: an index is promised to serve over one replacement."""
        with self.passed:
            want = self.passes + 2
            assert self.passed.wait_for(lambda: self.passes >= want or self.error, 300)
        if self.error:
            raise self.error


@pytest.mark.long(ci=1)
@pytest.mark.parametrize("location", ["end", "start"])
def test_readers_meanwhile(location, tmp_path):
    rng = np.random.default_rng(9)
    n = support_paths.tries(20, 60, 200)
    data = noise(rng, 4 + n)
    files = [F.day(tmp_path / f"{i:04}.nc", i, 1, data=data[i : i + 1]) for i in range(4 + n)]
    (tmp_path / "out").mkdir()
    store = make(tmp_path / "out", files[:4], data[:4], "zarr-python", location)
    readers = [Reader(store, data) for _ in range(2)]
    for r in readers:
        r.start()
    try:
        for p in files[4:]:
            tool.nc2zarr("-q", "--append", "time", p, store).ok()
            for r in readers:
                r.see()
    finally:
        for r in readers:
            r.stopping.set()
            r.join(60)
    assert all(4 + n in r.lengths and len(r.lengths) > n // 2 for r in readers)
