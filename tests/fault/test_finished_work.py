"""A failure after the output is complete removes nothing: it stays, and the message says so."""

import netCDF4
import numpy as np
import pytest
import zarr
from support import rechunked, tool


@pytest.fixture
def grid(tmp_path):
    path = tmp_path / "in.nc"
    with netCDF4.Dataset(path, "w") as ds:
        ds.createDimension("y", 64)
        ds.createDimension("x", 64)
        v = ds.createVariable("v", "f4", ("y", "x"), chunksizes=(16, 16), zlib=True)
        v[:] = np.random.default_rng(1).random((64, 64), "f4")
    return path


def environment(library, bad, marker):
    return {"LD_PRELOAD": str(library), "FAILREAD_PATH": str(bad), "FAILREAD_AFTER": str(marker)}


@pytest.mark.every
@pytest.mark.parametrize("fmt, marker", [("3", "zarr.json"), ("2", ".zmetadata")])
@pytest.mark.parametrize("verify", ["sample", "full"])
@pytest.mark.parametrize("bad", ["input", "output"])
def test_io_error_while_nc2zarr_verifies(failread, grid, out, verify, fmt, marker, bad):
    """The disk of the input, or of the output, cannot be read any more when the store is complete."""
    options = ["--verify", verify, "--zarr-format", fmt]
    env = environment(failread, grid if bad == "input" else out / "v", out / marker)
    done = tool.nc2zarr(*options, grid, out, env=env).fails(1, str(out), "written, but not verified", "--check", "error")
    assert (str(grid) if bad == "input" else f"{out}: ") in done.err.split("verified", 1)[1]
    tool.nc2zarr("--check", grid, out).ok()
    assert "--resume" not in done.err and "removed" not in done.err


def test_io_error_while_nc2zarr_verifies_into_an_overwritten_store(failread, grid, out):
    tool.nc2zarr(grid, out).ok()
    (out / "zarr.json").rename(out / "zarr.json.was")
    (out / ".zgroup").write_text('{"zarr_format": 2}')
    env = environment(failread, grid, out / "zarr.json")
    tool.nc2zarr("--overwrite", "--verify", "full", grid, out, env=env).fails(1, "written, but not verified")
    tool.nc2zarr("--check", grid, out).ok()


@pytest.mark.parametrize("fmt, marker", [("3", "zarr.json"), ("2", ".zmetadata")])
@pytest.mark.parametrize("verify", ["sample", "full"])
@pytest.mark.parametrize("bad", ["source", "target"])
def test_io_error_while_rechunk_verifies(failread, tmp_path, out, fmt, marker, verify, bad):
    source = tmp_path / "in.zarr"
    root = zarr.create_group(str(source), zarr_format=int(fmt))
    root.create_array("v", shape=(64, 64), chunks=(16, 16), dtype="f4")[...] = np.random.default_rng(1).random((64, 64))
    zarr.consolidate_metadata(str(source))
    env = environment(failread, (source if bad == "source" else out) / "v", out / marker)
    done = tool.run("rechunk", "--chunks", "8x64", "--verify", verify, source, out, env=env)
    done.fails(1, str(out), "written, but not verified", "--digest", "/output error")
    assert f"verified: {source if bad == 'source' else out}: " in done.err, str(done)
    assert rechunked.digests(out) == rechunked.digests(source)


def test_a_group_above_that_cannot_be_described(tmp_path, out):
    """The target is complete; entering it in the store around it fails, and can be tried again."""
    zarr.create_array(str(tmp_path / "in.zarr"), data=np.arange(100, dtype="i4").reshape(10, 10), zarr_format=2)
    zarr.create_group(str(out), zarr_format=2)
    (out / "g" / ".zgroup").mkdir(parents=True)
    done = tool.run("rechunk", "--chunks", "5x5", tmp_path / "in.zarr", f"{out}::g/a")
    done.fails(1, str(out / "g"), "written, but not yet entered", "--resume")
    assert np.array_equal(zarr.open_array(str(out / "g" / "a"), mode="r")[...], np.arange(100).reshape(10, 10))
    (out / "g" / ".zgroup").rmdir()
    tool.run("rechunk", "--resume", "--chunks", "5x5", tmp_path / "in.zarr", f"{out}::g/a").ok()
    assert "a" in zarr.open_group(str(out), mode="r")["g"]
