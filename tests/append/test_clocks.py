"""The clock of the file system is set while a lock is held or waited for: nobody loses it, takes it wrongly, or waits for ever."""

import os
import subprocess
import threading
import time
from pathlib import Path

import pytest

from support import failio, tool
from support.locks import lock_text

from . import files as F
from .test_locks import length

HOUR = 3600
STEPS = {"forward": -HOUR, "forward by six minutes": -6 * 60, "back": HOUR, "back by a day": 24 * HOUR}  # the age of a beat, less


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clocks")
    tool.nc2zarr("-q", "--chunks", "time=4", *F.days(folder, 0, 5), folder / "s.zarr").ok()
    F.day(folder / "new.nc", 5, 2)
    return folder


@pytest.fixture
def work(made, tmp_path):
    failio.renew(made, tmp_path / "work")
    return tmp_path / "work"


class Elsewhere:
    """A run on another host that holds LOCK, and beats; its file system's clock has been set by STEP seconds since each beat."""

    def __init__(self, lock, step, **text):
        self.lock, self.step, self.over = lock, step, threading.Event()
        lock.parent.mkdir(exist_ok=True)
        lock.write_text(lock_text(host="elsewhere", beats=True, **text))
        self.beat()
        self.thread = threading.Thread(target=self.go_on)
        self.thread.start()

    def beat(self):
        os.utime(self.lock, (time.time() + self.step,) * 2)

    def go_on(self):
        while not self.over.wait(0.2):
            self.beat()

    def end(self):
        self.over.set()
        self.thread.join()


@pytest.mark.every
@pytest.mark.parametrize("step", STEPS)
def test_a_holder_that_goes_on_keeps_its_lock(work, step):
    store, lock = work / "s.zarr", work / "s.zarr.chunkmill" / "lock"
    run = Elsewhere(lock, STEPS[step])
    try:
        text = lock.read_text()
        for command in (("--append", "time", work / "new.nc", store), ("--overwrite", work / "new.nc", store), ("--consolidate", store)):
            tool.nc2zarr("-q", *command).fails(1, "elsewhere", "s.zarr")
            assert lock.read_text() == text and length(store) == 5
    finally:
        run.end()
    tool.nc2zarr("-q", "--append", "time", "--break-lock", work / "new.nc", store).ok()
    assert length(store) == 7


@pytest.mark.few(2)
@pytest.mark.parametrize("step", STEPS)
def test_a_part_waits_for_one_that_goes_on(work, step):
    """And no longer: its lock goes, and the part is made."""
    out = work / "o.zarr"
    options = ("-q", "--chunks", "time=2", "--part")
    tool.nc2zarr(*options, "1/2", *sorted(work.glob("day*.nc")), out).ok()
    run = Elsewhere(Path(f"{out}.chunkmill") / "part-2.lock", STEPS[step], part=True)
    command = [tool.program("nc2zarr"), *options, "2/2", *map(str, sorted(work.glob("day*.nc"))), str(out)]
    part = subprocess.Popen(command, env=tool.environment(), stderr=subprocess.PIPE, text=True)
    try:
        time.sleep(1)
        assert part.poll() is None and run.lock.read_text() == lock_text(host="elsewhere", beats=True, part=True)
    finally:
        run.end()
        run.lock.unlink()
    said = part.communicate(timeout=300)[1]
    assert part.returncode == 0, said
    assert length(out) == 5


@pytest.mark.long(ci=1)
def test_a_holder_that_ended_is_watched_and_followed(work):
    """However old its lock looks: a beat would be seen.  Locks of several parts are watched together."""
    store = work / "s.zarr"
    for k in range(1, 5):
        lock = Path(f"{store}.chunkmill/part-{k}.lock")
        lock.parent.mkdir(exist_ok=True)
        lock.write_text(lock_text(host="elsewhere", beats=True, part=True))
        os.utime(lock, (time.time() - HOUR,) * 2)
    begin = time.monotonic()
    tool.nc2zarr("-q", "--overwrite", work / "new.nc", store).ok()
    assert length(store) == 2
    assert time.monotonic() - begin > 9


def test_stops_while_a_lock_is_watched(work):
    lock = work / "s.zarr.chunkmill" / "lock"
    lock.parent.mkdir(exist_ok=True)
    lock.write_text(lock_text(host="elsewhere", beats=True))
    os.utime(lock, (time.time() - HOUR,) * 2)
    command = [tool.program("nc2zarr"), "-q", "--append", "time", str(work / "new.nc"), str(work / "s.zarr")]
    run = subprocess.Popen(command, env=tool.environment(), stderr=subprocess.PIPE, text=True)
    tool.wait_for_handler(run, 15)
    run.terminate()
    said = run.communicate(timeout=300)[1]
    assert run.returncode == -15 and "stopped by SIGTERM" in said, said
    assert lock.exists() and length(work / "s.zarr") == 5
