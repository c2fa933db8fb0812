"""Runs readbench and reads its report back, and knows from the data alone what a sample is."""

import csv
import functools
import itertools
import json
import math
from pathlib import Path

import google_crc32c
import jsonschema
import numpy as np

from . import paths, tool

SCHEMA = json.loads((paths.ROOT / "tools" / "schema" / "readbench.json").read_text())

# The probe of memory's speed takes half a gigabyte where it may; libnetcdf 4.9.3 has larger caches than 4.9.0.
MEMORY = "256MiB"


def check(text):
    document = json.loads(text)
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    return document


def rows(path):
    with open(path, newline="") as f:
        return [
            {k: int(v) if v.lstrip("-").isdigit() and k != "crc32c" else v for k, v in r.items()}
            for r in csv.DictReader(f)
        ]


def lengths(text):
    return tuple(map(int, text.split("x"))) if text else ()


# The program without the raw rates, predictions and pictures that take a second of each session.
BARE = "../tests/bare/readbench"


class Session:
    """One measurement of a report, and its records."""

    def __init__(self, folder, summary):
        self.folder, self.summary = Path(folder), summary

    def __getattr__(self, name):
        if name in self.__dict__.get("summary", {}):
            return self.summary[name]
        raise AttributeError(name)

    @functools.cached_property
    def batches(self):
        return rows(self.folder / "batches.csv")

    @functools.cached_property
    def logged(self):
        """(epoch, rank, batch, place, number, part, variable, lag, start, shape, crc) of each delivered sample."""
        keys = ("epoch", "rank", "batch", "place", "number", "part", "variable", "lag")
        return [
            (*(r[k] for k in keys), lengths(r["start"]), lengths(r["shape"]), int(r["crc32c"], 16))
            for r in rows(self.folder / "samples.csv")
        ]

    def events(self, name="events.log"):
        return [json.loads(line) for line in (self.folder / name).read_text().splitlines()]


class Report:
    def __init__(self, result, folder):
        self.result, self.folder = result, Path(folder)
        self.document = check((self.folder / "summary.json").read_text())
        several = len(self.document["sessions"]) > 1
        self.sessions = [
            Session(self.folder / s["label"] if several else self.folder, s) for s in self.document["sessions"]
        ]

    @property
    def only(self):
        (session,) = self.sessions
        return session


def readbench(*args, status=0, env=None, program="readbench", **kw):
    result = tool.run(program, *args, env=env, **kw)
    assert status is None or result.status == status, str(result)
    return result


def measure(folder, store, *args, status=0, **kw):
    """The report in FOLDER of a run over STORE; PROGRAM: readbench or BARE."""
    stores = store if isinstance(store, (list, tuple)) else [store]
    workers = [] if "sync" in args or "--workers" in args else ["--workers", 2]
    result = readbench(
        "--step-time",
        "0ms",
        "--memory",
        MEMORY,
        "--log-samples",
        *workers,
        *args,
        "--out",
        folder,
        *stores,
        status=status,
        **kw,
    )
    return Report(result, folder)


# ---- what was delivered, by another reader --------------------------------------------------------

Crc = google_crc32c.value


def delivered(values):
    """The bytes of VALUES as a loader hands them on: C order, little-endian."""
    values = np.ascontiguousarray(values)
    return values.astype(values.dtype.newbyteorder("<"), copy=False).tobytes()


def box(start, shape):
    return tuple(slice(s, s + n) for s, n in zip(start, shape))


def same_bytes(session, arrays):
    """Every logged sample is that box of ARRAYS, {variable: numpy array as delivered}."""
    assert session.logged
    wrong = [row[:10] for row in session.logged if Crc(delivered(arrays[row[6]][box(row[8], row[9])])) != row[10]]
    assert not wrong, f"{len(wrong)} of {len(session.logged)} samples differ, first {wrong[:3]}"


def starts(session, epoch, part=0, rank=None):
    """Of the delivered samples, in the order of delivery."""
    return [r[8] for r in session.logged if r[0] == epoch and r[5] == part and rank in (None, r[1])]


def tiles(shape, sample, clipped=False):
    """First elements of samples that lie side by side, in C order."""
    count = [-(-n // s) if clipped else n // s for n, s in zip(shape, sample)]
    return [tuple(i * s for i, s in zip(at, sample)) for at in itertools.product(*map(range, count))]


def offsets(shape, sample):
    return math.prod(n - s + 1 for n, s in zip(shape, sample))


def met(start, shape, chunk):
    """Chunks that a box meets."""
    return math.prod((s + n - 1) // c - s // c + 1 for s, n, c in zip(start, shape, chunk))
