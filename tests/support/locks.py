"""Reads the content of a run's lock."""

import json
import os
import socket
from pathlib import Path


def lock_text(**changes):
    """Of a process that runs, this one."""
    words = Path(f"/proc/{os.getpid()}/stat").read_text().rsplit(")", 1)[1].split()
    return json.dumps({
        "chunkmill lock": 1, "host": socket.gethostname(), "process": os.getpid(), "process start": int(words[19]),
        "boot": Path("/proc/sys/kernel/random/boot_id").read_text().strip(), "machine": "",
        "process space": os.readlink("/proc/self/ns/pid"), "time": "2026-01-01T00:00:00Z", **changes,
    }) + "\n"  # fmt: skip
