"""Libraries that crash, loop or take all memory over a file: each is one sentence of the tool."""

import os
import signal
import subprocess
import time

import h5py
import netCDF4
import numpy as np
import pytest
import zarr

from support import paths, tool

pytestmark = pytest.mark.skipif(paths.SANITIZED, reason="the sanitizers' own wrappers come first")


TOOLS = {
    "nc2zarr": lambda path, out: ("nc2zarr", path, out),
    "chunkcalc": lambda path, out: ("chunkcalc", path),
    "rechunk": lambda path, out: ("rechunk", "--digest", path),
    "readbench": lambda path, out: ("readbench", "--no-out", "--sample", "1", "--batches", "1", path),
}
ENDS = {
    "crash": ("libhdf5 crashed while opening it (signal 11)", "the file is damaged"),
    "abort": ("libhdf5 crashed while opening it (signal 6)",),
    "exit": ("libhdf5 ended the process",),
    "kill": ("was killed (signal 9)",),
    "memory": ("cannot open it",),
    "loop": ("libhdf5 does not finish opening it", "10 s of CPU time"),
    "overflow": ("libhdf5 crashed while opening it (signal 6)", "the file is damaged"),
    "lack": ("not enough memory for HDF5 to read its metadata", "is too small for it"),
    "wait": ("opening it did not come to an end in 10 min", "its storage does not answer"),
}


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("name", TOOLS)
def test_libraries_that_fail(badlibrary, tmp_path, out, name, how):
    if how == "loop" and not paths.LONG:
        pytest.skip("takes 10 s of CPU time: CHUNKMILL_LONG=1")
    path = paths.CORPUS / "type_nc4_f4.nc"
    done = tool.run(*TOOLS[name](path, out), env={"LD_PRELOAD": str(badlibrary), "BADLIBRARY": how}, cwd=tmp_path)
    done.fails(1, "type_nc4_f4.nc", *ENDS[how])
    assert "nobody shall see" not in done.out + done.err
    assert list(tmp_path.iterdir()) == []


def bad(badlibrary, how):
    return {"LD_PRELOAD": str(badlibrary), "BADLIBRARY": how}


# Messages about a variable that a library fails to read; the child reads all others.
READS = {
    "read crash": ("libhdf5 crashed while reading f4 of it (signal 11)", "the file is damaged"),
    "read abort": ("libhdf5 crashed while reading f4 of it (signal 6)",),
    "read exit": ("libhdf5 ended the process that was reading f4 of it",),
    "read kill": ("the process that was reading f4 of it was killed (signal 9)",),
    "read memory": ("f4", "cannot be read through netCDF-C"),
    "read loop": ("libhdf5 does not finish reading f4 of it", "10 s of CPU time"),
    "read wait": ("reading f4 of it did not come to an end in 10 min",),
}


@pytest.fixture(scope="module")
def plain_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("plain") / "plain.nc"
    with netCDF4.Dataset(path, "w") as ds:
        ds.createDimension("x", 1000)
        ds.createVariable("f4", "f4", ("x",), zlib=True, chunksizes=(100,))[:] = np.arange(1000)
    return path


@pytest.mark.parametrize("how", READS)
def test_libraries_that_fail_while_verifying(badlibrary, plain_file, out, how):
    """The written store stays, and is reported as not verified."""
    if "loop" in how and not paths.LONG:
        pytest.skip("takes 10 s of CPU time: CHUNKMILL_LONG=1")
    done = tool.nc2zarr("--verify", "full", plain_file, out, env=bad(badlibrary, how))
    done.fails(1, "written, but not verified", *READS[how])
    assert "nobody shall see" not in done.out + done.err
    assert tool.opens_as_store(out)


@pytest.mark.parametrize("how", ["read crash", "read exit"])
def test_libraries_that_fail_while_converting(badlibrary, tmp_path, out, how):
    path = tmp_path / "text.nc"
    with netCDF4.Dataset(path, "w") as ds:
        ds.createDimension("x", 40)
        ds.createVariable("text", str, ("x",))[:] = np.array([f"word {i}" for i in range(40)], object)
    for name, args in TOOLS.items():
        done = tool.run(*args(path, out), env=bad(badlibrary, how), cwd=tmp_path)
        if name != "chunkcalc":  # it reads no strings
            done.fails(1, "text.nc")
        assert "nobody shall see" not in done.out + done.err
        assert not out.exists(), str(done)


@pytest.mark.few(2)
@pytest.mark.parametrize("how, told", [("late crash", "libhdf5 crashed while reading v of it (signal 11)"),
                                       ("late exit", "libhdf5 ended the process that was reading v of it")])
@pytest.mark.parametrize("mode", ["threads", "processes"])
def test_libraries_that_fail_while_a_loader_reads(badlibrary, tmp_path, mode, how, told):
    """Elements that HDF5 alone decodes: past the first one, which was tried."""
    path = tmp_path / "packed.nc"
    with h5py.File(path, "w") as f:
        f.create_dataset("v", data=np.arange(4000.0).reshape(40, 100), chunks=(7, 30), scaleoffset=2)
    done = tool.run("readbench", "--no-out", "--mode", mode, "--sample", "3x20", "--batches", "5", path,
                    env=bad(badlibrary, how), cwd=tmp_path)
    assert done.status == 1 and "packed.nc" in done.err and told in done.err, str(done)
    assert "nobody shall see" not in done.out + done.err
    own = tool.run("readbench", "--no-out", "--engine", "netcdf", "--sample", "3x20", "--batches", "5", path, cwd=tmp_path)
    own.ok()


