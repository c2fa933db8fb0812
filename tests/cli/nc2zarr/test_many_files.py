"""Targets of very many files: their folders, and what shards make of them."""

import json

import jsonschema
import netCDF4
import numpy as np
import pytest
import zarr

from support import objects, paths, tool

LINE = "2,805 folders beside these files; --shards auto makes about 5 files\n"


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("many") / "in.nc"
    with netCDF4.Dataset(path, "w") as ds:
        for name, n in (("time", 400), ("y", 12), ("x", 12)):
            ds.createDimension(name, n)
        ds.createVariable("t", "f4", ("time", "y", "x"))[:] = np.random.default_rng(1).normal(size=(400, 12, 12))
        ds.createVariable("time", "f8", ("time",))[:] = np.arange(400)
    return path


def document(program, *args, **kw):
    doc = json.loads(tool.run(program, "--json", "--dry-run", *args, **kw).ok().out)
    jsonschema.Draft202012Validator(json.loads((paths.ROOT / "tools" / "schema" / f"{program}.json").read_text())).validate(doc)
    return doc["output" if program == "nc2zarr" else "target"]


def test_the_plan_counts_folders(source, tmp_path):
    """400 x 6 x 6 chunks, in folders for t, c, each time and each row; for time and its c; and the store."""
    options = ["--chunks", "t:time=1,y=2,x=2", "--shards", "none"]
    said = tool.nc2zarr("--dry-run", *options, source, tmp_path / "out.zarr").ok().out
    assert "  14,404 files, about " in said and "  " + LINE in said
    inodes = document("nc2zarr", *options, source, tmp_path / "out.zarr")["inodes"]
    inodes.pop("free")  # of this file system
    assert inodes == {"files": 14404, "folders": 1 + 2 + 2 + 400 + 400 * 6, "files_in_shards": 5}
    said = tool.nc2zarr("--dry-run", *options[:2], "--zarr-format", "2", source, tmp_path / "out.zarr").ok().out
    assert "  3 folders beside these files; --zarr-format 3 --shards auto makes about 8 files\n" in said
    said = tool.nc2zarr("--dry-run", *options[:2], source, tmp_path / "out.zarr").ok().out
    assert "folders beside" not in said  # in shards already
    assert "inodes" not in document("nc2zarr", "--chunks", "t:time=2,y=2,x=2", "--shards", "none", source, tmp_path / "out.zarr")


def test_a_bucket_has_no_folders(source):
    server = objects.Server()
    try:
        options = ["--chunks", "t:time=1,y=2,x=2", "--shards", "none", source, "s3://bucket/out.zarr"]
        said = tool.nc2zarr("--dry-run", *options, env=server.environment()).ok().out
        assert "\n  --shards auto makes about 5 files\n" in said
        inodes = document("nc2zarr", *options, env=server.environment())["inodes"]
        assert inodes == {"files": 14404, "folders": 0, "files_in_shards": 5, "free": None}
    finally:
        server.close()


def test_rechunk_and_chunkcalc(tmp_path):
    root = zarr.open_group(str(tmp_path / "a.zarr"), mode="w", zarr_format=3)
    root.create_array("t", shape=(400, 12, 12), chunks=(1, 2, 2), dtype="f4", fill_value=0, dimension_names=("time", "y", "x"))
    root["t"][:1] = 1
    said = tool.run("rechunk", "--dry-run", tmp_path / "a.zarr", tmp_path / "b.zarr").ok().out
    assert "  2,803 folders beside these files; --shards auto makes about 3 files\n" in said
    assert document("rechunk", tmp_path / "a.zarr", tmp_path / "b.zarr")["inodes"]["files"] == 14402
    note = "chunks are 14400 files, which take longer to copy, list and remove than to read; rechunked with --shards auto they are 1 file"
    assert note in tool.run("chunkcalc", tmp_path / "a.zarr").ok().err
    root.create_array("s", shape=(400, 12, 12), chunks=(1, 2, 2), shards=(400, 12, 12), dtype="f4")
    tool.run("rechunk", "-q", "--variable", "s", tmp_path / "a.zarr", tmp_path / "c.zarr").ok()
    assert "files" not in tool.run("chunkcalc", tmp_path / "c.zarr").ok().err
