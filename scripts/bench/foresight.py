#!/usr/bin/env python3
"""How well predictions hold: foresight.py BIN FOLDER [--rounds N] [--random SEED] [--only PART].
`make foresight RANDOM_SEED=SEED ROUNDS=N` runs it.

Makes layouts of one variable (`msl` of make_sample: 96 x 181 x 360, float32) and reads samples of
them with `readbench --mode sync`, which predicts a batch and measures it.  Rounds alternate: every
layout once, then again.  Prints

* predicted over measured time of a batch, warm and cold, and seconds of CPU,
* the rank of chunkcalc's recommendation among plausible layouts, for each sample, and whether
  `nc2zarr --sample` and `chunkcalc --recommend` choose alike,
* the targets, and whether each is met: by CPU time, which other programs disturb least.  Times are
  judged too, but only on a quiet machine do they say anything.

With --random other layouts and samples are drawn: those that the model was not made with.
"""

import argparse
import json
import random
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

SHAPE = (96, 181, 360)
DIMS = ("time", "lat", "lon")
VARIABLE = "msl"

# chunks, codec, shards ("" none)
LAYOUTS = [
    ("1x181x360", "blosc:zstd:2:shuffle", ""),
    ("1x91x180", "blosc:zstd:2:shuffle", ""),
    ("4x46x90", "blosc:zstd:2:shuffle", ""),
    ("8x32x32", "blosc:zstd:2:shuffle", ""),
    ("16x16x16", "blosc:zstd:2:shuffle", ""),
    ("24x24x24", "zstd:3", ""),
    ("96x16x16", "blosc:zstd:2:shuffle", ""),
    ("96x46x45", "blosc:zstd:2:shuffle", ""),
    ("32x64x64", "blosc:lz4:5:shuffle", ""),
    ("12x91x90", "zstd:3", ""),
    ("2x60x120", "gzip:5", ""),
    ("48x91x180", "blosc:zstd:2:shuffle", ""),
    ("1x64x64", "none", ""),
    ("8x61x120", "none", ""),
    ("24x91x180", "none", ""),
    ("4x16x16", "blosc:zstd:2:shuffle", "96x96x96"),
    ("8x32x32", "blosc:zstd:2:shuffle", "96x192x384"),
    ("1x61x120", "blosc:zstd:2:shuffle", "24x183x360"),
    ("16x46x90", "zstd:3", "96x184x360"),
    ("file", "", ""),  # the NetCDF file itself: chunks of a step, shuffle and deflate
]
SAMPLES = ["1x64x64", "24x16x16", "96x1x1", "1x181x360", "8x32x32", "4x91x90"]
PLAUSIBLE = ["1x181x360", "1x91x180", "8x64x64", "24x32x32", "96x16x16", "24x91x90"]
SPREAD = {True: 0.30, False: 0.15}  # of what is predicted, cold and warm


def draw(seed):
    """Layouts and samples that nobody chose."""
    r = random.Random(seed)

    def length(n, least=1):
        return min(n, max(least, round(2 ** r.uniform(0, (n - 1).bit_length() + 0.2))))

    def chunks():
        while True:
            c = [length(n) for n in SHAPE]
            nbytes = 4 * c[0] * c[1] * c[2]
            if 4 << 10 <= nbytes <= 8 << 20 and 96 * 181 * 360 * 4 / nbytes < 9000:
                return c

    layouts = []
    for _ in range(20):
        c = chunks()
        codec = r.choice(["blosc:zstd:2:shuffle"] * 3 + ["zstd:3", "gzip:5", "none", "blosc:lz4:5:shuffle"])
        shard = [x * r.randint(1, 8) for x in c] if r.random() < 0.25 else None
        layouts.append(("x".join(map(str, c)), codec, "x".join(map(str, shard)) if shard else ""))
    samples = []
    while len(samples) < 6:
        s = [length(n) for n in SHAPE]
        if 1 << 8 <= s[0] * s[1] * s[2] <= 1 << 19:
            samples.append("x".join(map(str, s)))
    return layouts, samples


