"""Workers of readbench that are killed, runs that are interrupted, loaders of users that misbehave."""

import collections
import os
import re
import signal
import stat
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
import zarr

from support import paths
from support import readbench as rb
from support import terminal, tool

SHAPE = (16, 32, 32)
FIELD = np.random.default_rng(9).random(SHAPE, "f4")
BOX = ["--sample", "2x8x8", "--batch", 4]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("workers") / "t.zarr"
    zarr.create_group(str(path)).create_array("t", shape=SHAPE, chunks=(2, 8, 8), dtype="f4")[...] = FIELD
    return path


def descendants(pid):
    """Processes that PID began, and those that they began."""
    parents = collections.defaultdict(list)
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if fields[0] != "Z":
            parents[int(fields[1])].append(int(entry.name))
    found, queue = [], [pid]
    while queue:
        for child in parents[queue.pop()]:
            found.append(child)
            queue.append(child)
    return found


def command(store, out, *args):
    return [tool.program(rb.BARE), *map(str, [*BOX, "--log-samples", "--memory", rb.MEMORY, *args, "--out", out, store])]


def begin(store, out, *args, env=None):
    return subprocess.Popen(
        command(store, out, *args),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=tool.environment(env),
    )


def is_ready(pid, store):
    """Whether worker PID has opened the store and waits for what it is to do: one that dies before that ends the run."""
    try:
        opened = any(os.readlink(fd) == str(store) for fd in Path(f"/proc/{pid}/fd").iterdir())
        return opened and Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "S"
    except OSError:
        return False


