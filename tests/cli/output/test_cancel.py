"""The first signal ends a program wherever it is, in what goes before the moving of data too.

Each input keeps a program busy for so long, before anything is read or written, that it could not
have ended by itself: what is signaled has begun to work, which its CPU time shows.
"""

import json
import os
import signal
import subprocess
import time

import netCDF4
import pytest
from support import tool

BUSY = 0.3  # seconds of CPU time: opening takes a tenth of it


def array(path, shape, chunks):
    path.mkdir()
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": shape,
        "data_type": "float32",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0.0,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "attributes": {},
    }
    (path / "zarr.json").write_text(json.dumps(document))
    return path


def sparse(path):
    """4 TiB, of which a few kilobytes are stored."""
    rows = 1 << 30
    with netCDF4.Dataset(path, "w") as d:
        d.createDimension("row", rows)
        d.createDimension("column", 1024)
        d.set_fill_off()
        v = d.createVariable("x", "f4", ("row", "column"), contiguous=True)
        try:
            v[rows - 1, :] = 1
        except RuntimeError:
            pytest.skip("no file of 4 TiB can be made here")
    return path


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as f:
        words = f.read().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def is_busy(process):
    return cpu_seconds(process.pid) >= BUSY


def stopped(name, *args, cwd, begun=is_busy, number=signal.SIGTERM):
    process = subprocess.Popen(
        [tool.program(name), *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        env=tool.environment(),
    )
    try:
        end = time.monotonic() + 300
        while process.poll() is None and not begun(process) and time.monotonic() < end:
            time.sleep(0.01)
        assert process.poll() is None, f"too fast to be stopped: {process.stderr.read()}"
        process.send_signal(number)
        said = process.communicate(timeout=300)[1]
    finally:
        process.kill()
    assert process.returncode == -number, said
    assert f"stopped by {number.name}" in said


def test_while_the_page_cache_is_asked_about_a_sparse_file(tmp_path):
    # Asking ends after some seconds; what follows does not end by itself either.
    endless = ["--batches", 10**6, "--step-time", "10ms"]
    stopped("readbench", "--sample", "row=1", *endless, sparse(tmp_path / "in.nc"), cwd=tmp_path)


def test_while_a_sparse_file_is_warmed(tmp_path):
    stopped("readbench", "--warm", "--sample", "row=1", sparse(tmp_path / "in.nc"), cwd=tmp_path)


@pytest.mark.long(ci=1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda n: n.name)
def test_while_small_chunks_are_looked_for(tmp_path, number):
    store = array(tmp_path / "in.zarr", [6000120, 18], [3, 1])
    stopped("rechunk", "--chunks", "100x18", store, tmp_path / "out.zarr", cwd=tmp_path, number=number)
    assert not tool.opens_as_store(tmp_path / "out.zarr")


def test_more_chunks_than_can_be_asked_for_are_planned(tmp_path):
    """45 thousand million of them: nothing is done for each."""
    store = array(tmp_path / "in.zarr", [100000, 2000, 300, 80], [5, 7, 3, 2])
    tool.run(
        "rechunk", "--dry-run", "--chunks", "11x3x7x5", "--shards", "none", store, tmp_path / "out.zarr", timeout=300
    ).ok()


STUCK = """#!/bin/sh
read -r greeting
if [ "$1" = start ]; then echo $$ >>"$2"; sleep 600; fi
echo '{"ready":true}'
read -r batch
echo $$ >>"$2"
sleep 600
"""


def group_lives(number):
    try:
        os.killpg(number, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.few(2)
@pytest.mark.parametrize("stuck", ["start", "batch"])
@pytest.mark.parametrize("mode", ["sync", "threads", "processes"])
def test_while_a_loader_of_the_user_is_stuck(tmp_path, mode, stuck):
    """Neither the program nor the loader, nor what the loader began, is there afterwards."""
    with netCDF4.Dataset(tmp_path / "in.nc", "w") as d:
        d.createDimension("row", 100)
        d.createVariable("x", "f4", ("row",))[:] = 1
    (tmp_path / "loader.sh").write_text(STUCK)
    groups = tmp_path / "groups"
    workers = [] if mode == "sync" else ["--workers", "2"]
    engine = ["--engine", f"exec:exec sh {tmp_path}/loader.sh {stuck} {groups}"]
    stopped(
        "readbench", "--no-out", "--sample", "row=1", "--mode", mode, *workers, *engine, tmp_path / "in.nc",
        cwd=tmp_path, begun=lambda process: groups.exists() and groups.read_text().endswith("\n"),
    )  # fmt: skip
    numbers = [int(word) for word in groups.read_text().split()]
    assert numbers
    end = time.monotonic() + 300
    while any(map(group_lives, numbers)) and time.monotonic() < end:
        time.sleep(0.05)
    left = [n for n in numbers if group_lives(n)]
    for number in left:
        os.killpg(number, signal.SIGKILL)
    assert not left
