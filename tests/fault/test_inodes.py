"""File systems with few inodes: a warning comes before the first file, and counts what find counts."""

import json
import os

import netCDF4
import numpy as np
import pytest

from support import tool


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("inodes") / "in.nc"
    with netCDF4.Dataset(path, "w") as ds:
        for name, n in (("time", 6), ("y", 8), ("x", 8)):
            ds.createDimension(name, n)
        ds.createVariable("t", "f4", ("time", "y", "x"))[:] = np.random.default_rng(1).normal(size=(6, 8, 8))
        ds.createVariable("time", "f8", ("time",))[:] = np.arange(6)
        ds.createVariable("crs", "i4", ())[...] = 4
    return path


def counted(folder):
    """Files and folders, FOLDER itself among these."""
    found = list(os.walk(folder))
    return sum(len(files) for _, _, files in found), len(found)


LAYOUTS = [[], ["--zarr-format", "2"], ["--shards", "t:time=3,y=8,x=8"], ["--no-consolidate"]]


@pytest.mark.parametrize("options", LAYOUTS, ids=" ".join)
def test_the_count_is_what_is_made(source, small_disk, tmp_path, options):
    disk = small_disk("size=50m,nr_inodes=4")
    options = ["--json", "--chunks", "t:time=1,y=4,x=2", *options]
    planned = json.loads(tool.nc2zarr("--dry-run", *options, source, disk / "out.zarr").ok().out)
    assert list(disk.iterdir()) == []
    made = json.loads(tool.nc2zarr(*options, source, tmp_path / "out.zarr").ok().out)
    assert "inodes" not in made["output"]  # few files, and room for them
    inodes = planned["output"]["inodes"]
    files, folders = counted(tmp_path / "out.zarr")
    assert inodes["folders"] == folders and 0 <= inodes["files"] - files <= 4  # documents are about so many
    assert inodes["free"] == 3 and 4 <= inodes["files_in_shards"] <= 11
    (warning,) = [w for w in planned["warnings"] if "inodes" in w]
    assert warning.startswith(f"up to {inodes['files']} files and {folders} folders are to be written, and the file system has inodes for 3; ")
    v2 = "2" in options
    assert warning.endswith("larger --chunks make fewer" if v2 or "--shards" in options else "--shards auto makes 7 files")


def test_a_run_warns_before_it_fails(source, small_disk):
    out = small_disk("size=50m,nr_inodes=30") / "out.zarr"
    failed = tool.nc2zarr("--chunks", "t:time=1,y=4,x=2", source, out)
    assert failed.status == 1 and "space left" in failed.err
    assert failed.err.index("warning: up to ") < failed.err.index("space left") and failed.err.count("inodes") == 1
    assert tool.nc2zarr("-q", "--chunks", "t:time=1,y=4,x=2", "--overwrite", source, out).err.count("inodes") == 0


def test_what_is_there_already_is_not_counted_twice(source, small_disk):
    """A store that goes gives its inodes back, and of one that goes on some files are there: no warning, no number."""
    out = small_disk("size=50m,nr_inodes=100") / "out.zarr"
    options = ["--json", "--chunks", "t:time=1,y=4,x=2"]
    first = json.loads(tool.nc2zarr(*options, source, out).ok().out)
    assert first["warnings"] == []
    for more in (["--overwrite"], ["--overwrite", "--dry-run"]):
        done = tool.nc2zarr(*options, *more, source, out).ok()
        assert "inodes" not in done.err and "inodes" not in json.loads(done.out)["output"]


def test_stores_without_files_of_their_own(source, small_disk):
    disk = small_disk("size=50m,nr_inodes=30")
    for target in ("out.zip", "icechunk:" + str(disk / "repo")):
        done = tool.nc2zarr("--chunks", "t:time=1,y=4,x=2", source, disk / target if target == "out.zip" else target).ok()
        assert "inodes" not in done.err
