"""Chunks that differ in length: zarr-python 3.4 writes them and reads ours, and the loader's batches are their values.

zarr-python 3.4 needs Python 3.12 or later: CHUNKMILL_ICECHUNK_PYTHON names an interpreter that has it.
"""

import os
import random
import subprocess
from pathlib import Path

import numpy as np
import pytest

from support import paths, rectilinear, tool

PEER = Path(__file__).with_name("rectilinear_peer.py")
PYTHON = os.environ.get("CHUNKMILL_ICECHUNK_PYTHON")
HAS = "import sys, zarr; sys.exit(zarr.config.get('array.rectilinear_chunks', None) is None)"

os.environ["CHUNKMILL_LIBRARY"] = str(paths.BUILD / "lib" / "libchunkmill_loader.so.1")
os.environ["CHUNKMILL_BIN"] = str(paths.BUILD / "bin")
import chunkmill  # noqa: E402


def has_rectilinear():
    return PYTHON is not None and subprocess.run([PYTHON, "-c", HAS], capture_output=True).returncode == 0


needs_peer = pytest.mark.skipif(
    not has_rectilinear(), reason="CHUNKMILL_ICECHUNK_PYTHON names no interpreter with zarr 3.4, which has rectilinear grids"
)


def peer(*argv):
    done = subprocess.run([PYTHON, str(PEER), *map(str, argv)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.split()


def digests(store):
    return sorted(tool.run("rechunk", "--digest", store).ok().out.splitlines())


@needs_peer
@pytest.mark.parametrize("seed", range(60 if paths.LONG else 1))
@pytest.mark.every
def test_its_stores(tmp_path, seed):
    peer("make", seed, tmp_path)
    cut, plain = tmp_path / "cut", tmp_path / "plain"
    assert digests(cut) == digests(plain)
    tool.run("chunkcalc", "--audit", "full", cut).ok()
    for k, how in enumerate((["--chunks", "auto"], ["--grid", "rectilinear"], ["--grid", "rectilinear", "--codec", "zstd"])):
        tool.run("rechunk", "-q", "--verify", "full", *how, cut, tmp_path / str(k)).ok()
    assert peer("compare", plain, *(tmp_path / str(k) for k in range(3))) == []


@needs_peer
def test_months_of_files(tmp_path):
    netCDF4 = pytest.importorskip("netCDF4")
    first = 0
    for month, days in enumerate((31, 28, 31, 30, 31, 30), 1):
        with netCDF4.Dataset(tmp_path / f"{month}.nc", "w") as nc:
            for name, n in (("time", days), ("x", 8)):
                nc.createDimension(name, n)
            nc.createVariable("time", "f8", ("time",))[:] = np.arange(first, first + days)
            nc.createVariable("v", "f4", ("time", "x"), zlib=True, chunksizes=(days, 4))[:] = np.random.default_rng(month).normal(size=(days, 8))
        first += days
    files = sorted(tmp_path.glob("*.nc"))
    for out, how in (("cut", ["--codec", "keep", "--grid", "rectilinear"]), ("plain", [])):
        tool.run("nc2zarr", "-q", *how, *files, tmp_path / out).ok()
    assert '"rectilinear"' in (tmp_path / "cut" / "v" / "zarr.json").read_text()
    assert peer("compare", tmp_path / "plain", tmp_path / "cut") == []


@needs_peer
def test_a_store_that_grows(tmp_path):
    """By months, one of which is contiguous, and rewritten; each time zarr-python reads what a regular grid has."""
    files = rectilinear.months(tmp_path, 3)
    files += [rectilinear.month_file(tmp_path / "04.nc", 90, 30, 0), *rectilinear.months(tmp_path, 2, first=5)]
    cut, plain = tmp_path / "cut", tmp_path / "plain"
    tool.run("nc2zarr", "-q", "--codec", "keep", "--grid", "rectilinear", *files[:2], cut).ok()
    tool.run("nc2zarr", "-q", *files[:2], plain).ok()
    for some in (files[2:3], files[3:4], files[4:]):
        for store in (cut, plain):
            tool.run("nc2zarr", "-q", "--append", "time", *some, store).ok()
        assert peer("compare", plain, cut) == []
    new = rectilinear.month_file(tmp_path / "new.nc", 50, 20, 20, add=0.5)
    for store in (cut, plain):
        tool.run("nc2zarr", "-q", "--replace", "time=50:70", new, store).ok()
    assert peer("compare", plain, cut) == []
    assert rectilinear.lengths_of(cut, "tas") == [31, 28, 31, 30, 31, 30]


@needs_peer
@pytest.mark.long
def test_recorded_reads(tmp_path, monkeypatch):
    """Of chunks of several lengths, which its `chunks` does not tell."""
    values = np.zeros((90, 4), "float32")
    rectilinear.write(tmp_path / "a", "v", values, [[31, 28, 31], 4])
    monkeypatch.setenv("PYTHONPATH", str(paths.ROOT / "tools" / "python"))
    peer("record", tmp_path / "a", tmp_path / "log")
    report = tool.run("chunkcalc", "--json", "--recommend", "--access", tmp_path / "log", tmp_path / "a").json()
    present = next(layout for layout in report["layouts"] if layout["rule"] == "present")
    starts = range(0, 85, 7)
    met = [[n for first, n in ((0, 31), (31, 28), (59, 31)) if first < at + 5 and first + n > at] for at in starts]
    assert present["reads"][0]["chunks"]["mean"] == pytest.approx(np.mean([len(m) for m in met]))
    assert present["reads"][0]["decoded_nbytes"] == pytest.approx(16 * np.mean([sum(m) for m in met]))


# ---- the loader ----


@pytest.mark.skipif(paths.SANITIZED, reason="a sanitizer's library cannot be loaded into a plain Python")
@pytest.mark.parametrize("number", range(80 if paths.LONG else 4))
@pytest.mark.every
def test_batches(tmp_path, number):
    rng = random.Random(number)
    rank = rng.randint(1, 3)
    names = [f"d{j}" for j in range(rank)]
    shape = [rng.randint(2, 40 if j == 0 else 12) for j in range(rank)]
    values = np.random.default_rng(number).integers(0, 1000, shape).astype(rng.choice(["int16", "float32"]))
    lengths = [
        rng.randint(1, 9) if rng.random() < 0.3 else rectilinear.cut(rng, n + rng.choice((0, 0, 3)), 9) for n in shape
    ]
    rectilinear.write(tmp_path / "a", "v", values, lengths, names)
    sample = {name: rng.randint(1, n) for name, n in zip(names, shape)}
    setting = {
        "sample": sample,
        "batch": rng.randint(1, 9),
        "order": rng.choice(("random", "sequential", "chunks")),
        "seed": number,
        "loader": rng.choice(("planned", "map")),
        "decode": False,
        "workers": rng.randint(1, 2),
        "drop_last": False,
    }
    if rng.random() < 0.3 and setting["loader"] == "map":
        setting["cache"] = "1MiB"
    n = 0
    with chunkmill.Loader(tmp_path / "a", variables="v", **setting) as loader:
        for batch in loader:
            got = batch["v"].numpy()
            for k in range(len(batch)):
                at = batch.index[k].tolist()
                box = tuple(slice(a, a + sample[name]) for a, name in zip(at, names))
                assert np.array_equal(got[k], values[box]), (at, setting)
                n += 1
    assert n > 0
