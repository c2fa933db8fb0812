"""One writer at a time adds to a store: locks of runs that go on, that have ended, and of other hosts."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
import xarray as xr

from support import failio, preload, tool
from support.locks import lock_text

from . import files as F

OLD = 6 * 60  # seconds; a lock that beats is silent for five minutes before it is taken over


LOCKS = {  # its text, the seconds since it was written, and what an append says: refused, with --break-lock
    "a run that goes on": (lambda: lock_text(), 0, "another run", "another run"),
    "a run that goes on, long silent": (lambda: lock_text(beats=True), OLD, "another run", "another run"),
    "a run that has ended": (lambda: lock_text(**{"process": 2**22 - 1}), 0, None, None),
    "a number that was given again": (lambda: lock_text(**{"process start": 1}), 0, None, None),
    "another host": (lambda: lock_text(host="elsewhere", beats=True), 0, "elsewhere", None),
    "another host, five minutes silent": (lambda: lock_text(host="elsewhere", beats=True), OLD, None, None),
    "another host, which never beats": (lambda: lock_text(host="elsewhere"), OLD, "elsewhere", None),
    "another container": (lambda: lock_text(**{"process space": "pid:[1]", "beats": True}), 0, "cannot be seen", None),
    "half of it": (lambda: lock_text()[:50], OLD, "does not say by whom", None),
    "nothing": (lambda: "", OLD, "does not say by whom", None),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    tool.nc2zarr("-q", "--chunks", "time=4", *F.days(folder, 0, 5), folder / "s.zarr").ok()
    return folder


@pytest.fixture
def store(made, tmp_path):
    failio.renew(made, tmp_path / "work")
    return tmp_path / "work" / "s.zarr"


@pytest.fixture
def new(tmp_path):
    return F.day(tmp_path / "new.nc", 5, 2)


def length(store):
    with xr.open_zarr(store) as ds:
        return ds.sizes["time"]


@pytest.mark.every
@pytest.mark.parametrize("name", LOCKS)
def test_locks(store, new, name):
    text, age, refused, broken = LOCKS[name]
    lock = Path(f"{store}.chunkmill/lock")
    lock.write_text(text())
    os.utime(lock, (time.time() - age,) * 2)
    before = failio.contents(store.parent)
    for options, sentence in (([], refused), (["--break-lock"], broken)):
        done = tool.nc2zarr("--append", "time", *options, new, store)
        if sentence:
            done.fails(1, sentence, "s.zarr")
            assert failio.contents(store.parent) == before
            continue
        assert "took over the lock" in done.ok().err
        assert not lock.exists() and length(store) == 7
        return


@pytest.mark.parametrize("name", ["another host", pytest.param("another host, five minutes silent", marks=pytest.mark.long(ci=1))])
def test_a_clock_that_jumps(store, new, name):
    """With a clock that is sometimes an hour ahead or behind: the file system tells how long a holder has been silent."""
    text, age, refused, _ = LOCKS[name]
    lock, env = Path(f"{store}.chunkmill/lock"), {"LD_PRELOAD": str(preload.library("jumpclock"))}
    lock.write_text(text())
    os.utime(lock, (time.time() - age,) * 2)
    done = tool.nc2zarr("-q", "--append", "time", new, store, env=env)
    (done.fails(1, refused) if refused else done.ok())


def test_two_writers(store, new, tmp_path):
    """While one appends, which stands still before it puts its first chunk, another is refused; the first then ends as if alone."""
    lock = Path(f"{store}.chunkmill/lock")
    command = [tool.program("nc2zarr"), "-q", "-j", "1", "--append", "time", str(new), str(store)]
    env = tool.environment() | failio.environment(store, tmp_path / "state", "rename", 1, "stop")
    first = subprocess.Popen(command, env=env)
    try:
        assert os.WIFSTOPPED(os.waitpid(first.pid, os.WUNTRACED)[1]) and lock.exists()
        tool.nc2zarr("--append", "time", new, store).fails(1, "another run", "s.zarr")
    finally:
        first.send_signal(signal.SIGCONT)
    assert first.wait(300) == 0 and not lock.exists()
    assert length(store) == 7


def test_one_of_many_takes_a_stale_lock(store, new):
    """Each of them adds the same file: however they follow each other, it is in the store once."""
    Path(f"{store}.chunkmill/lock").write_text(lock_text(process=2**22 - 1))
    command = [tool.program("nc2zarr"), "-q", "--append", "time", str(new), str(store)]
    runs = [subprocess.Popen(command, env=tool.environment(), stderr=subprocess.PIPE, text=True) for _ in range(4)]
    said = [(r.communicate(timeout=300)[1], r.returncode) for r in runs]
    assert any(status == 0 for _, status in said), said
    assert all(status == 0 or (status == 1 and "another run" in err) for err, status in said), said
    assert length(store) == 7
    F.same(store, [*sorted(store.parent.glob("*.nc")), new])
