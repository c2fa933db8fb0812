"""Runs programs of which one call to the system fails (tests/fault/failio.c)."""

import contextlib
import os
import shutil
import signal
import struct
import subprocess
import time
from dataclasses import dataclass

import pytest

from . import paths, preload, tool

CLASSES = (
    "open read write sync rename mkdir unlink close mmap thread truncate stat list lock fork ring".split()  # as there
)
NBYTES, NCOUNTS = 4096, 32

# Possible failures of each class of calls; "+" is one that persists, as a full disk does.
WAYS = {
    "open": ["EIO", "EMFILE"],
    "read": ["EIO", "short", "EINTR"],
    "write": ["EIO", "ENOSPC+", "short", "EINTR"],
    "sync": ["EIO"],
    "rename": ["EIO"],
    "mkdir": ["ENOSPC"],
    "unlink": ["EIO", "EACCES+"],
    "close": ["EIO"],
    "mmap": ["ENOMEM"],
    "thread": ["EAGAIN", "EAGAIN+"],
    "truncate": ["EIO"],
    "stat": ["EIO"],
    "list": ["EIO"],
    "lock": ["ENOLCK"],
    "fork": ["EAGAIN"],
    "ring": ["ENOSYS"],
}
NAMELESS = ("mmap", "thread", "fork", "ring")  # what fails there is no file


@dataclass
class Outcome:
    done: tool.Result
    counts: dict  # calls by class
    nfailed: int
    what: str  # the first call that failed


def environment(root, state, kind=None, nth=0, way="EIO"):
    """In which call NTH of KIND fails in WAY; STATE is a path for a small file, which is made."""
    if paths.SANITIZED:
        pytest.skip("a sanitizer's library has to be the first one")
    state.write_bytes(bytes(NBYTES))
    return {
        "LD_PRELOAD": str(preload.library("failio")),
        "FAILIO_STATE": str(state),
        "FAILIO_ROOT": os.path.realpath(root),
        "FAILIO_CLASS": kind or "",
        "FAILIO_NTH": str(nth),
        "FAILIO_HOW": way.rstrip("+"),
        "FAILIO_ON": "1" if way.endswith("+") else "0",
    }


def inject(name, *args, root, state, kind=None, nth=0, way="EIO", **kw):
    """Runs NAME, where only what lies below ROOT counts."""
    env = environment(root, state, kind, nth, way)
    done = tool.run(name, *args, env={**env, **kw.pop("env", {})}, **kw)
    counts = struct.unpack_from(f"{NCOUNTS}QQ", state.read_bytes())
    return Outcome(done, dict(zip(CLASSES, counts)), counts[NCOUNTS], failed(state))


def failed(state):
    """The first call that failed, or before which the program stands; "" until then."""
    return state.read_bytes()[8 * (NCOUNTS + 1) :].split(b"\0")[0].decode("utf-8", "replace")


def go_on(child, limit=300):
    """
    Lets CHILD, which leads a group of its own, go on to its end; what it wrote on standard error.  A program says
    that it stands before it does, and would stand for ever if it was told to go on in between: so it is told again.
    """
    end = time.monotonic() + limit
    while True:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGCONT)
        try:
            return child.communicate(timeout=0.5)[1]
        except subprocess.TimeoutExpired:
            if time.monotonic() > end:
                raise


def spread(count, most):
    """At most MOST of the numbers 1 to COUNT, the first and the last among them."""
    if count <= most or most == 1:
        return list(range(1, min(count, most) + 1))
    return sorted({1 + i * (count - 1) // (most - 1) for i in range(most)})


def renew(template, root):
    """ROOT becomes what TEMPLATE is, times included."""
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(template, root, symlinks=True)


def contents(folder):
    """Contents below FOLDER: the bytes of files, the targets of links, None for folders."""
    found = {}
    for at, folders, files in os.walk(folder):
        for name in folders + files:
            path = os.path.join(at, name)
            key = os.path.relpath(path, folder)
            if os.path.islink(path):
                found[key] = os.readlink(path)
            elif os.path.isdir(path):
                found[key] = None
            else:
                with open(path, "rb") as f:
                    found[key] = f.read()
    return found
