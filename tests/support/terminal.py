"""Programs whose standard error is a terminal, on which they draw how far they are."""

import os
import pty
import re
import select
import subprocess
import tempfile
import time

from . import tool

HANG = 300  # seconds: no result depends on it


class Watched:
    """
    A program that runs.  What it does is seen on its bar, so a test can wait until it has done something, however long
    the machine takes, and need not guess when.
    """

    def __init__(self, argv, cwd=None, env=None):
        self.controller, terminal = pty.openpty()
        self.printed = tempfile.TemporaryFile("w+")
        self.seen = ""
        self.process = subprocess.Popen(
            [str(word) for word in argv],
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=self.printed,
            stderr=terminal,
            env=tool.environment({**(env or {}), "TERM": "xterm"}),
        )
        os.close(terminal)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.printed.close()
        os.close(self.controller)

    def read(self, seconds):
        """False: nothing more will come."""
        if not select.select([self.controller], [], [], seconds)[0]:
            return True
        try:
            part = os.read(self.controller, 65536)
        except OSError:  # EIO: the program has ended
            return False
        self.seen += part.decode("utf-8", "replace")
        return bool(part)

    def until(self, pattern):
        """Waits until PATTERN is drawn."""
        end = time.monotonic() + HANG
        while not re.search(pattern, self.seen):
            assert self.read(1), f"it ended without {pattern}:\n{self.seen}"
            assert time.monotonic() < end, f"waited in vain for {pattern}:\n{self.seen}"

    def end(self):
        """Waits for its end: what it printed, and what it said besides its bar."""
        end = time.monotonic() + HANG
        while self.read(1):
            assert time.monotonic() < end, f"it does not end:\n{self.seen}"
        self.process.wait(HANG)
        self.printed.seek(0)
        return self.printed.read(), re.sub(r"\r[^\r\n]*\r?\x1b\[K", "", self.seen).replace("\r\n", "\n").replace("\r", "")


def shown(argv, cwd=None):
    """The terminal's output of a program that must end well."""
    with Watched(argv, cwd) as watched:
        watched.end()
        assert watched.process.returncode == 0
        return watched.seen