def has_taken(pid, number):
    """Whether signal NUMBER, sent to PID, has been delivered: until then another one of its number is lost."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True
    pending = [int(mask, 16) for mask in re.findall(r"^(?:SigPnd|ShdPnd):\s*(\w+)", status, re.M)]
    return not any(mask >> (number - 1) & 1 for mask in pending)


def until(condition, seconds=terminal.HANG):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.002)
    raise AssertionError("it did not happen in time")


def gone(pids):
    def running():
        left = []
        for pid in pids:
            try:
                state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
            except OSError:
                continue
            if state != "Z":
                left.append(pid)
        return left

    until(lambda: not running())


# ---- killed ---------------------------------------------------------------------------------------


@pytest.mark.long(ci=1)
@pytest.mark.parametrize("loader", ["map", "planned"])
def test_workers_that_are_killed_are_begun_anew(store, tmp_path, loader):
    """Their tasks are delivered all the same, in order, and the deaths are counted."""
    taken = ["--loader", loader, "--batches", 100, "--epochs", 2]
    if loader == "planned":  # a window of everything would be filled before the first is killed
        taken += ["--shuffle-window", 8]
    args = ["--mode", "processes", "--workers", 2, "--prefetch", 1, "--step-time", "15ms"]
    process = begin(store, tmp_path / "out", *args, *taken)
    killed = []
    first = []
    try:
        while len(killed) < 3 and process.poll() is None:
            workers = [p for p in descendants(process.pid) if not descendants(p) and p not in killed]
            if not first and len(workers) == 2 and all(is_ready(p, store) for p in workers):
                first = workers
            # Both first ones, and one that was begun anew: a batch that three die at is given up.
            victims = first[len(killed) :] or [p for p in workers if p not in first and is_ready(p, store)]
            if not first or not victims:
                time.sleep(0.002)
                continue
            try:
                # Stopped until it is sure to hold a batch: the training waits for it by then.
                os.kill(victims[0], signal.SIGSTOP)
                time.sleep(0.05)
                os.kill(victims[0], signal.SIGKILL)
                killed.append(victims[0])
            except ProcessLookupError:
                break
        out, err = process.communicate(timeout=terminal.HANG)
    finally:
        process.kill()
    assert process.returncode == 0, err
    assert len(killed) == 3, "the run was over too soon"
    session = rb.Report(tool.Result([], 0, out, err), tmp_path / "out").only
    rb.same_bytes(session, {"t": FIELD})
    quiet = rb.measure(tmp_path / "quiet", store, *BOX, *taken, program=rb.BARE).only
    for epoch in range(2):
        assert collections.Counter(rb.starts(session, epoch)) == collections.Counter(rb.starts(quiet, epoch))
    if loader == "map":
        assert session.logged == quiet.logged
    assert 1 <= session.counts["deaths"] <= 3
    assert session.counts["failed_batches"] == 0 and session.counts["samples"] == 800
    assert "died" in out or "deaths" in out or "killed" in out


def test_a_batch_that_always_kills_its_worker(store, tmp_path):
    """It is given up, and told, after a few."""
    args = ["--mode", "processes", "--workers", 1, "--batches", 2, "--epochs", 1, "--step-time", "0ms"]
    # A leak checker works in a child, which must not be killed.
    env = {"ASAN_OPTIONS": f"{os.environ.get('ASAN_OPTIONS', '')}:detect_leaks=0".lstrip(":")}
    process = begin(store, tmp_path / "out", *args, "--emulate", "latency=250ms", env=env)
    end = time.monotonic() + terminal.HANG
    seen = set()
    try:
        while process.poll() is None and time.monotonic() < end:
            for pid in descendants(process.pid):
                if not is_ready(pid, store):
                    continue
                seen.add(pid)
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.01)
        out, err = process.communicate(timeout=terminal.HANG)
    finally:
        process.kill()
    assert process.returncode == 1, err
    assert len(seen) < 20
    assert re.search(r"worker|died|killed", err), err
    session = rb.Report(tool.Result([], 1, out, err), tmp_path / "out").only
    assert session.counts["failed_batches"] == 2 and session.counts["deaths"] >= 2
    assert session.counts["logical_nbytes"] == 0 and session.rates["logical"] == 0


# ---- interrupted ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "args",
    [
        ["--mode", "threads"],
        ["--mode", "processes"],
        ["--loader", "planned"],
        ["--cache-dir", "CACHE", "--emulate", "latency=2ms"],
    ],
    ids=lambda args: " ".join(args).replace("--", ""),
)
def test_interrupted(store, tmp_path, args):
    cache = tmp_path / "cache"
    args = [str(cache) if a == "CACHE" else a for a in args]
    cache.mkdir()
    args += ["--batches", 100000, "--epochs", 2, "--step-time", "1ms", "--workers", 2]
    with terminal.Watched(command(store, tmp_path / "out", *args)) as watched:
        process = watched.process
        watched.until(r"measuring: (?!0 B)[\d.]+ ")
        children = descendants(process.pid)
        assert len(children) >= (2 if "processes" in args else 0)
        shared = shared_files([process.pid, *children], tmp_path, store)
        process.send_signal(signal.SIGINT)
        out, err = watched.end()
    assert process.returncode in (-signal.SIGINT, 130), err
    gone(children)
    assert not [path for path in shared if os.path.exists(path)]
    report = rb.Report(tool.Result([], 0, out, err), tmp_path / "out")
    assert report.document["outcome"] == "canceled"
    assert "samples/s" in out and re.search(r"SIGINT", err)
    session = report.only
    assert 0 < session.counts["batches"] == len(session.batches)
    rb.same_bytes(session, {"t": FIELD})
    assert session.counts["failed_batches"] == 0, "a batch that was given up did not fail"
    assert {p.name for p in tmp_path.iterdir()} <= {"out", "cache"}


def shared_files(pids, *known):
    """Temporary files that PIDS hold open or mapped, outside of KNOWN folders."""
    found = set()
    for pid in pids:
        try:
            found.update(os.readlink(fd) for fd in Path(f"/proc/{pid}/fd").iterdir())
            found.update(
                line.split(maxsplit=5)[5] for line in Path(f"/proc/{pid}/maps").read_text().splitlines() if "/" in line
            )
        except OSError:
            continue
    places = ("/dev/shm/", tempfile.gettempdir() + "/", "/var/tmp/")
    return {
        f.strip().removesuffix(" (deleted)")
        for f in found
        if f.startswith(places) and not f.startswith((*map(str, known), str(paths.BUILD)))
    }


def test_a_second_signal_stops_at_once(store, tmp_path):
    process = begin(store, tmp_path / "out", "--emulate", "latency=600s", "--workers", 2, "--mode", "processes")
    try:
        until(lambda: len(descendants(process.pid)) >= 2)
        children = descendants(process.pid)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        until(lambda: has_taken(process.pid, signal.SIGINT))
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=terminal.HANG)
    finally:
        process.kill()
    assert process.returncode in (-signal.SIGINT, 130)
    gone(children)


def test_workers_end_with_the_program(store, tmp_path):
    """Killed itself, it leaves no worker behind."""
    process = begin(store, tmp_path / "out", "--mode", "processes", "--workers", 2, "--batches", 100000)
    try:
        until(lambda: len(descendants(process.pid)) >= 2)
        children = descendants(process.pid)
    finally:
        process.kill()
        process.communicate()
    gone(children)


# ---- loaders of users -----------------------------------------------------------------------------

LOADERS = {
    "ends at once": ("import sys\nsys.exit(3)", "ended|end of|exit"),
    "cannot begin": (
        """
import json
input()
print(json.dumps({"error": "the moon is in the way"}))""",
        "the moon is in the way",
    ),
    "answers no JSON": (
        """
