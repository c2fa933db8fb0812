"""Killed at any moment and resumed, a store is what it would have been, and nothing else is left."""

import json
import os
import random
import shutil
import subprocess
import time

import netCDF4
import numpy as np
import pytest
import zarr
from zarr.codecs import ZstdCodec

from support import failio, paths, rechunked, tool

KILLS = paths.tries(2, 6, 38)  # of each layout, those of runs that resume not counted


# ---- sources ----------------------------------------------------------------------------------------


def field(n, side, seed):
    """Maps that compress somewhat; the third quarter is fill, so chunks of it are left out."""
    values = np.random.default_rng(seed).integers(0, 4000, (n, side, side)).astype("f4") / 16
    values[n // 2 : 3 * n // 4] = -1
    return values


def make_file(path):
    with netCDF4.Dataset(path, "w") as nc:
        for name, n in (("time", 24), ("y", 96), ("x", 96), ("record", 4000)):
            nc.createDimension(name, n)
        nc.createVariable("time", "f8", ("time",))[:] = np.arange(24)
        for name, seed in (("tas", 1), ("pr", 2)):
            v = nc.createVariable(
                name, "f4", ("time", "y", "x"), zlib=True, complevel=1, chunksizes=(1, 48, 48), fill_value=-1
            )
            v[...] = field(24, 96, seed)
        label = nc.createVariable("label", str, ("record",), chunksizes=(50,))
        label[:] = np.array([f"station {i * 7919 % 4000} " + "z" * (i % 40) for i in range(4000)], object)
        nc.createGroup("deep").createVariable("count", "i4", ("time",))[:] = np.arange(24)


def make_store(path):
    root = zarr.create_group(path, attributes={"title": "maps"})
    for name, n in (("v", 24), ("g/w", 16)):
        a = root.create_array(
            name, shape=(n, 96, 96), chunks=(1, 96, 96), dtype="f4", fill_value=-1, compressors=ZstdCodec(level=1)
        )
        a[...] = field(n, 96, n)


def make_large(path):
    """An array that 28 MiB of memory can only rechunk through scratch files."""
    a = zarr.create_array(path, shape=(64, 256, 256), chunks=(1, 256, 256), dtype="f4", compressors=ZstdCodec(level=1))
    for i in range(64):
        a[i] = ((np.arange(1 << 16) // 100 + i) % 100).astype("f4").reshape(256, 256)


def make_target(path):
    """A store that is there, with an array of its own."""
    root = zarr.create_group(path, attributes={"title": "mine"})
    root.create_array("sub/old", data=np.arange(12), chunks=(5,))
    zarr.consolidate_metadata(path)


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sources")
    made = {"file": make_file, "store": make_store, "large": make_large}
    for name, make in made.items():
        make(str(folder / name))
    return {name: folder / name for name in made}


# ---- layouts ----------------------------------------------------------------------------------------

CODEC = ["--codec", "zstd:12"]
NUMBERS = ["--variables", "tas,pr,/deep/count"]
LAYOUTS = {
    "nc2zarr v3": ("nc2zarr", "file", [*NUMBERS, *CODEC, "--chunks", "time=4,y=16,x=32"]),
    "nc2zarr v2": ("nc2zarr", "file", [*NUMBERS, *CODEC, "--zarr-format", "2", "--chunks", "time=24,y=8,x=16"]),
    "nc2zarr shards": (
        "nc2zarr",
        "file",
        [*NUMBERS, *CODEC, "--chunks", "time=2,y=16,x=16", "--shards", "time=4,y=32,x=48"],
    ),
    "nc2zarr strings": ("nc2zarr", "file", ["--variables", "label", *CODEC, "--chunks", "label:20"]),
    "nc2zarr keep": ("nc2zarr", "file", [*NUMBERS, "--codec", "keep"]),
    "rechunk": ("rechunk", "store", [*CODEC, "--chunks", "8x16x24"]),
    "rechunk scratch": ("rechunk", "large", ["--memory", "28MiB", "--chunks", "64x16x16"]),
    "rechunk into": ("rechunk", "store", [*CODEC, "--chunks", "8x16x24"]),
}


class Run:
    """One layout's command, into a folder of its own."""

    def __init__(self, layout, sources, folder):
        self.program, source, options = LAYOUTS[layout]
        self.source, self.folder = sources[source], folder
        self.options = ["-q", "-j", "1", "--verify", "none", *options]
        self.shards, self.into = "--shards" in options, layout.endswith("into")
        self.out = folder / "out.zarr"
        self.target = f"{self.out}::new/maps" if self.into else str(self.out)

    def clear(self):
        assert os.listdir(self.folder) in ([], [self.out.name])
        shutil.rmtree(self.out, ignore_errors=True)
        if self.into:
            make_target(str(self.out))

    def whole(self, *more):
        tool.run(self.program, *self.options, *more, str(self.source), self.target).ok()

    def files(self):
        """By name; inside a shard chunks lie in the order in which they were made, so of shards the size."""
        found = rechunked.files(self.out)
        return {k: len(v) if self.shards and "/c/" in k else v for k, v in found.items()}

    def killed(self, moment, *more):
        """Killed after MOMENT seconds; False when it was done before."""
        process = subprocess.Popen(
            [tool.program(self.program), *self.options, *more, str(self.source), self.target],
            stderr=subprocess.PIPE,
            text=True,
            env=tool.environment(),
        )
        try:
            err = process.communicate(timeout=moment)[1]
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return process.returncode != 0
        assert process.returncode == 0, err
        return False


@pytest.mark.few(2)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_killed_and_resumed(sources, tmp_path, layout, record_property):
    if paths.SANITIZED and "scratch" in layout:
        pytest.skip("a sanitizer's own memory would be counted")
    folder, rng = tmp_path / "work", random.Random(layout)
    folder.mkdir()
    run = Run(layout, sources, folder)
    run.clear()
    start = time.monotonic()
    run.whole()
    duration = time.monotonic() - start
    files, digests = run.files(), rechunked.digests(run.out)
    if not run.into:
        assert digests == {k: v for k, v in rechunked.digests(run.source).items() if k in digests}
    kills = again = 0
    for _ in range(8 * KILLS):
        run.clear()
        moment, start = rng.uniform(0, duration), time.monotonic()
        if not run.killed(moment):
            duration = min(duration, time.monotonic() - start)  # the machine was busier when it was timed
            continue
        kills += 1
        if tool.opens_as_store(run.out / "new" / "maps" if run.into else run.out):
            assert rechunked.digests(run.out) == digests, f"killed after {moment:.4f} s it opens, and is not whole"
        if kills % 2:
            again += run.killed(rng.uniform(0, duration), "--resume")
        run.whole("--resume")
        assert rechunked.digests(run.out) == digests, f"killed after {moment:.4f} s"
        assert run.files() == files, f"killed after {moment:.4f} s"
        assert os.listdir(folder) == [run.out.name]
        if kills == KILLS:
            record_property("kills", kills + again)
            return
    pytest.fail(f"only {kills} kills in {8 * KILLS} attempts")


def test_a_store_that_opens_has_its_consolidated_metadata(tmp_path):
    """Of version 2, whose documents are several: killed before its root was named, or whole, and then while it is replaced."""
    root, state = tmp_path / "work", tmp_path / "state"
    source, store = tmp_path / "in.nc", root / "o.zarr"
    with netCDF4.Dataset(source, "w") as ds:
        ds.createDimension("x", 8)
        for name in ("a", "b"):
            ds.createVariable(name, "f4", ("x",))[:] = np.arange(8)
    command = ["-q", "-j", "1", "--verify", "none", "--zarr-format", "2", source, store]

    def run(kind, nth, *more):
        return failio.inject("nc2zarr", *more, *command, root=root, state=state, kind=kind, nth=nth, way="kill")

    def opens():
        try:
            return json.loads((store / ".zgroup").read_text()) == {"zarr_format": 2}
        except FileNotFoundError:
            return False

    (tmp_path / "begun").mkdir()
    failio.renew(tmp_path / "begun", root)
    names = run(None, 0).counts["rename"]
    failio.renew(root, tmp_path / "whole")
    for nth in range(names, 0, -1):  # the last state in which only .zgroup lacks
        failio.renew(tmp_path / "begun", root)
        run("rename", nth)
        if not (store / ".zgroup").exists() and (store / ".zmetadata").exists():
            break
    assert (store / ".zmetadata").exists()
    failio.renew(root, tmp_path / "rootless")
    for begun in ("whole", "rootless"):
        for kind in ("rename", "unlink"):
            failio.renew(tmp_path / begun, root)
            count = run(kind, 0, "--overwrite").counts[kind]
            seen = 0
            for nth in range(1, min(count, paths.tries(7, 1000, 1000)) + 1):
                failio.renew(tmp_path / begun, root)
                killed = run(kind, nth, "--overwrite")
                if opens():
                    seen += 1
                    json.loads((store / ".zmetadata").read_text())
                    assert zarr.open_group(str(store), mode="r", use_consolidated=True)["b"][:].tolist() == list(range(8)), killed.what
            assert begun == "rootless" or seen > 0


def killed(source, out, least, *options):
    """Kills a run once LEAST chunks are there; a run that was faster is tried again."""
    for _ in range(20):
        shutil.rmtree(out, ignore_errors=True)
        run = subprocess.Popen([tool.program("rechunk"), "-q", "-j1", *options, source, out])
        while run.poll() is None and len(list(out.glob("c/*/*/*"))) < least:
            time.sleep(0.001)
        run.kill()
        if run.wait() != 0:
            return {p: p.stat().st_mtime_ns for p in out.glob("c/*/*/*")}
    raise AssertionError("no run was killed")


@pytest.mark.parametrize("started_since", [False, True])
def test_blocks_of_zeros(tmp_path, started_since):
    """Zeros in raw chunks are data, but for a machine that lost power since they were written."""
    source, out = tmp_path / "in.zarr", tmp_path / "out.zarr"
    a = zarr.create_array(source, shape=(200, 200, 200), chunks=(1, 200, 200), dtype="f4", compressors=None)
    a[:, :50] = np.random.default_rng(1).random((200, 50, 200), "f4")
    options = ("--chunks", "2x200x200")
    there = killed(source, out, 5, *options)
    if started_since:
        there = {p: 10**18 for p in there}  # of 2001
        for p, ns in there.items():
            os.utime(p, ns=(ns, ns))
    tool.run("rechunk", "-q", "--resume", *options, source, out).ok()
    kept = [p for p, ns in there.items() if p.stat().st_mtime_ns == ns]
    assert not kept if started_since else len(kept) >= 3  # but for what was not whole yet
    assert rechunked.digests(out) == rechunked.digests(source)
