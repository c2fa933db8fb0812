"""Files of months: --codec keep with --grid rectilinear copies their chunks."""

import calendar
import json

import netCDF4
import numpy as np
import pytest

from support import tool


def months(folder, n=4, chunk=None):
    paths, first = [], 0
    for month in range(1, n + 1):
        days = calendar.monthrange(2001, month)[1]
        paths.append(folder / f"{month:02}.nc")
        with netCDF4.Dataset(paths[-1], "w") as nc:
            nc.createDimension("time", None if chunk else days)
            nc.createDimension("x", 6)
            nc.createVariable("time", "f8", ("time",))[:] = np.arange(first, first + days)
            nc["time"].units = "days since 2001-01-01"
            v = nc.createVariable("tas", "f4", ("time", "x"), zlib=True, shuffle=True, chunksizes=(chunk or days, 3))
            v[:] = np.arange(first * 6, (first + days) * 6).reshape(days, 6)
        first += days
    return paths


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


@pytest.mark.parametrize("how", [["--append", "time"], ["--replace", "time=2001-02-01..2001-02-28"]])
def test_stores_that_do_not_grow(tmp_path, how):
    nc = months(tmp_path)
    tool.run("nc2zarr", "-q", "--codec", "keep", "--grid", "rectilinear", *nc[:3], tmp_path / "out").ok()
    before = sorted(p for p in (tmp_path / "out").rglob("*"))
    done = tool.run("nc2zarr", *how, nc[3 if how[0] == "--append" else 1], tmp_path / "out")
    assert done.status != 0 and "array tas: cannot grow: its chunks differ in length" in done.said, str(done)
    assert sorted(p for p in (tmp_path / "out").rglob("*")) == before
