#!/usr/bin/env python3
"""Whether readbench names a planted cause, and whether following its advice helps:
advice.py BIN FOLDER [--only NAME,...] [--rounds N] [--fixed] [--blind].  `make advice` runs it.

Twelve causes are planted, one at a time, in stores of one variable (96 x 256 x 256, float32).  Of each
readbench has to name the cause, and the command that it prints is run as it stands: a command that
writes the store anew is followed by the same measurement of the new store.  Before and after are
measured in turn; every advice has to make the samples come faster.

--fixed leaves out the situations whose verdict depends on how fast this machine is; `make check` has
those (tests/cli/readbench/test_advice.py).  For the others the machine has to be calm: a verdict of
"contention" where none was planted is measured again when others have become quiet, some times.
"""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import time
from array import array
from dataclasses import dataclass
from math import sin
from pathlib import Path

SHAPE = (96, 256, 256)
SAMPLE = "4x32x32"
QUIET = 0.2  # CPUs that others use at most, before a measurement
TRIES = 6


@dataclass
class Situation:
    name: str
    layout: tuple  # options of nc2zarr; None: the NetCDF file itself
    options: tuple  # of readbench
    causes: set
    changes: set  # that may be advised; None: that none is
    fixed: bool = False  # what is planted is not a matter of this machine's speed
    load: bool = False  # others keep all CPUs busy meanwhile


def chunks(shape, codec="blosc:zstd:2", shards="none"):
    return "--chunks", shape, "--shards", shards, "--codec", codec


def emulate(latency, bandwidth, streams):
    return "--emulate", f"latency={latency},bandwidth={bandwidth}/s,concurrency={streams}"


def steps(length, batches, batch=32):
    return "--step-time", length, "--batches", str(batches), "--batch", str(batch)


ONE = ("--workers", "1")
WHOLE = ("--order", "chunks")
REWRITTEN = {"chunks", "codec"}
SITUATIONS = [
    Situation("decode-bound", chunks("4x32x32", "zstd:19"), (*ONE, *steps("1ms", 150)),
              {"work", "cpus", "few-workers"}, {"codec", "workers"}),
    Situation("slow storage", chunks("4x32x32", "none"), (*ONE, *steps("1ms", 6, 4), *emulate("10ms", "20MB", 1)),
              {"few-requests", "storage", "chunk-shape"}, REWRITTEN, fixed=True),
    Situation("foreign load", chunks("8x32x32"), steps("1ms", 300), {"contention"}, {None}, load=True),
    Situation("too few workers", chunks("4x32x32"), (*ONE, *WHOLE, *steps("1ms", 12, 4), *emulate("5ms", "1GB", 64)),
              {"few-requests"}, {"workers"}, fixed=True),
    Situation("long steps", chunks("4x32x32"), steps("300ms", 4, 2), {"step"}, {None}, fixed=True),
    Situation("chunks too large", chunks("96x256x256"), steps("1ms", 4, 4), {"chunk-shape"}, REWRITTEN, fixed=True),
    Situation("chunks too small", (*chunks("1x8x16", "none"), "--subset", "time=0:24"), steps("1ms", 20), {"chunk-shape"}, REWRITTEN, fixed=True),
    Situation("cold cache", chunks("4x32x32"), ("--cold", *ONE, *steps("1ms", 150)),
              {"storage", "few-requests", "chunk-shape"}, {"workers", *REWRITTEN, None}),
    Situation("sharded", chunks("1x8x8", shards="96x256x256"),
              ("--workers", "2", *steps("1ms", 4, 4), *emulate("2ms", "1GB", 64)), {"chunk-shape"}, REWRITTEN, fixed=True),
    Situation("raw", chunks("32x128x128", "none"), steps("1ms", 60), {"chunk-shape"}, {"chunks"}),
    Situation("memory pressure", chunks("4x32x32"),
              (*ONE, *WHOLE, "--memory", "24MiB", *steps("1ms", 4, 64), *emulate("5ms", "1GB", 64)),
              {"few-requests"}, {"workers", None}, fixed=True),
    Situation("classic NetCDF", None, steps("100us", 400), {"few-requests", "storage", "few-workers", "uneven"},
              {"workers", "prefetch", *REWRITTEN, None}),
]


# ---- what is planted ------------------------------------------------------------------------------


def write_classic(path):
    """A NetCDF file of the 64-bit offset format, written byte by byte: nothing is needed for it."""
    number = lambda n: n.to_bytes(4, "big")
    name = lambda text: number(len(text)) + text.encode() + b"\0" * (-len(text) % 4)
    dims = b"".join(name(n) + number(length) for n, length in zip(("time", "lat", "lon"), SHAPE))
    head = b"CDF\2" + number(0) + number(10) + number(3) + dims + bytes(8) + number(11) + number(1)
    nbytes = 4 * SHAPE[0] * SHAPE[1] * SHAPE[2]
    variable = name("t") + number(3) + b"".join(map(number, range(3))) + bytes(8) + number(5) + number(nbytes)
    begin = len(head) + len(variable) + 8
    noise = 12345
    with open(path, "wb") as f:
        f.write(head + variable + begin.to_bytes(8, "big"))
        for t in range(SHAPE[0]):
            row = array("f")
            for y in range(SHAPE[1]):
                wave = 280 + 20 * sin(y / 60 + t / 9)
                for x in range(SHAPE[2]):
                    noise = (noise * 1103515245 + 12345) & 0x7FFFFFFF
                    row.append(wave + 0.02 * x + (noise >> 24) / 1024)
            if sys.byteorder == "little":
                row.byteswap()
            f.write(row.tobytes())


