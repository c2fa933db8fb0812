"""Machines of little memory, where programs refuse work that their default memory is too small for."""

import functools
import re
from pathlib import Path

import pytest

LITTLE = 1 << 30  # bytes; a browser needs about half, and programs take a part of what is left
REFUSAL = re.compile(r"(?:not enough memory|does not fit the memory): [^\n]*")


def numbers():
    """Bytes that the machine and this process's control group have."""
    meminfo = Path("/proc/meminfo").read_text()
    yield int(re.search(r"MemTotal:\s+(\d+)", meminfo)[1]) << 10
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers in ("", "memory"):
            file = Path("/sys/fs/cgroup", controllers, path.lstrip("/"), "memory.limit_in_bytes" if controllers else "memory.max")
            text = file.read_text().strip() if file.exists() else "max"
            if text != "max":
                yield int(text)


@functools.cache
def is_little():
    return min(numbers()) < LITTLE


def excuse(failure):
    """Skips a test that ended with FAILURE because a program refused to begin, on a machine of little memory."""
    refused = REFUSAL.search(str(failure)) if is_little() else None
    if refused:
        pytest.skip(f"the machine has too little memory: {refused[0]}"[:200])