class Bench:
    def __init__(self, programs, folder):
        self.programs, self.folder = Path(programs), Path(folder)

    def run(self, program, *args):
        done = subprocess.run([self.programs / program, *map(str, args)], capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{program} {' '.join(map(str, args))}: {done.stderr}")
        return done.stdout

    def make(self, name, *args):
        path = self.folder / name
        if not path.exists():
            self.run("nc2zarr", "-q", "--verify", "none", "--variable", VARIABLE, *args, self.source, path)
        return path

    @property
    def source(self):
        path = self.folder / "weather.nc"
        if not path.exists():
            self.run("make_sample", path)
        return path

    def layout(self, chunks, codec, shards):
        if chunks == "file":
            return self.source
        name = f"{chunks}-{codec.replace(':', '_')}-{shards or 'none'}.zarr"
        return self.make(name, "--chunks", chunks, "--codec", codec, "--shards", shards or "none")

    def batch(self, store, sample, cold):
        """(predicted, measured, predicted CPU, measured CPU) seconds of a batch."""
        text = self.run(
            *("readbench", "--json", "--no-out", "--mode", "sync", "--step-time", "0ms", "--epochs", 1, "--batches", 2),
            *("--batch", 16, "--variable", VARIABLE, "--sample", sample, "--cold" if cold else "--warm", store),
        )
        s = json.loads(text)["sessions"][0]
        p, m = s["predicted"], s["measured"]
        return p["batch_seconds"], m["batch_seconds"], p["batch_cpu_seconds"], m["batch_cpu_seconds"]


def ranks(values):
    order = sorted(range(len(values)), key=values.__getitem__)
    out = [0] * len(values)
    for place, i in enumerate(order):
        out[i] = place
    return out


def correlation(a, b):
    return statistics.correlation(ranks(a), ranks(b))


class Targets:
    """Targets, and results."""

    def __init__(self):
        self.rows = []

    def add(self, of, wanted, got, met):
        self.rows.append((of, wanted, got, met))

    def show(self):
        print("\n| target | wanted | found | met |\n|---|---|---|---|")
        for of, wanted, got, met in self.rows:
            print(f"| {of} | {wanted} | {got} | {'yes' if met else 'NO'} |")


def judge(targets, rows, cold, by):
    """Targets of one temperature over ROWS, pairs of predicted and measured."""
    error = [abs(p / m - 1) for p, m in rows]
    share, spread = (0.75, 0.30) if cold else (0.9, 0.15)
    within, wanted = sum(e <= spread for e in error), round(share * len(rows))
    of = f"{'cold' if cold else 'warm'}, {by}"
    targets.add(f"{of}: within {spread:.0%}", f"{wanted} of {len(rows)}", f"{within} of {len(rows)}", within >= wanted)
    if not cold:
        targets.add(f"{of}: worst", "40%", f"{max(error):.0%}", max(error) <= 0.40)
        rho = correlation([p for p, _ in rows], [m for _, m in rows])
        targets.add(f"{of}: rank correlation", "0.97", f"{rho:.3f}", rho >= 0.97)


def table(rows, of, by, spread):
    """One line of figures over ROWS, pairs of predicted and measured."""
    error = sorted(p / m - 1 for p, m in rows)
    q = statistics.quantiles(error, n=4)
    within = sum(abs(e) <= spread for e in error)
    worst = max(error, key=abs)
    rho = correlation([p for p, _ in rows], [m for _, m in rows])
    print(
        f"| {of}, {by} | {q[1]:+.0%} | {q[0]:+.0%} … {q[2]:+.0%} | {worst:+.0%} "
        f"| {within} of {len(rows)} within {spread:.0%} | {rho:.3f} |"
    )


def predictions(bench, layouts, samples, rounds, verbose, targets):
    print("| predicted over measured | median | quartiles | worst | within | rank correlation |\n|---|---|---|---|---|---|")
    for cold in (False, True):
        stores = [(bench.layout(*x), samples[i % len(samples)], x) for i, x in enumerate(layouts)]
        seen = [[] for _ in stores]
        for _ in range(rounds):
            for i, (store, sample, _) in enumerate(stores):
                seen[i].append(bench.batch(store, sample, cold))
        rows = [[statistics.median(v) for v in zip(*s)] for s in seen]
        if verbose:
            for (_, sample, x), (p, m, pc, mc) in zip(stores, rows):
                print(f"  {'cold' if cold else 'warm'} {x[0]:>11} {x[1]:20} {x[2] or '-':12} sample {sample:9}"
                      f" {p * 1e3:9.3f} {m * 1e3:9.3f} ms {p / m - 1:+5.0%}; CPU {pc / mc - 1:+5.0%}", file=sys.stderr)
        of = "cold" if cold else "warm"
        for by, pairs in (("CPU time", [r[2:] for r in rows]), ("time", [r[:2] for r in rows])):
            table(pairs, of, by, SPREAD[cold])
            judge(targets, pairs, cold, by)


def recommendation(bench, sample):
    """The shapes that both programs choose."""
    r = json.loads(bench.run("chunkcalc", "--json", "--sample", sample, "--recommend", "--variable", VARIABLE, bench.source))
    plan = json.loads(bench.run("nc2zarr", "--json", "--dry-run", "--variable", VARIABLE, "--sample", sample,
                                bench.source, bench.folder / "none.zarr"))
    chosen = r["recommendation"]["chunks_option"]
    (variable,) = [v for v in plan["variables"] if v["name"] == VARIABLE]
    other = ",".join(f"{d}={n}" for d, n in zip(DIMS, variable["chunks"]))
    return chosen, other, r["recommendation"]["shards_option"]


def choices(bench, samples, plausible, rounds, targets):
    good = alike = 0
    print("\n| sample | recommended | rank | rate over the best other | nc2zarr --sample |\n|---|---|---|---|---|")
    for sample in samples:
        chosen, other, shards = recommendation(bench, sample)
        shape = "x".join(p.split("=")[1] for p in chosen.split(","))
        shard = "none" if shards == "none" else "x".join(p.split("=")[1] for p in shards.split(","))
        stores = [bench.layout(c, "blosc:zstd:2:shuffle", "") for c in plausible if c != shape]
        stores.append(bench.make(f"{shape}-r-{shard}.zarr", "--chunks", shape, "--shards", shard))
        seen = [[] for _ in stores]
        for _ in range(rounds):
            for i, store in enumerate(stores):
                seen[i].append(bench.batch(store, sample, False)[3])
        cpu = [statistics.median(s) for s in seen]
        best = min(cpu[:-1])
        rank = 1 + sum(c < cpu[-1] for c in cpu[:-1])
        good += best / cpu[-1] >= 0.95
        alike += other == chosen
        print(f"| {sample} | {chosen}, shards {shards} | {rank} | {best / cpu[-1]:.2f} "
              f"| {'the same' if other == chosen else other} |")
    n = len(samples)
    targets.add("recommendation within 5% of the best, CPU time", f"{n} of {n}", f"{good} of {n}", good == n)
    targets.add("nc2zarr --sample chooses alike", f"{n} of {n}", f"{alike} of {n}", alike == n)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("programs")
    p.add_argument("folder", type=Path)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--random", type=int, metavar="SEED")
    p.add_argument("--only", choices=("predictions", "choices"))
    p.add_argument("--verbose", action="store_true")
    o = p.parse_args()
    began = time.time()
    o.folder.mkdir(parents=True, exist_ok=True)
    bench = Bench(o.programs, o.folder)
    layouts, samples, plausible = LAYOUTS, SAMPLES, PLAUSIBLE
    if o.random is not None:
        layouts, samples = draw(o.random)
        plausible = [x[0] for x in layouts[:6]]
    targets = Targets()
    if o.only != "choices":
        predictions(bench, layouts, samples, o.rounds, o.verbose, targets)
    if o.only != "predictions":
        choices(bench, samples, plausible, o.rounds, targets)
    targets.show()
    shutil.rmtree(bench.folder / "none.zarr", ignore_errors=True)
    print(f"\n{time.time() - began:.0f} s, {o.rounds} rounds", file=sys.stderr)


if __name__ == "__main__":
    main()
