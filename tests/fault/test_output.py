"""Output that cannot be written, or is cut short: nothing opens as a complete store."""

import itertools
import os
import signal
import subprocess
import time

import pytest

from support import nc_equals_zarr, paths, tool


def files_in(folder):
    return sum(len(files) for _, _, files in os.walk(folder))


@pytest.mark.parametrize(
    "options",
    [[], ["--shards", "auto"], ["--zarr-format", "2"], ["-j", "1", "--codec", "none"], ["--durable"]],
    ids=" ".join,
)
def test_full_disk(noise, small_disk, options):
    out = small_disk("size=8m") / "out.zarr"
    tool.nc2zarr(*options, noise, out).fails(1, "out.zarr", "no space left")
    assert not tool.opens_as_store(out)


@pytest.mark.parametrize("size", ["4k", "8k", "16k", "32k", "64k"])
def test_disk_full_while_metadata_is_written(small_disk, size):
    out = small_disk(f"size={size}") / "out.zarr"
    done = tool.nc2zarr(paths.CORPUS / "cmip_nc4.nc", out)
    if done.status:
        done.fails(1, "out.zarr", "no space left")
        assert not tool.opens_as_store(out)


@pytest.mark.parametrize("inodes", [3, 6, 12, 20])
def test_no_inodes_left(small_disk, inodes):
    out = small_disk(f"size=50m,nr_inodes={inodes}") / "out.zarr"
    tool.nc2zarr(paths.CORPUS / "cmip_nc4.nc", out).fails(1, "no space left")
    assert not tool.opens_as_store(out)


@pytest.mark.parametrize("limit", [0, 100, 1000, 100_000, 700_000])
def test_file_size_limit(noise, out, limit):
    done = tool.nc2zarr(noise, out, before=tool.file_size_limit(limit))
    done.fails(1, "out.zarr")
    assert not tool.opens_as_store(out)


def test_trace_that_cannot_be_written(tmp_path, out):
    tool.nc2zarr("--trace", tmp_path / "no" / "trace.json", paths.CORPUS / "cmip_nc4.nc", out).fails(1, "trace.json")


def start_and_wait(args, out, objects):
    """Starts a conversion and comes back when it has written some objects."""
    process = subprocess.Popen(
        [tool.program("nc2zarr"), *map(str, args), str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=tool.environment(),
    )
    end = time.monotonic() + 300
    while files_in(out) < objects and process.poll() is None and time.monotonic() < end:
        time.sleep(0.002)
    assert process.poll() is None, "too fast to be stopped: " + process.stderr.read()
    return process


SLOW = ["-j", "1", "--codec", "zstd:15", "--chunks", "auto:512KiB"]


@pytest.mark.parametrize(
    "objects, options",
    list(itertools.product((0, 1, 7, 30), ([], ["--zarr-format", "2"], ["--shards", "auto:4MiB"])))[:-1],
    ids=lambda v: " ".join(v) if isinstance(v, list) else str(v),
)
def test_killed(noise, out, objects, options):
    process = start_and_wait([*SLOW, *options, noise], out, min(objects, 5) if "--shards" in options else objects)
    process.kill()
    process.communicate()
    assert not tool.opens_as_store(out), sorted(p.name for p in out.iterdir())


@pytest.mark.long(ci=1)
def test_killed_then_done_again(noise, out):
    process = start_and_wait([*SLOW, noise], out, 5)
    process.kill()
    process.communicate()
    tool.nc2zarr(noise, out).fails(1, "out.zarr")  # what is there is not overwritten unasked
    tool.nc2zarr("--overwrite", noise, out).ok()
    assert nc_equals_zarr.differences(noise, out, decoded=False) == []


@pytest.mark.engine
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_stopped(noise, out, number):
    process = start_and_wait([*SLOW, noise], out, 3)
    process.send_signal(number)
    printed, said = process.communicate(timeout=300)
    said = tool.spoken(said)
    assert process.returncode in (128 + number, -number), said
    assert printed == "" and len(said.splitlines()) == 1 and str(out) in said, said
    assert not tool.opens_as_store(out)


def test_input_that_shrinks_while_it_is_read(noise, tmp_path, out):
    copy = tmp_path / "shrinks.nc"
    copy.write_bytes(noise.read_bytes())
    process = start_and_wait([*SLOW, copy], out, 2)
    os.truncate(copy, 2_000_000)
    printed, said = process.communicate(timeout=300)
    assert process.returncode == 1 and "shrinks.nc" in said, said
    assert not tool.opens_as_store(out)
