#!/usr/bin/env python3
"""How well chunkcalc foresees the rate of recorded reads: replay.py BIN FOLDER [--python PYTHON] [--epochs N] [--only PROGRAM].

PYTHON has zarr, xarray, xbatcher, dask and torch (scripts/bench/requirements-loader.txt).

Records three programs (replay_programs.py) on a store with chunks of whole maps. For each log, before
anything is rechunked, `chunkcalc --access LOG --against SHAPE...` predicts the rate with ten layouts
and recommends one. Then the layouts are made, and `readbench --replay LOG` measures the reads on
all of them in one run, epoch by epoch in turn. Prints

* predicted and measured reads/s,
* both relative to the recorded layout, which a machine that is busy with others disturbs less, and
  the same of CPU seconds a read and of the median time of a read, which it disturbs least,
* which of the ten was predicted to be the best, and its rank among the measured ones.
"""

import argparse
import json
import math
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
RECORDED = "1x181x360"
LAYOUTS = {
    "xbatcher": "1x181x360 1x91x180 4x91x180 4x48x48 8x64x64 2x32x32 24x32x32 96x16x16 16x91x90 4x24x24",
    "loader": "1x181x360 1x91x180 8x64x64 24x32x32 96x16x16 24x91x90 24x16x16 12x32x32 48x16x16 8x181x360",
    "dask": "1x181x360 2x181x90 4x181x180 1x91x90 8x46x90 24x32x32 96x16x16 2x181x360 8x181x90 16x91x90",
}


def run(*words):
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}: {done.stderr}")
    return done.stdout


# Of each layout at least: a session takes 20 to 40 ms to begin, and its first epoch looks files up that the others
# find at hand; among 5000 reads of 32 us that was a fifth.
READS = 25000


class Bench:
    def __init__(self, programs, folder, python, epochs):
        self.programs, self.folder, self.python, self.epochs = Path(programs), Path(folder), python, epochs

    def store(self, chunks):
        path = self.folder / f"{chunks}.zarr"
        if not path.exists():
            source = self.folder / "weather.nc"
            if not source.exists():
                run(self.programs / "make_sample", source)
            run(self.programs / "nc2zarr", "-q", "--verify", "none", "--variable", "msl", "--chunks", chunks,
                "--codec", "blosc:zstd:2:shuffle", "--shards", "none", source, path)  # fmt: skip
        return path

    def record(self, program):
        log = self.folder / f"{program}.log"
        log.unlink(missing_ok=True)
        run(self.python, "-W", "ignore", HERE / "replay_programs.py", program, self.store(RECORDED), log)
        return log

    def predict(self, log, layouts):
        """Reads/s by layout, the recommended chunks, and the report."""
        words = [w for chunks in layouts for w in ("--against", chunks)]
        report = json.loads(run(self.programs / "chunkcalc", "--json", "--access", log, *words, self.store(RECORDED)))
        rates = {}
        for layout in report["layouts"]:
            if layout["rule"] in ("against", "recommended"):
                rates["x".join(map(str, layout["chunks"]))] = layout["reads_per_second"], layout["seconds"]
        best = report["layouts"][report["recommendation"]["layout"]]
        return rates, "x".join(map(str, best["chunks"])), report["access"]

    def measure(self, log, layouts, reads):
        """Reads/s, CPU seconds a read, and the median seconds of a read at work, by layout."""
        epochs = self.epochs or max(5, math.ceil(READS / reads))
        report = json.loads(run(self.programs / "readbench", "--json", "--no-out", "--replay", log, "--epochs", epochs,
                                *map(self.store, layouts)))  # fmt: skip
        return {
            chunks: (
                s["rates"]["samples"],
                s["resources"]["cpu_seconds"] / s["counts"]["samples"],
                sum(s["stages"][k]["p50"] for k in ("storage", "decode", "assemble")),
            )
            for chunks, s in zip(layouts, report["sessions"])
        }


