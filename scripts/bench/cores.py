#!/usr/bin/env python3
"""cores.py [--quick] [--rounds N] [--cores 1,2,4] BUILD: rate and CPU seconds from one core to all.

A conversion, a rechunking and a reading of samples, each beside bare loops over the same chunks, on 1, 2, 4, ...
cores of those that this process may use: as many threads, and no other core.  Bare loops and program run in turn; a
row has the medians.  "of one core" is the rate over that on one core, divided by the number of cores.  On a machine that
does other work at the same time, CPU seconds are what to compare.
"""

import argparse
import math
import os
import statistics
import sys

import bench
import inputs
import measure
import readbench
import readings
import rechunk
import store_plan
import stores
from contenders import ROOFLINE, Job, nc2zarr, roofline
from readbench_contenders import server

READING = "chunks"


class Cores:
    def __init__(self, options):
        self.all = sorted(os.sched_getaffinity(0))
        self.bench = bench.Bench(options)
        self.rounds = options.rounds or 3

    def on(self, n):
        """This process, and what it starts, on the first N cores."""
        self.bench.threads = n
        os.sched_setaffinity(0, self.all[:n])

    # ---- works: each gives functions that run once, and return seconds and CPU seconds ----

    def run(self, argv, *outputs):
        for path in outputs:
            measure.remove(path)
        r = measure.run(argv)
        if r.status != 0:
            raise RuntimeError(r.why())
        return r.seconds, r.cpu

    def conversion(self):
        b, spec = self.bench, inputs.find("standard")
        source, plan = b.prepare(spec)
        measure.warm(source)

        def pair(n):
            jobs = [Job(spec, b.quick, source, plan, f"{b.work}/{who}.zarr", b.build, n) for who in ("bare", "ours")]
            yield lambda: self.run(roofline(jobs[0]), jobs[0].output)
            yield lambda: self.run(nc2zarr(jobs[1], "--verify", "none"), jobs[1].output)

        return "nc2zarr, " + spec.title, spec.decoded_nbytes(b.quick), pair

    def rechunking(self):
        b, work = self.bench, stores.find("series")
        every = rechunk.Rechunks(b, bench.say)
        store_plan.write(every.plan_path(work), every.prepare(work), work, b.quick)

        def pair(_):
            for who in (ROOFLINE, rechunk.RECHUNK):
                target = f"{b.work}/{who}.zarr"
                yield lambda who=who, target=target: self.run(every.argv(who, work, target), target)

        return "rechunk, " + work.title, work.nbytes(b.quick), pair

    def reading(self):
        b, reading = self.bench, next(r for r in readings.READINGS if r.name == READING)
        every = readbench.Readbenches(b, bench.say)
        store = every.store(reading.layout, every.spec(reading)[1])
        nbytes = 4 * math.prod(reading.sample)
        self.on(1)
        samples = every.ours("cores", reading, store, []).samples()

        def pair(n):
            bare = server("bare", b, every.write_plan(reading, store, samples), n, f"{b.work}/bare")
            bare.checksums()
            ours = every.ours("cores", reading, store, [])
            ours.samples()
            yield lambda: self.passed(bare)
            yield lambda: self.passed(ours)
            bare.close()

        return "readbench, " + reading.title, nbytes * len(samples), pair

    @staticmethod
    def passed(contender):
        p = contender.once()
        return p.seconds, p.cpu

    # ---- measuring ----

    def measure(self, title, nbytes, pair, counts):
        print(f"\n{title}")
        print(f"{'cores':>5} {'bare MB/s':>10} {'CPU s':>7} {'ours MB/s':>10} {'CPU s':>7} {'ours/bare':>9} {'of one core':>11}")
        first = None
        for n in counts:
            self.on(n)
            steps = pair(n)
            bare, ours = next(steps), next(steps)
            runs = [(bare(), ours()) for _ in range(self.rounds)]
            next(steps, None)
            (bare_s, bare_cpu), (ours_s, ours_cpu) = [
                [statistics.median(run[who][what] for run in runs) for what in (0, 1)] for who in (0, 1)
            ]
            ratio = statistics.median(b[0] / o[0] for b, o in runs)
            first = first or ours_s * n
            print(f"{n:5} {nbytes / bare_s / 1e6:10.0f} {bare_cpu:7.2f} {nbytes / ours_s / 1e6:10.0f} {ours_cpu:7.2f} "
                  f"{ratio:9.2f} {first / ours_s / n:11.2f}", flush=True)  # fmt: skip


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("--quick", action="store_true", help="smaller inputs")
    p.add_argument("--rounds", type=int, help="of each pair; 3")
    p.add_argument("--cores", help="how many, with commas; 1, 2, 4, ... and all")
    p.set_defaults(threads=1, who=None)
    options = p.parse_args()
    every = Cores(options)
    most = len(every.all)
    counts = [*(2**k for k in range(most.bit_length()) if 2**k < most), most]
    if options.cores:
        counts = [int(n) for n in options.cores.split(",")]
    measure.remove(every.bench.work)
    os.makedirs(every.bench.work)
    try:
        for work in (every.conversion, every.rechunking, every.reading):
            every.on(most)
            every.measure(*work(), counts)
    finally:
        measure.remove(every.bench.work)


if __name__ == "__main__":
    sys.exit(main())
