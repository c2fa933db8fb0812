"""Many appends: readers meanwhile, what is written, what is read."""

import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import netCDF4
import numpy as np
import pytest
import zarr

from support import paths, tool

from . import files as F

APPENDS = paths.tries(80, 80, 200)
READERS = ["xarray", "zarr", "tensorstore", "ours"]
NLAT, NLON = 60, 80


def begun(stop, kind):
    told = Path(f"{stop}.{kind}.begun")
    return int(told.read_text()) if told.exists() else 0


def wait_for_reads(readers, stop):
    """Until each began to read after this: what the index of a shard names is promised for one replacement."""
    before = {kind: begun(stop, kind) for kind in readers}
    while waiting := [kind for kind in readers if begun(stop, kind) == before[kind]]:
        for kind in waiting:
            assert readers[kind].poll() is None, f"{kind}: {readers[kind].communicate()[1]}"
        time.sleep(0.005)


@pytest.mark.long
@pytest.mark.parametrize("layout", [["--chunks", "time=4"], ["--chunks", "time=2", "--shards", "time=16"]], ids=["chunks", "shards"])
def test_readers_meanwhile(layout, tmp_path):
    """Many appends: whoever reads the consolidated metadata sees one extent, and all of it."""
    source = tmp_path / "in"
    source.mkdir()
    store, stop = tmp_path / "s.zarr", tmp_path / "stop"
    tool.nc2zarr("-q", *layout, *F.days(source, 0, 2), store).ok()
    kinds = [k for k in READERS if k != "tensorstore" or importlib.util.find_spec("tensorstore")]
    if "tensorstore" not in kinds:
        print("tensorstore is not installed: it does not read")
    env = {**os.environ, "PYTHONPATH": str(paths.ROOT / "tests")}
    readers = {
        kind: subprocess.Popen([sys.executable, "-m", "append.readers", kind, store, stop], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for kind in kinds
    }
    try:
        for i in range(2, 2 + APPENDS):
            tool.nc2zarr("-q", "--append", "time", F.day(source / f"day{i:05}.nc", i), store).ok()
            wait_for_reads(readers, stop)
        stop.touch()
        for kind, reader in readers.items():
            out, err = reader.communicate(timeout=300)
            assert reader.returncode == 0, f"{kind}: {err}"
            seen = json.loads(out)
            print(f"{kind}: {len(seen)} reads, {len(set(seen))} lengths")
            assert seen == sorted(seen) and seen[-1] == 2 + APPENDS, kind
            assert len(set(seen)) > 3, f"{kind}: read too seldom to have met an append"
    finally:
        for reader in readers.values():
            reader.kill()
            reader.communicate()


def field(path, day):
    """One day of noise, whose bytes outweigh those of metadata."""
    with netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_OFFSET") as nc:
        nc.createDimension("time", None)
        nc.createDimension("lat", NLAT)
        nc.createDimension("lon", NLON)
        t = nc.createVariable("time", "f8", ("time",))
        t.units = "days since 2000-01-01"
        t[:] = [day]
        nc.createVariable("tas", "f4", ("time", "lat", "lon"))[:] = np.random.default_rng(day).random((1, NLAT, NLON), "f4")
    return path


@pytest.mark.long
@pytest.mark.parametrize("rest", ["write", "hold"])
def test_a_year_of_days(rest, tmp_path):
    """365 appends to a sharded store: how many bytes they write."""
    layout = ["--chunks", "time=1", "--shards", "time=32"]
    store, want = tmp_path / "s.zarr", tmp_path / "want.zarr"
    began = 40  # shards are no longer than the array that they are made for
    files = [field(tmp_path / f"day{i:05}.nc", i) for i in range(began + 365)]
    tool.nc2zarr("-q", *layout, *files[:began], store).ok()
    whole = tool.nc2zarr("--json", *layout, *files, want).json()["output"]["nbytes"]
    written, took, opened = 0, [], 0
    for i in range(began, began + 365):
        command = ["--json", "--verify", "none", "--append", "time", "--append-rest", rest]
        report = tool.nc2zarr(*command, *(files[: i + 1] if rest == "hold" else files[i : i + 1]), store).json()
        written += report["output"]["nbytes"]
        opened += report["input"]["opened"] or 0
        took.append(report["seconds"])
        assert report["append"]["length"] + report["append"]["nheld"] == i + 1
    print(f"{rest}: {written} bytes in 365 appends, {written / whole:.2f} of one conversion's {whole}; {opened} files opened")
    print(f"{rest}: first appends {np.median(took[:20]):.4f} s, last {np.median(took[-20:]):.4f} s")
    if rest == "hold":
        assert written <= 1.5 * whole
        tool.nc2zarr("-q", "--append", "time", *files, store).ok()
    a, b = zarr.open_group(store, mode="r"), zarr.open_group(want, mode="r")
    for name in ("tas", "time"):
        np.testing.assert_array_equal(a[name][...], b[name][...])


@pytest.mark.long
def test_one_new_file_among_many(tmp_path):
    """The nightly command, a pattern, opens what is new and nothing else."""
    n = 5000
    here, store = tmp_path / "in", tmp_path / "s.zarr"
    here.mkdir()
    with netCDF4.Dataset(tmp_path / "one.nc", "w", format="NETCDF3_CLASSIC") as nc:
        nc.createDimension("time", 1)
        t = nc.createVariable("time", "f8", ("time",))
        t.units = "days since 2000-01-01"
        t[:] = [123456789.0]
        nc.createVariable("v", "f8", ("time",))[:] = [987654321.0]
    template = (tmp_path / "one.nc").read_bytes()
    day, value = (np.array(x, ">f8").tobytes() for x in (123456789.0, 987654321.0))
    assert template.count(day) == template.count(value) == 1

    def make(i):
        (here / f"{i:05}.nc").write_bytes(template.replace(day, np.array(float(i), ">f8").tobytes()).replace(value, np.array(i * 0.5, ">f8").tobytes()))

    for i in range(n):
        make(i)
    made = tool.nc2zarr("--json", "--verify", "none", f"{here}/*.nc", store).json()
    assert made["input"]["opened"] == n
    make(n)
    report = tool.nc2zarr("--json", "--verify", "none", "--append", "time", f"{here}/*.nc", store).json()
    assert report["append"] == {"dimension": "time", "was": n, "length": n + 1, "nheld": 0, "nlisted": n}
    assert report["input"]["opened"] == 1
    np.testing.assert_array_equal(zarr.open_group(store, mode="r")["v"][...], np.arange(n + 1) * 0.5)
