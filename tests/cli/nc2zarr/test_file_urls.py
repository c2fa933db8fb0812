"""file:// URLs: one reading of them in every tool, for what is read and for what is made."""

import netCDF4
import numpy as np
import pytest
from support import tool


@pytest.fixture
def grid(tmp_path):
    path = tmp_path / "a grid.nc"
    with netCDF4.Dataset(path, "w") as ds:
        ds.createDimension("y", 8)
        ds.createVariable("v", "f4", ("y",))[:] = np.arange(8)
    return path


def url(path, host=""):
    return f"file://{host}{str(path).replace('%', '%25').replace(' ', '%20')}"


@pytest.mark.parametrize("host", ["", "localhost", "LOCALHOST"])
def test_every_tool_reads_and_makes_the_same_place(grid, tmp_path, host):
    here = tmp_path / "here"
    here.mkdir()
    store, other = tmp_path / "a store.zarr", tmp_path / "another 100%.zarr"
    done = tool.nc2zarr(url(grid, host), url(store, host), cwd=here).ok()
    assert f'"{store}"' in done.out
    tool.nc2zarr("--check", url(grid, host), url(store, host), cwd=here).ok()
    tool.run("rechunk", url(store, host), url(other, host), cwd=here).ok()
    plain = tool.run("rechunk", "--digest", store, other, grid).ok()
    urls = tool.run("rechunk", "--digest", url(store, host), url(other, host), url(grid, host), cwd=here).ok()
    assert [line for line in urls.out.splitlines() if line[0] == " "] == [
        line for line in plain.out.splitlines() if line[0] == " "
    ]
    tool.run("chunkcalc", url(store, host), cwd=here).ok()
    tool.run("readbench", "--no-out", "--sample", "2", "--batch", "2", "--step-time", "0ms", url(store, host), cwd=here).ok()
    assert list(here.iterdir()) == []
    assert store.is_dir() and other.is_dir()
    tool.nc2zarr(url(grid, host), cwd=here).ok()
    assert [p.name for p in here.iterdir()] == ["a grid.zarr"]


BAD = ["file://other/x", "file://x.zarr", "file://", "file://localhost", "file://127.0.0.1/x", "gcs://b/x", "ftp://b/x"]


@pytest.mark.parametrize("text", BAD)
def test_no_other_host_or_scheme_becomes_a_folder(grid, tmp_path, text):
    here = tmp_path / "here"
    here.mkdir()
    store = tmp_path / "in.zarr"
    tool.nc2zarr(grid, store).ok()
    tool.nc2zarr(grid, text, cwd=here).fails(2, text)
    tool.nc2zarr("--check", grid, text, cwd=here).fails(2, text)
    tool.nc2zarr(text, "out.zarr", cwd=here).fails(2, text)
    tool.run("rechunk", store, text, cwd=here).fails(2, text)
    tool.run("rechunk", text, "out.zarr", cwd=here).fails(2, text)
    tool.run("rechunk", "--digest", text, cwd=here).fails(2, text)
    tool.run("chunkcalc", text, cwd=here).fails(2, text)
    tool.run("readbench", "--no-out", "--sample", "2", text, cwd=here).fails(2, text)
    assert list(here.iterdir()) == []


def test_a_byte_that_is_none(grid, tmp_path):
    tool.nc2zarr(grid, f"file://{tmp_path}/100%.zarr").fails(2, "100%.zarr", "%25")
    tool.nc2zarr(grid, f"file://{tmp_path}/a%00b.zarr").fails(2, "%00")
    assert [p.name for p in tmp_path.iterdir()] == [grid.name]