PARENT = {  # where a child has opened the file, and the program itself crashes over it
    "parent crash": "a library crashed while it worked on it (signal 11)",
    "parent abort": "a library crashed while it worked on it (signal 6)",
    "parent overflow": "the file is damaged",
}


@pytest.mark.parametrize("how", PARENT)
@pytest.mark.parametrize("name", TOOLS)
def test_a_crash_that_no_child_had(badlibrary, plain_file, out, tmp_path, name, how):
    """Another heap, another crash: no signal, and the sentence names the file."""
    done = tool.run(*TOOLS[name](plain_file, out), env=bad(badlibrary, how), cwd=tmp_path)
    assert done.status in (0, 1) if "overflow" in how else done.status == 1, str(done)
    said = [line for line in done.err.splitlines() if line.startswith(f"{name}: ")]
    assert done.status == 0 or (len(said) == 1 and "plain.nc" in said[0] and PARENT[how] in said[0]), str(done)
    assert not out.exists() or done.status == 0


def test_closing_that_crashes_is_left_out(badlibrary, plain_file, out):
    done = tool.nc2zarr("-q", "--verify", "full", plain_file, out, env=bad(badlibrary, "close crash")).ok()
    assert done.out + done.err == ""
    tool.nc2zarr("--check", plain_file, out).ok()


@pytest.mark.parametrize("shape, chunk", [((7, 500, 900), (3, 70, 80)), ((7, 500, 900), None), ((5000, 300), (5000, 1))])
def test_long_reads_come_in_parts(tmp_path, out, shape, chunk):
    """Elements that a child reads, of several answers: each is where it belongs."""
    path = tmp_path / "long.nc"
    names = ("x", "y", "z")[: len(shape)]
    values = np.random.default_rng(1).integers(0, 2**31, shape, "i4")
    texts = np.array([f"{i} " * (i % 7) for i in range(3000)], object)
    with netCDF4.Dataset(path, "w") as ds:
        for name, n in zip(names + ("t",), shape + (3000,)):
            ds.createDimension(name, n)
        ds.createVariable("v", "i4", names, chunksizes=chunk, contiguous=chunk is None)[:] = values
        ds.createVariable("text", str, ("t",), chunksizes=(700,))[:] = texts
    tool.nc2zarr("--verify", "full", "--chunks", "v:auto:3MiB", path, out).ok()
    store = zarr.open_group(str(out), mode="r")
    assert (store["v"][...] == values).all()
    assert store["text"][...].tolist() == texts.tolist()


def test_stops_while_a_library_loops(badlibrary, tmp_path, out):
    """SIGTERM ends both, at once."""
    env = tool.environment({"LD_PRELOAD": str(badlibrary), "BADLIBRARY": "loop"})
    argv = [tool.program("nc2zarr"), str(paths.CORPUS / "type_nc4_f4.nc"), str(out)]
    with subprocess.Popen(argv, env=env, stderr=subprocess.PIPE, text=True) as running:
        children = f"/proc/{running.pid}/task/{running.pid}/children"
        child = ""
        while not child:
            time.sleep(0.01)
            with open(children) as f:
                child = f.read().strip()
        running.send_signal(signal.SIGTERM)
        err = running.stderr.read()
        assert running.wait() == -signal.SIGTERM, err
    assert "stopped by SIGTERM" in err
    assert not os.path.exists(f"/proc/{child}")


LARGE = 4  # MiB of attributes, which take hundreds as JSON


@pytest.fixture(scope="module")
def large_attributes(tmp_path_factory):
    path = tmp_path_factory.mktemp("large") / "attributes.nc"
    with netCDF4.Dataset(path, "w") as ds:
        ds.createDimension("x", 4)
        v = ds.createVariable("v", "f4", ("x",))
        v[:] = 1
        for i in range(LARGE):
            v.setncattr(f"a{i}", np.full(1 << 20, i, "u1"))
    return path


@pytest.mark.parametrize("name", ("nc2zarr", "rechunk"))
def test_metadata_that_do_not_fit_are_refused_before_they_are_read(large_attributes, out, name):
    """The child that opens the file first has a limit from --memory; the program itself never begins to."""
    done = tool.run(name, "-q", "--memory", "64MiB", large_attributes, out, peak=True)
    done.fails(1, "attributes.nc", "its metadata do not fit the memory", "raise --memory")
    assert done.peak < 64 << 20, f"peak {done.peak >> 20} MiB"
    assert not out.exists()


@pytest.mark.roomy
def test_a_file_of_a_survey_has_a_limit_too(large_attributes, tmp_path):
    """Of which a child may take 256 MiB at least: a file for which that is not enough is told, and the others are surveyed."""
    other = tmp_path / "other.nc"
    with netCDF4.Dataset(other, "w") as ds:
        ds.createDimension("x", 4)
        ds.createVariable("w", "f4", ("x",))[:] = 1
    done = tool.nc2zarr("-q", "--memory", "64MiB", "--survey", large_attributes, other, peak=True)
    assert done.status == 4 and "attributes.nc" in done.out and "take more than the 256 MiB" in done.said and "w: float32" in done.out, str(done)
    assert done.peak < 320 << 20, f"peak {done.peak >> 20} MiB"
