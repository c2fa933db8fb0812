"""--memory is a promise about readbench and its workers together, as the system counts them."""

import json
import os
import re
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
import zarr

from support import paths
from support import readbench as rb
from support import tool

pytestmark = pytest.mark.skipif(paths.SANITIZED, reason="a sanitizer's own memory would be counted")

MIB = 1 << 20
SHAPE, CHUNK = (96, 1024, 1024), (4, 256, 256)  # 384 MiB decoded, 1 MiB a chunk


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """One chunk under many names: what is on disk is small."""
    path = tmp_path_factory.mktemp("large") / "t.zarr"
    array = zarr.create_group(str(path)).create_array("t", shape=SHAPE, chunks=CHUNK, dtype="f4")
    array[:4, :256, :256] = np.random.default_rng(1).integers(0, 9, CHUNK).astype("f4")
    first = path / "t" / "c" / "0" / "0" / "0"
    for z in range(24):
        for y in range(4):
            folder = path / "t" / "c" / str(z) / str(y)
            folder.mkdir(parents=True, exist_ok=True)
            for x in range(4):
                if (z, y, x) != (0, 0, 0):
                    os.link(first, folder / str(x))
    return path


def family(pid):
    found, queue = {pid}, [pid]
    while queue:
        try:
            tasks = list(Path(f"/proc/{queue.pop()}/task").iterdir())
            for task in tasks:
                for child in map(int, (task / "children").read_text().split()):
                    if child not in found:
                        found.add(child)
                        queue.append(child)
        except OSError:
            continue
    return found


def resident(pid):
    """Bytes of all of them; what they share is counted once."""
    total = 0
    for one in family(pid):
        try:
            total += int(re.search(r"^Pss: +(\d+) kB", Path(f"/proc/{one}/smaps_rollup").read_text(), re.M)[1]) * 1024
        except (OSError, TypeError):
            pass
    return total


def watched(*args):
    """The peak of a run that succeeds, and its document."""
    process = subprocess.Popen(
        [tool.program("readbench"), "--json", "--no-out", *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=tool.environment(),
    )
    peak = 0
    while process.poll() is None:
        peak = max(peak, resident(process.pid))
        time.sleep(0.003)
    out, err = process.communicate()
    assert process.returncode == 0, err
    assert peak > 0
    return peak, rb.check(out)


RUN = ["--batch", 4, "--batches", 12, "--epochs", 1, "--step-time", "0ms"]
SMALL = ["--sample", "4x128x128"]
CASES = {
    "threads": [*SMALL, "--workers", 4],
    "worker threads": [*SMALL, "--workers", 2, "--worker-threads", 2],
    "fork": [*SMALL, "--mode", "processes", "--workers", 3],
    "planned": [*SMALL, "--loader", "planned"],
    "planned in processes": [*SMALL, "--loader", "planned", "--mode", "processes"],
    "a cache": [*SMALL, "--cache", "24MiB"],
    "mmap": [*SMALL, "--io", "mmap"],
    "a host device": [*SMALL, "--device", "host", "--slot-size", "1MiB"],
    "maps": ["--order", "map", "--workers", 2, "--batches", 5],
    "series": ["--order", "series", "--workers", 2, "--batch", 8, "--batches", 4],
}


# Batches of maps take more than 96 MiB.
LIMITED = [
    pytest.param(args, n, id=f"{k}-{n}") for k, args in CASES.items() for n in (96, 256) if (k, n) != ("maps", 96)
]


@pytest.mark.long
@pytest.mark.parametrize("args, limit", LIMITED)
def test_memory(large, args, limit):
    peak, document = watched(*RUN, *args, "--memory", f"{limit}MiB", large)
    assert peak <= limit * MIB, f"{peak / MIB:.0f} MiB"
    told = document["sessions"][0]["resources"]
    assert told["memory_limit"] == limit * MIB
    assert told["memory_planned"] <= limit * MIB
    assert told["peak_nbytes"] <= limit * MIB
    assert document["sessions"][0]["counts"]["decoded_nbytes"] > 20 * MIB


REFUSED = {
    "a batch that does not fit": ["--sample", "96x256x256", "--batch", 8],
    "batches under way": ["--sample", "16x256x256", "--batch", 4, "--workers", 4, "--prefetch", 8],
    "a cache": [*SMALL, "--cache", "200MiB"],
    "slots": [*SMALL, "--device", "host", "--slots", 40, "--slot-size", "16MiB"],
    "a window": [*SMALL, "--loader", "planned", "--shuffle-window", 380],
}


@pytest.mark.parametrize("args", REFUSED.values(), ids=REFUSED)
def test_what_cannot_fit_is_refused(large, args):
    """Before anything is read, with the number that would do; or else it fits all the same."""
    result = tool.run("readbench", *RUN, *args, "--json", "--no-out", "--memory", "96MiB", large, peak=True)
    assert result.peak <= 96 * MIB, f"{result.peak / MIB:.0f} MiB"
    if result.status == 0:
        assert json.loads(result.out)["sessions"][0]["resources"]["memory_planned"] <= 96 * MIB
        return
    assert result.status in (1, 2), str(result)
    sentence = result.err.splitlines()[-1]
    assert "--memory" in sentence and re.search(r"\d[\d.]* [KMG]iB", sentence), sentence


def test_the_memory_of_a_worker(large):
    """Too little memory is reported before anything is read."""
    args = [*RUN, *SMALL, "--mode", "processes", "--workers", 2, "--worker-memory"]
    document = rb.check(rb.readbench(*args, "64MiB", "--json", "--no-out", large).out)
    assert document["sessions"][0]["settings"]["worker-memory"] == str(64 * MIB)
    result = rb.readbench(*args, "1MiB", "--no-out", large, status=1)
    assert "--worker-memory" in result.err and "takes up to" in result.err, str(result)
