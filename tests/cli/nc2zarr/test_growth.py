"""A store that is much larger than its inputs says so before it is written, with both sizes and what to do."""

import netCDF4
import numpy as np
import pytest
from support import tool

D = np.float64
PLAIN = {"scale_factor": D(0.1), "add_offset": D(1)}
SIZE = 1300  # n x n of one byte in each of two files: 3.22 MiB, and eight times that as float64
BOTH = "1 variable (v): 3.22 MiB of elements in the inputs become 25.79 MiB in the store, before compression, as "


def write(path, attrs, day, n=SIZE, kind="i1", dims=("y", "x"), extra=()):
    with netCDF4.Dataset(path, "w") as ds:
        ds.createDimension("time", None)
        for d, length in (("y", n), ("x", n), *extra):
            ds.createDimension(d, length)
        time = ds.createVariable("time", "f8", ("time",))
        time.units = "days since 2000-01-01"
        time[:] = [day]
        v = ds.createVariable("v", kind, ("time", *dims), zlib=True)
        v.set_auto_maskandscale(False)
        v.setncatts(attrs)
        v[:] = np.full((1, *(len(ds.dimensions[d]) for d in dims)), 3, kind)
    return path


def grows(done):
    return [line for line in done.warnings if "before compression" in line]


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """Two files that are packed differently."""
    folder = tmp_path_factory.mktemp("packed")
    return [write(folder / f"{i}.nc", {"scale_factor": D(0.1 + i)}, i) for i in range(2)]


def test_packings_that_differ(packed, tmp_path):
    out = tmp_path / "out.zarr"
    done = tool.nc2zarr("--dry-run", "--packing", "unpack", *packed, out).ok()
    assert grows(done) == [f"nc2zarr: warning: {BOTH}packed numbers are unpacked; --dtype names a smaller type"]
    for decided in ("v:float32", "float64"):  # whatever it is
        assert not grows(tool.nc2zarr("--dry-run", "--packing", "unpack", "--dtype", decided, *packed, out).ok())
    assert not grows(tool.nc2zarr("--dry-run", packed[0], out).ok()), "it stays packed"
    assert grows(tool.nc2zarr("--dry-run", "--json", "--packing", "unpack", *packed, out).ok())
    assert tool.nc2zarr("-q", "--dry-run", "--packing", "unpack", *packed, out).ok().err == ""
    assert not out.exists()


def test_it_is_said_before_anything_is_written(packed, tmp_path):
    """Once; also where the run fails then, as on a disk that is too small for what becomes of the inputs."""
    args = ["--packing", "unpack", "--codec", "none", "--chunks", "source", "--verify", "none", *packed]
    failed = tool.nc2zarr(*args, tmp_path / "a.zarr", before=tool.file_size_limit(64 << 10))
    lines = failed.err.splitlines()
    assert failed.status == 1 and len(grows(failed)) == 1 and "File too large" in lines[-1], str(failed)
    assert "before compression" in lines[0], str(failed)
    assert len(grows(tool.nc2zarr(*args, tmp_path / "b.zarr").ok())) == 1


@pytest.mark.parametrize("program", ["nc2zarr", "rechunk"])
def test_one_file(program, tmp_path):
    """--unpack of one file, of a part of it, and of one that is small."""
    n = int(SIZE * 2**0.5)
    source = write(tmp_path / "in.nc", PLAIN, 0, n=n)
    args = ["--dry-run", "--unpack", "all"]
    done = tool.run(program, *args, source, tmp_path / "out.zarr").ok()
    assert len(grows(done)) == 1 and "3.22 MiB of elements" in done.err and "25.77 MiB in the store" in done.err, done.err
    assert not grows(tool.run(program, *args, "--subset", "x=0:900", source, tmp_path / "out.zarr").ok()), "less than 16 MiB more"
    double = write(tmp_path / "double.nc", PLAIN, 0, n=n, kind="f8")
    assert not grows(tool.run(program, *args, double, tmp_path / "out.zarr").ok()), "no byte more"


def test_a_dimension_that_files_lack(tmp_path):
    """--promote repeats a field along it."""
    run = [("run", 9)]
    with_it = write(tmp_path / "0.nc", {}, 0, n=700, kind="f4", dims=("run", "y", "x"), extra=run)
    without = [write(tmp_path / f"{i}.nc", {}, i, n=700, kind="f4", extra=run) for i in (1, 2)]
    args = ["--dry-run", "--promote", "v", with_it, *without, tmp_path / "out.zarr"]
    done = tool.nc2zarr(*args).ok()
    assert len(grows(done)) == 1 and "20.56 MiB of elements in the inputs become 50.47 MiB" in done.err, done.err
    assert "they get a dimension that files lack; --dtype" in done.err
