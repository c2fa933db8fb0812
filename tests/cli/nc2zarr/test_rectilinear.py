"""Files of months: --codec keep with --grid rectilinear copies their chunks."""

import json
import random

import netCDF4
import pytest

from support import stores, tool
from support.rectilinear import months


def digests(*stores):
    out = tool.run("rechunk", "--digest", *stores).ok().out
    return [line.split()[0] for line in out.splitlines() if line.split()[-1:] == ["float32"]]


def grid(store):
    return json.loads((store / "tas" / "zarr.json").read_text())["chunk_grid"]


def test_months_are_kept(tmp_path):
    nc = months(tmp_path)
    plain, kept, anew = (tmp_path / name for name in ("plain", "kept", "anew"))
    told = tool.run("nc2zarr", "-v", "--codec", "keep", *nc, plain).ok()
    assert "tas is recoded: chunks of its files differ in length; --grid rectilinear keeps them" in told.said
    report = tool.run("nc2zarr", "--json", "--codec", "keep", "--grid", "rectilinear", "--verify", "full", *nc, kept).json()
    tas = next(v for v in report["variables"] if v["name"] == "tas")
    assert tas["passed_through"] and tas["chunks"] == [31, 3] and tas["shortest_chunks"] == [28, 3]
    assert "zarr-python 3.2" in tas["readers"]
    tool.run("nc2zarr", "-q", "--codec", "zstd", "--grid", "rectilinear", "--verify", "full", "--statistics", *nc, anew).ok()
    for store in (kept, anew):
        assert grid(store)["configuration"]["chunk_shapes"] == [[31, 28, 31, 30], 3]
    assert grid(plain)["name"] == "regular"
    assert len(set(digests(plain, kept, anew))) == 1
    with netCDF4.Dataset(nc[1]) as f:
        size = f["tas"].filters()
    assert size["zlib"] and len(list((kept / "tas" / "c").rglob("*"))) == 4 + 8


def test_a_grid_that_cannot_be_kept(tmp_path):
    """Chunks of 31 days of which a file has 28: what is stored reaches past what is joined."""
    nc = months(tmp_path, n=3, chunk=31)
    done = tool.run("nc2zarr", "-v", "--codec", "keep", "--grid", "rectilinear", *nc, tmp_path / "out").ok()
    assert "tas gets a regular grid: chunks of its files reach past what is joined" in done.said
    assert grid(tmp_path / "out")["name"] == "regular"


@pytest.mark.few
@pytest.mark.parametrize("codec", ["keep", "zstd"])
@pytest.mark.parametrize("n", [2, 5, 16])
def test_parts_make_the_same_store(tmp_path, codec, n):
    """Cut where chunks of any length end, in any order, some twice; statistics too."""
    nc = months(tmp_path, 7)
    how = ["-q", "--codec", codec, "--grid", "rectilinear", "--statistics", "--verify", "full", *nc]
    (tmp_path / "one").mkdir()
    (tmp_path / "parts").mkdir()
    one, out = tmp_path / "one" / "s.zarr", tmp_path / "parts" / "s.zarr"
    tool.run("nc2zarr", *how, one).ok()
    order = [*range(1, n + 1), *random.Random(n).sample(range(1, n + 1), n // 2)]
    random.Random(n + 1).shuffle(order)
    for k in order:
        tool.run("nc2zarr", "--part", f"{k}/{n}", *how, out).ok()
    stores.same_files(one, out)
    stores.same_files(f"{one}.statistics.zarr", f"{out}.statistics.zarr")