input()
print("ready when you are", flush=True)
import time; time.sleep(3600)""",
        "JSON|answer",
    ),
    "answers another batch": (
        """
import json, sys
input()
print('{"ready":true}', flush=True)
for line in sys.stdin:
    print(json.dumps({"batch": 77777, "nbytes": 10}), flush=True)""",
        "batch",
    ),
    "answers without bytes": (
        """
import json, sys
input()
print('{"ready":true}', flush=True)
for line in sys.stdin:
    print(json.dumps({"batch": json.loads(line)["batch"], "nbytes": 0}), flush=True)""",
        "bytes",
    ),
    "cannot read": (
        """
import json, sys
input()
print('{"ready":true}', flush=True)
for line in sys.stdin:
    print(json.dumps({"error": "no such cupboard"}), flush=True)""",
        "no such cupboard",
    ),
    "dies on a batch": (
        """
import os, sys
input()
print('{"ready":true}', flush=True)
sys.stdin.readline()
os.kill(os.getpid(), 9)""",
        "killed|died|ended|signal",
    ),
    "answers endlessly": (
        """
import sys
input()
while True:
    sys.stdout.write("x" * 65536)""",
        "answer|line|long",
    ),
}


@pytest.mark.parametrize("mode", ["threads", "processes"])
@pytest.mark.parametrize("text, words", LOADERS.values(), ids=LOADERS)
def test_a_loader_that_misbehaves(store, tmp_path, text, words, mode):
    script = tmp_path / "loader.py"
    script.write_text(text.lstrip())
    args = [
        *BOX,
        "--batches",
        2,
        "--epochs",
        1,
        "--workers",
        1,
        "--mode",
        mode,
        "--step-time",
        "0ms",
        "--memory",
        "128MiB",
    ]
    result = rb.readbench(*args, "--no-out", "--engine", f"exec:python3 -S {script}", store, status=1)
    last = result.err.splitlines()[-1]
    assert last.startswith("readbench: ") and re.search(words, result.err, re.I), str(result)
    running = subprocess.run(["ps", "axo", "args"], capture_output=True, text=True).stdout
    assert str(script) not in running, "it was left behind"


def test_a_loader_that_recovers(store, tmp_path):
    """It dies once in its life: the batch fails and is counted, and the others come."""
    script, flag = tmp_path / "loader.py", tmp_path / "died"
    script.write_text(f"""
import json, os, sys
input()
print('{{"ready":true}}', flush=True)
for line in sys.stdin:
    request = json.loads(line)
    if request["batch"] == 2 and not os.path.exists({str(flag)!r}):
        open({str(flag)!r}, "w").close()
        os._exit(1)
    print(json.dumps({{"batch": request["batch"], "nbytes": 2048}}), flush=True)
""")
    args = [*BOX, "--batches", 6, "--epochs", 1, "--workers", 1, "--step-time", "0ms", "--memory", "128MiB"]
    result = rb.readbench(*args, "--json", "--no-out", "--engine", f"exec:python3 -S {script}", store, status=1)
    (session,) = rb.check(result.out)["sessions"]
    assert session["counts"]["failed_batches"] == 1 and session["counts"]["batches"] == 6
    assert session["counts"]["logical_nbytes"] == 5 * 2048
    assert session["first_failure"]
    assert stat.S_ISREG(os.stat(flag).st_mode)


SILENT = {
    "before it is ready": "import sys, time\ninput()\n",
    "on a batch": "import sys, time\ninput()\nprint('{\"ready\":true}', flush=True)\nsys.stdin.readline()\n",
}


@pytest.mark.parametrize("mode, number", [("threads", signal.SIGINT), ("threads", signal.SIGTERM), ("processes", signal.SIGKILL)])
@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_a_loader_that_is_silent_ends_with_the_program(store, tmp_path, text, mode, number):
    """One signal is enough, and the command does not live on."""
    script, flag = tmp_path / "loader.py", tmp_path / "silent"
    script.write_text(text + f"open({str(flag)!r}, 'w').close()\ntime.sleep(3600)\n")
    args = ["--mode", mode, "--workers", 1, "--memory", "128MiB", "--no-out"]
    command = [*BOX, *args, "--engine", f"exec:python3 -S {script}", store]
    process = subprocess.Popen(
        [tool.program("readbench"), *map(str, command)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=tool.environment(),
    )
    try:
        until(flag.exists)
        children = descendants(process.pid)
        assert children
        process.send_signal(number)
        process.communicate(timeout=terminal.HANG)
    finally:
        process.kill()
    assert process.returncode in (-number, 128 + number)
    gone(children)
