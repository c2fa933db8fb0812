"""A program whose standard error is a terminal."""

import os
import pty
import subprocess


def shown(argv, cwd=None):
    """What it gets to see, the program having ended well."""
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [str(word) for word in argv],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=terminal,
        env={**os.environ, "TERM": "xterm"},
    )
    os.close(terminal)
    seen = b""
    while True:
        try:
            part = os.read(controller, 65536)
        except OSError:  # EIO: the program has ended
            break
        if not part:
            break
        seen += part
    os.close(controller)
    assert process.wait(timeout=300) == 0
    return seen.decode()
