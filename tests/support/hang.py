"""Shows where a program that did not end in time was, and every process that it started."""

import contextlib
import os
import shutil
import signal
import subprocess
from pathlib import Path

from . import paths

MOST = 20_000  # characters of one process's stacks
# A sanitizer's program answers this with the stack of its main thread; others would leave a core file.
ASK = signal.SIGSEGV if paths.SANITIZED else None


class Hung(subprocess.TimeoutExpired):
    """Its text says what was found before it was killed."""

    def __init__(self, argv, timeout, found, out, err):
        super().__init__(argv, timeout, out, err)
        self.found = found

    def __str__(self):
        out, err = ((text or b"").decode("utf-8", "replace")[-MOST:] for text in (self.stdout, self.stderr))
        return f"{super().__str__()}\n{self.found}\n--- stdout\n{out}\n--- stderr\n{err}"


def text_of(path):
    try:
        return path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        return ""


def family(pid):
    """PID and all its descendants that live, parents first."""
    found = [pid]
    for at in found:
        for children in Path(f"/proc/{at}/task").glob("*/children"):
            found += [int(child) for child in text_of(children).split() if int(child) not in found]
    return found


def stacks(pid):
    if not shutil.which("gdb"):
        return ""
    argv = ["gdb", "-p", str(pid), "-batch", "-nx", "-ex", "thread apply all bt 25"]
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
    except subprocess.TimeoutExpired:
        return ""
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    return "\n".join(line for line in lines if line.startswith(("#", "Thread ")))[:MOST]


def describe(pid):
    """For people: each thread of PID, what it waits for in the kernel, and its stack where gdb is installed."""
    lines = [f"process {pid}: {text_of(Path(f'/proc/{pid}/cmdline'))[:300]}"]
    for task in sorted(Path(f"/proc/{pid}/task").glob("*")):
        state = text_of(task / "stat").rpartition(")")[2].split()
        call = text_of(task / "syscall").split()[:1]
        lines.append(
            f"  thread {task.name} {text_of(task / 'comm')}: state {state[0] if state else '?'}, "
            f"in {text_of(task / 'wchan')}, system call {call[0] if call else '?'}, "
            f"{sum(map(int, state[11:13]))} ticks of CPU time"
        )
    return "\n".join([*lines, stacks(pid)]).rstrip()


def tell(pid, sign):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, sign)


def end(process, timeout):
    """Ends PROCESS and all that it began; returns the exception that tells what they did."""
    members = family(process.pid)
    found = "\n".join(map(describe, members))
    out = err = None
    if ASK is not None:
        for pid in reversed(members):
            tell(pid, ASK)
        with contextlib.suppress(subprocess.TimeoutExpired):
            out, err = process.communicate(timeout=30)
    for pid in reversed(members):
        tell(pid, signal.SIGKILL)
    if out is None:
        out, err = process.communicate()
    return Hung(process.args, timeout, found, out, err)
