#!/usr/bin/env python3
"""loader.py BUILD [--pairs N]: what the Python package costs beside readbench, and beside other loaders.

Each contender is a process that reads epochs of the same samples of the same store; it runs
once with few epochs and once with more, and the difference, by batch, is what a batch costs: CPU
seconds of the process and its workers, and wall time.  The package and readbench run in turn, PAIRS
times, and so does each other loader beside the package; a ratio is the median over the pairs.
On a machine that does something else, only the CPU seconds say something.

Others, as far as they are installed: PyTorch's DataLoader with as many workers, over zarr-python and
over xarray, which cut the very samples that the package gave; xbatcher with DataLoader, whose
batches lie on a grid.
"""
import argparse
import importlib.util
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve()
ROOT = HERE.parents[2]
SAMPLE = {"time": 4, "lat": 32, "lon": 32}
SHAPE, CHUNK = (200, 192, 192), (20, 64, 64)
BATCH, BATCHES, WORKERS = 16, 60, 2


def make(path):
    import numpy as np
    import zarr
    values = np.cumsum(np.random.default_rng(1).normal(size=SHAPE).astype("f4"), 0)
    zarr.open_group(str(path), mode="w").create_array("z", data=values, chunks=CHUNK, dimension_names=tuple(SAMPLE))


# ---- contenders: each reads EPOCHS epochs


def ours(store, how):
    import numpy as np
    from chunkmill import Loader
    loader = Loader(store, variables="z", sample=SAMPLE, batch=BATCH, batches=BATCHES, workers=WORKERS, loader=how)
    while True:
        for batch in loader:
            np.from_dlpack(batch["z"])
        yield


def starts(store):
    """Where the package's samples of each epoch begin."""
    from chunkmill import Loader
    loader = Loader(store, variables="z", sample=SAMPLE, batch=BATCH, batches=BATCHES)
    while True:
        yield [tuple(row) for batch in loader for row in batch.index.tolist()]


def data_loader(dataset, **more):
    from torch.utils.data import DataLoader
    return DataLoader(dataset, batch_size=BATCH, num_workers=WORKERS, **more)


def zarr_python(store, _):
    import torch
    import zarr

    class Samples(torch.utils.data.Dataset):
        def __init__(self, at):
            self.at, self.array = at, None

        def __len__(self):
            return len(self.at)

        def __getitem__(self, i):
            self.array = self.array or zarr.open_group(store, mode="r")["z"]
            return torch.from_numpy(self.array[tuple(slice(s, s + n) for s, n in zip(self.at[i], SAMPLE.values()))])

    for at in starts(store):
        for _ in data_loader(Samples(at)):
            pass
        yield


def xarray_isel(store, _):
    import torch
    import xarray

    class Samples(torch.utils.data.Dataset):
        def __init__(self, at):
            self.at, self.array = at, None

        def __len__(self):
            return len(self.at)

        def __getitem__(self, i):
            if self.array is None:
                self.array = xarray.open_zarr(store, chunks=None)["z"]
            cut = {d: slice(s, s + n) for (d, n), s in zip(SAMPLE.items(), self.at[i])}
            return torch.from_numpy(self.array.isel(cut).values)

    for at in starts(store):
        for _ in data_loader(Samples(at)):
            pass
        yield


def xbatcher_grid(store, _):
    import torch
    import xarray
    import xbatcher
    from xbatcher.loaders.torch import MapDataset
    field = xarray.open_zarr(store, chunks=None)["z"]
    while True:
        batches = MapDataset(xbatcher.BatchGenerator(field, SAMPLE))
        some = torch.utils.data.RandomSampler(batches, num_samples=BATCH * BATCHES, replacement=len(batches) < BATCH * BATCHES)
        for _ in data_loader(batches, sampler=some):
            pass
        yield


CONTENDERS = {"package": ours, "zarr-python": zarr_python, "xarray": xarray_isel, "xbatcher": xbatcher_grid}


# ---- measuring


def environment(build):
    return {**os.environ, "PYTHONPATH": str(ROOT / "tools/python"), "OMP_NUM_THREADS": "1",
            "CHUNKMILL_LIBRARY": str(build / "lib/libchunkmill_loader.so.1"), "CHUNKMILL_BIN": str(build / "bin")}


def once(argv, build):
    """CPU seconds of a process and what it waited for."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(argv, env=environment(build), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, time.perf_counter() - start


def of_batch(argv, build, epochs):
    """CPU and wall seconds of a batch, once everything is open."""
    few, many = epochs
    a, b = once(argv(few), build), once(argv(many), build)
    return [(y - x) / ((many - few) * BATCHES) for x, y in zip(a, b)]


def command(who, how, store):
    return lambda epochs: [sys.executable, str(HERE), "--contender", who, how, str(store), str(epochs)]


def readbench(build, how, store):
    shape = ",".join(f"{d}={n}" for d, n in SAMPLE.items())
    return lambda epochs: [str(build / "bin/readbench"), "--no-out", "--quiet", "--variable", "z", "--sample", shape, "--batch",
                           str(BATCH), "--batches", str(BATCHES), "--epochs", str(epochs), "--step-time", "0ms", "--mode",
                           "threads", "--workers", str(WORKERS), "--worker-threads", "1", "--loader", how, str(store)]


def compare(build, one, other, pairs, epochs, more):
    """Medians of OTHER / ONE, and of both."""
    seen = []
    for i in range(pairs):
        both = {}
        for k in (0, 1) if i % 2 == 0 else (1, 0):
            both[k] = of_batch((one, other)[k], build, (epochs, more)[k])
        seen.append((*both[0], *both[1]))
    median = statistics.median
    return {"cpu_us": [1e6 * median(s[0] for s in seen), 1e6 * median(s[2] for s in seen)],
            "cpu": median(s[2] / s[0] for s in seen), "wall": median(s[3] / s[1] for s in seen)}


def main():
    if sys.argv[1:2] == ["--contender"]:
        _, _, who, how, store, epochs = sys.argv
        reading = CONTENDERS[who](store, how)
        for _ in range(int(epochs)):
            next(reading)
        return
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--only", default="", help="rows, a regular expression")
    options = parser.parse_args()
    build = options.build.resolve()
    result = {}
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "z.zarr"
        make(store)
        print(f"{'':28}{'CPU of a batch':>20}{'ratio':>8}{'wall':>8}", flush=True)
        rows = [(f"package / readbench, {how}", readbench(build, how, store), command("package", how, store), (1, 6), (1, 6))
                for how in ("map", "planned")]
        for who in ("zarr-python", "xarray", "xbatcher"):
            needs = ["torch", "zarr", "xarray"] + (["xbatcher"] if who == "xbatcher" else [])
            if all(importlib.util.find_spec(name) for name in needs):
                rows += [(f"{who} / package, {how}", command("package", how, store), command(who, how, store), (1, 6), (1, 2))
                         for how in ("map", "planned")]
            else:
                print(f"{who}: not installed", flush=True)
        for name, one, other, epochs, more in rows:
            if not re.search(options.only, name):
                continue
            r = result[name] = compare(build, one, other, options.pairs, epochs, more)
            print(f"{name:28}{r['cpu_us'][0]:9.0f}{r['cpu_us'][1]:8.0f} us{r['cpu']:8.3f}{r['wall']:8.3f}", flush=True)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