def judge(bench, program):
    layouts = LAYOUTS[program].split()
    log = bench.record(program)
    predicted, recommended, access = bench.predict(log, layouts)
    all_layouts = layouts + [recommended] * (recommended not in layouts)
    measured = bench.measure(log, all_layouts, access["reads"])
    print(f"\n{program}: {access['reads']} reads, {access['together']} at a time, recorded with {RECORDED}")
    print(f"{'':>12} {'reads/s':>20} {'':>7}   times those of the recorded layout")
    print(f"{'chunks':>12} {'predicted':>10} {'measured':>9} {'':>7}   {'predicted':>9} {'measured':>9} {'':>7}   "
          f"{'by CPU':>7} {'':>7}   {'by median':>9} {'':>7}")  # fmt: skip
    errors = []
    now, base = predicted[RECORDED], measured[RECORDED]
    for chunks in sorted(all_layouts, key=lambda c: -measured[c][0]):
        (rate, seconds), (real, cpu, work) = predicted[chunks], measured[chunks]
        ratio = rate / now[0]
        ratios = real / base[0], base[1] / cpu, base[2] / work
        # The median is of a read at work alone, without what handing it over takes.
        row = rate / real - 1, ratio / ratios[0] - 1, ratio / ratios[1] - 1, now[1] / seconds / ratios[2] - 1
        errors.append(row)
        print(f"{chunks:>12} {rate:10.0f} {real:9.0f} {row[0]:+7.0%}   {ratio:9.2f} {ratios[0]:9.2f} {row[1]:+7.0%}   "
              f"{ratios[1]:7.2f} {row[2]:+7.0%}   {ratios[2]:9.2f} {row[3]:+7.0%}"
              f"{' recommended' if chunks == recommended else ''}")  # fmt: skip
    names = "rate", "ratio", "ratio by CPU", "ratio by median"
    within = [sum(abs(e[k]) <= 0.15 for e in errors) for k in range(4)]
    middle = [statistics.median(e[k] for e in errors) for k in range(4)]
    print("within 15 %: " + ", ".join(f"{name} {n} of {len(errors)} (median {m:+.0%})" for name, n, m in zip(names, within, middle)))
    named = max(layouts, key=lambda c: predicted[c][0])
    ranks = []
    for k, better in ((0, lambda c: -measured[c][0]), (1, lambda c: measured[c][1])):
        order = sorted(layouts, key=better)
        share = measured[named][0] / measured[order[0]][0] if k == 0 else measured[order[0]][1] / measured[named][1]
        ranks.append((order.index(named) + 1, share))
    print(f"best of ten: {named} was named; by rate it has rank {ranks[0][0]} ({ranks[0][1]:.2f} of the best), "
          f"by CPU {ranks[1][0]} ({ranks[1][1]:.2f})")  # fmt: skip
    return ranks


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs")
    parser.add_argument("folder")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--epochs", type=int, help=f"of each measurement; default: as many as give {READS} reads, at least 5")
    parser.add_argument("--only", choices=LAYOUTS)
    parser.add_argument("--keep", action="store_true", help="keep FOLDER's stores")
    options = parser.parse_args()
    folder = Path(options.folder)
    folder.mkdir(parents=True, exist_ok=True)
    bench = Bench(options.programs, folder, options.python, options.epochs)
    results = {p: judge(bench, p) for p in LAYOUTS if options.only in (None, p)}
    for k, by in enumerate(("rate", "CPU")):
        print(f"\nbest of ten named, by {by}: {sum(r[k][0] == 1 for r in results.values())} of {len(results)}; within 5 % of "
              f"the best: {sum(r[k][1] >= 0.95 for r in results.values())} of {len(results)}")  # fmt: skip
    if not options.keep:
        for path in folder.glob("*.zarr"):
            shutil.rmtree(path)


if __name__ == "__main__":
    main()
