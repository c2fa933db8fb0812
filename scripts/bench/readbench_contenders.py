"""Contenders that read samples: readbench itself, and programs that keep running and read the same samples on request."""

import csv
import json
import os
import subprocess
from dataclasses import dataclass

import measure
import read_plan

HERE = os.path.dirname(os.path.abspath(__file__))


class Refused(Exception):
    """Why somebody cannot take part."""


@dataclass
class Pass:
    """Reading all samples once."""

    seconds: float
    cpu: float


# ---- readbench ----


@dataclass
class Sample:
    start: tuple
    crc: str
    shape: tuple


class Ours:
    """
    readbench with OPTIONS on one store.  Its first epoch is a warm-up: a pass is
    those after it, and the CPU time by which they take more than one epoch does.
    """

    def __init__(self, program, store, options, epochs, folder):
        self.epochs = epochs
        self.folder, self.store, self.counts, self.decodes = folder, store, None, None
        # A step of no time; the probes and the report come after the epochs.
        self.argv = [program, "-q", "--json", "--step-time", "0ms", *options]
        self.first_cpu = 0  # of setting up, the first epoch, and the end

    def run(self, epochs, *output):
        run = measure.run([*self.argv, "--epochs", str(epochs), *output, self.store])
        if run.status != 0:
            raise Refused(run.why())
        (session,) = json.loads(run.output)["sessions"]
        if session["counts"]["failed_batches"] or session["counts"]["missing_chunks"]:
            raise Refused(f"readbench could not read everything: {session['counts']}")
        return session

    def samples(self):
        """The samples that a pass delivers."""
        measure.remove(self.folder)
        session = self.run(self.epochs, "--log-samples", "--out", self.folder)
        self.counts, self.decodes = session["counts"], session["loader"]["decodes_per_chunk"]
        self.first_cpu = self.run(1, "--no-out")["resources"]["cpu_seconds"]
        with open(f"{self.folder}/samples.csv", newline="") as f:
            rows = [row for row in csv.DictReader(f) if row["epoch"] != "0"]
        measure.remove(self.folder)
        return [Sample(lengths(row["start"]), row["crc32c"], lengths(row["shape"])) for row in rows]

    def once(self):
        session = self.run(self.epochs, "--no-out")
        if any(session["counts"][key] != self.counts[key] for key in ("samples", "chunks", "decoded")):
            raise RuntimeError(f"readbench read something else than at first: {session['counts']}")
        cpu = session["resources"]["cpu_seconds"] - self.first_cpu
        return Pass(session["training"]["later_epoch_seconds"] * (self.epochs - 1), cpu)

    def close(self):
        pass


def lengths(text):
    return tuple(map(int, text.split("x")))


# ---- the others ----


class Server:
    """A program that has opened the store and says "ready"; so its start and its imports do not count."""

    def __init__(self, argv, folder):
        self.argv, self.answers, self.child = argv, f"{folder}.crc", None
        self.errors = open(f"{folder}.errors", "w+")

    def start(self):
        self.child = subprocess.Popen(
            self.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True
        )
        self.expect("ready")

    def expect(self, text=None):
        line = self.child.stdout.readline().strip()
        if line == "" or text not in (None, line):
            self.close()
            self.errors.seek(0)
            raise Refused(" ".join(self.errors.read().split())[-300:] or f"it said {line!r}")
        return line

    def tell(self, line):
        self.child.stdin.write(line + "\n")
        self.child.stdin.flush()
        return json.loads(self.expect())

    def checksums(self):
        """Of all samples, in their order; the warm-up at once."""
        self.start()
        self.tell(f"check {self.answers}")
        with open(self.answers) as f:
            return f.read().split()

    def once(self):
        answer = self.tell("pass")
        return Pass(answer["seconds"], answer["cpu"])

    def close(self):
        if self.child and self.child.poll() is None:
            self.child.stdin.close()
            self.child.wait()


def server(who, bench, plan, workers, folder):
    if who == "bare":
        argv = [f"{bench.root}/read_roofline", "-j", str(workers), plan]
    elif who.startswith("loader-"):
        argv = [bench.python, "-B", f"{HERE}/peer_loader.py", who[len("loader-") :], str(workers), plan]
    else:
        argv = [bench.python, "-B", f"{HERE}/peer_read.py", who, str(workers), plan]
    return Server(argv, folder)


def plan_of(array, batch, samples):
    """Shards may be shorter than what was asked for: that of the array's own metadata counts."""
    with open(f"{array}/zarr.json") as f:
        meta = json.load(f)
    outer = meta["chunk_grid"]["configuration"]["chunk_shape"]
    inner = next((c["configuration"]["chunk_shape"] for c in meta["codecs"] if c["name"] == "sharding_indexed"), None)
    starts = [s.start for s in samples]
    return read_plan.Plan(array, meta["shape"], inner or outer, outer if inner else (), samples[0].shape, batch, starts)
