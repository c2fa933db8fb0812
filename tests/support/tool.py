"""Runs the project's programs and judges how they end."""

import json
import math
import os
import re
import resource
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from . import hang, paths

# A program starts from a small process: the peak of a child counts what its
# parent held when it was forked, and pytest holds much.
LAUNCHER = r"""
import os, resource, sys
report = int(sys.argv[1])
pid = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ)
status = os.wait4(pid, 0)
os.write(report, str(status[2].ru_maxrss).encode())
code = os.waitstatus_to_exitcode(status[1])
os._exit(code if code >= 0 else 128 - code)
"""


CRASHES = {
    sign * n + base
    for n in (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)
    for sign, base in ((-1, 0), (1, 128))
}


# Progress lines, printed every 10 s, so on a busy machine by any run.
PROGRESS = re.compile(
    r"\w+: (no progress for \d+ s; waiting for: .*|(opening|surveying|planning|converting|measuring|finishing|verifying)(: .*)?)\n", re.A
)


def spoken(err):
    """A program's messages, without the progress lines of long runs."""
    return "".join(line for line in err.splitlines(keepends=True) if not PROGRESS.fullmatch(line))


@dataclass
class Result:
    argv: list
    status: int
    out: str
    err: str
    peak: int = 0  # bytes, where asked for

    def __str__(self):
        return f"{' '.join(map(str, self.argv))}\nstatus {self.status}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"

    @property
    def said(self):
        """Standard output and error, lines joined to sentences."""
        return " ".join((self.out + self.err).split())

    @property
    def warnings(self):
        return [line for line in self.err.splitlines() if "warning" in line.lower()]

    def ok(self):
        assert self.status == 0, str(self)
        return self

    def json(self):
        self.ok()
        return json.loads(self.out)

    def fails(self, status, *words):
        """Ended with STATUS, nothing on standard output, and one sentence that holds WORDS."""
        assert self.status == status, str(self)
        assert self.out == "", str(self)
        lines = [line for line in self.err.splitlines() if "warning" not in line.lower()]
        assert len(lines) == 1, f"not one sentence:\n{self}"
        sentence = lines[0]
        assert sentence.startswith(f"{Path(self.argv[0]).name}: "), str(self)
        assert len(sentence) > 20, str(self)
        for word in words:
            assert str(word).lower() in sentence.lower(), f"{word!r} is not in the sentence:\n{self}"
        return self


def environment(extra=None):
    env = {k: v for k, v in os.environ.items() if k not in ("HDF5_PLUGIN_PATH", "COLUMNS", "LD_PRELOAD")}
    if paths.PRELOAD:
        env["LD_PRELOAD"] = paths.PRELOAD
    env.update(extra or {})
    return env


def program(name):
    return str(paths.BUILD / "bin" / name)


def run(name, *args, cwd=None, env=None, timeout=300, peak=False, before=None, wrap=(), stdin=subprocess.DEVNULL):
    argv = [*wrap, program(name), *map(str, args)]
    fds, command, read = (), argv, None
    if peak:
        read, write = os.pipe()
        fds, command = (write,), [sys.executable, "-I", "-S", "-c", LAUNCHER, str(write), *argv]
    try:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env=environment(env),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=stdin,
            pass_fds=fds,
            preexec_fn=before,
        )
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            raise hang.end(process, timeout) from None
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    finally:
        for fd in fds:
            os.close(fd)
    most = 0
    if peak:
        with os.fdopen(read) as pipe:
            most = int(pipe.read() or 0) * 1024
    result = Result(
        [program(name), *map(str, args)],
        process.returncode,
        out.decode("utf-8", "replace"),
        err.decode("utf-8", "replace") if "--progress" in argv else spoken(err.decode("utf-8", "replace")),
        most,
    )
    assert process.returncode != 99 and "Sanitizer" not in result.err and "runtime error:" not in result.err, str(result)
    assert process.returncode not in CRASHES, f"crashed:\n{result}"
    return result


def nc2zarr(*args, **kw):
    return run("nc2zarr", *args, **kw)


def least_mib(name, *args, **kw):
    """MiB that a run needs, as it says itself: some are the libraries', and differ from build to build."""
    done = run(name, "--memory", "1MiB", *args, **kw)
    assert done.status == 1 and "not enough memory" in done.err, str(done)
    return math.ceil(float(re.search(r"at least ([\d.]+) MiB", done.err)[1]))


def wait_for_handler(process, number):
    """Until PROCESS would handle the signal NUMBER; what comes before that ends it without a word."""
    while process.poll() is None:
        with open(f"/proc/{process.pid}/status") as f:
            caught = next(int(line.split()[1], 16) for line in f if line.startswith("SigCgt"))
        if caught >> (number - 1) & 1:
            return
        time.sleep(0.002)


def file_size_limit(nbytes):
    """For `before`: writes past NBYTES fail as on a full disk, without a signal."""

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (nbytes, nbytes))

    return limit


def opens_as_store(path):
    """True where anything at PATH would open as a complete store: what is being removed says a format of its own."""
    path = Path(path)
    return path.is_dir() and any(opens(path / key) for key in ("zarr.json", ".zgroup", ".zarray", ".zmetadata"))


def opens(document):
    if not document.exists():
        return False
    try:
        return json.loads(document.read_bytes()).get("zarr_format") != "none: this is being removed"
    except ValueError:
        return True