class Load:
    """Twice as many busy processes as there are CPUs."""

    def __enter__(self):
        busy = [sys.executable, "-c", "while True: pass"]
        self.procs = [subprocess.Popen(busy) for _ in range(2 * (os.cpu_count() or 1))]

    def __exit__(self, *_):
        for p in self.procs:
            p.kill()
            p.wait()


def busy():
    fields = [int(n) for n in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    return sum(fields[:3]) + sum(fields[5:8])


def wait_for_quiet(seconds):
    """Until others leave the CPUs alone, or SECONDS are over."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        start, ticks = time.monotonic(), busy()
        time.sleep(1)
        if (busy() - ticks) / os.sysconf("SC_CLK_TCK") / (time.monotonic() - start) < QUIET:
            return


# ---- what is measured -----------------------------------------------------------------------------


class Bench:
    def __init__(self, programs, folder, rounds, patience, blind=False):
        self.blind = blind
        self.programs, self.folder, self.rounds, self.patience = Path(programs).absolute(), folder.absolute(), rounds, patience
        self.folder.mkdir(parents=True, exist_ok=True)
        self.env = {**os.environ, "PATH": f"{self.programs}:{os.environ['PATH']}"}

    def run(self, words):
        """WORDS, or a line as it was printed, by a shell in the folder of the stores."""
        shell = isinstance(words, str)
        done = subprocess.run(words, shell=shell, cwd=self.folder, env=self.env, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{words}: {done.stderr}")
        return done.stdout

    def store(self, s):
        source = self.folder / "classic.nc"
        if not source.exists():
            write_classic(source)
        if s.layout is None:
            return source.name
        name = f"{s.name.replace(' ', '-')}.zarr"
        if not (self.folder / name).exists():
            self.run(["nc2zarr", "-q", "--verify", "none", *s.layout, source.name, name])
        return name

    def words(self, s, store):
        told = [] if WHOLE[0] in s.options else ["--sample", SAMPLE]
        warm = [] if "--cold" in s.options else ["--warm"]
        # Too few looks at the CPUs say nothing of others.
        blind = ["--sample-interval", "60000"] if self.blind and not s.load else []
        return ["readbench", "--json", "--no-out", *told, *warm, *blind, *s.options, store]

    def measure(self, s, words):
        if s.load:
            with Load():
                return json.loads(self.run(words))["sessions"][0]
        return json.loads(self.run(words))["sessions"][0]

    def diagnose(self, s, words):
        """The diagnosis that counts: others who disturb it are waited for, some times."""
        for _ in range(TRIES):
            found = self.measure(s, words)["diagnosis"]
            if s.load or found["cause"] != "contention":
                break
            wait_for_quiet(self.patience)
        return found

    def follow(self, command, words):
        """Runs COMMAND, which was advised for WORDS; returns what to measure from then on."""
        said = shlex.split(command)
        output = self.run(command)
        if said[0] == "readbench":
            json.loads(output)
            return command
        return [*words[:-1], said[-1]]

    def compare(self, s, before, after):
        """Medians of rounds in alternation, samples a second."""
        seen = [[], []]
        for _ in range(self.rounds):
            for words, rates in zip((before, after), seen):
                rates.append(self.measure(s, words)["rates"]["samples"])
        return [statistics.median(rates) for rates in seen]


# ---- twelve of them -------------------------------------------------------------------------------


@dataclass
class Row:
    situation: str
    verdict: str
    advice: str = "-"
    predicted: float = 0
    before: float = 0
    after: float = 0
    wrong: str = ""

    def line(self):
        rates = f"{self.before:.0f} | {self.after:.0f} | {self.after / self.before:.2f}" if self.before else "- | - | -"
        promise = f"{self.predicted:.2f}" if self.predicted else "-"
        return f"| {self.situation} | {self.verdict} | {self.advice} | {promise} | {rates} | {self.wrong or 'yes'} |"


def judge(s, found):
    """The fault in the diagnosis FOUND of S: "" for none, "disturbed" where others used the CPUs."""
    proposal = found["proposal"]
    if found["cause"] == "contention" and not s.load:
        return "disturbed"
    if found["cause"] not in s.causes:
        return "verdict"
    if (proposal["change"] if proposal else None) not in s.changes:
        return "advice"
    if proposal and f"predicted {proposal['gain']:.1f} times" not in found["sentence"]:
        return "sentence"
    return ""


def look(bench, s):
    words = bench.words(s, bench.store(s))
    found = bench.diagnose(s, words)
    row = Row(s.name, found["cause"], wrong=judge(s, found))
    proposal = found["proposal"]
    if proposal:
        row.advice, row.predicted = proposal["command"], proposal["gain"]
        row.before, row.after = bench.compare(s, words, bench.follow(proposal["command"], words))
        if row.after <= row.before:
            row.wrong = row.wrong or "no gain"
    return row


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("programs")
    p.add_argument("folder", type=Path)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--only", default="", help="names of situations, with commas between them")
    p.add_argument("--fixed", action="store_true")
    p.add_argument("--patience", type=float, default=60, metavar="SECONDS", help="of waiting for a quiet machine")
    p.add_argument("--blind", action="store_true", help="do not look at what others do: for a machine that is never quiet")
    o = p.parse_args()
    bench = Bench(o.programs, o.folder, o.rounds, o.patience, o.blind)
    only = [n for n in o.only.split(",") if n]
    chosen = [s for s in SITUATIONS if (not only or s.name in only) and (s.fixed or not o.fixed)]
    print("| situation | verdict | advice | predicted | before, samples/s | after | ratio | right |\n|---|---|---|---|---|---|---|---|")
    rows = []
    for s in chosen:
        rows.append(look(bench, s))
        print(rows[-1].line(), flush=True)
    right = sum(not r.wrong for r in rows)
    print(f"\n{right} of {len(rows)}")
    return 0 if right == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
