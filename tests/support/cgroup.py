"""A memory limit that the system enforces, in whichever version of cgroups there is."""

import os
from pathlib import Path

import pytest

ROOT = Path("/sys/fs/cgroup")


def folder_of(name):
    """A new group's folder and the file of its limit; None where none can be made."""
    for parent, limit in ((ROOT / "memory", "memory.limit_in_bytes"), (ROOT, "memory.max")):
        group = parent / name
        try:
            group.mkdir()
        except OSError:
            continue
        if (group / limit).exists():
            return group, limit
        group.rmdir()
    return None


class Limited:
    """`before` of support.tool.run: the child lives in a group of NBYTES, page cache included."""

    def __init__(self, nbytes):
        made = folder_of(f"chunkmill-{os.getpid()}")
        if not made:
            pytest.skip("no cgroup with a memory limit can be made here")
        self.group, limit = made
        try:
            (self.group / limit).write_text(str(nbytes))
        except OSError as e:
            self.close()
            pytest.skip(f"no memory limit can be set in a cgroup here: {e}")

    def enter(self):
        (self.group / "cgroup.procs").write_text(str(os.getpid()))

    def close(self):
        self.group.rmdir()
