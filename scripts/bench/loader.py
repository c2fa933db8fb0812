#!/usr/bin/env python3
"""loader.py BUILD [--pairs N]: what the Python package costs beside readbench, and beside other loaders.

Each contender is a process that reads epochs of the same samples of the same store; it runs
once for one epoch and once for more, and the difference, by batch, is what a batch costs: CPU
seconds of the process and its workers, and wall time.  The package and readbench run in turn, PAIRS
times, and so does each other loader beside the package; a ratio is the median over the pairs.
On a machine that does something else, only the CPU seconds say something.

Others, as far as they are installed: PyTorch's DataLoader with as many workers, over zarr-python and
over xarray, which cut the very samples that the package gave; xbatcher with DataLoader, whose
batches lie on a grid; insitubatch, whose samples are whole fields, with blocks so short that it decodes
the store in each epoch.  requirements-loader.txt installs them all, in Python 3.12 or newer.
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
from typing import NamedTuple

HERE = Path(__file__).resolve()
ROOT = HERE.parents[2]
DIMS, SHAPE, CHUNK = ("time", "lat", "lon"), (200, 192, 192), (20, 64, 64)
WORKERS = 2
PEER_EPOCHS = 2


class Case(NamedTuple):
    """Samples of a shape in batches, and as many epochs as take long enough to be measured."""

    sample: dict[str, int]
    batch: int
    batches: int  # of an epoch
    epochs: dict[str, int]  # by loader


WINDOW, FIELD = {"time": 4, "lat": 32, "lon": 32}, {"time": 1, "lat": SHAPE[1], "lon": SHAPE[2]}
CASES = {"16 windows, 256 KiB": Case(WINDOW, 16, 60, {"map": 6, "planned": 80}),
         "256 windows, 4 MiB": Case(WINDOW, 256, 15, {"map": 2, "planned": 25}),
         "20 fields, 2.8 MiB": Case(FIELD, 20, 10, {"map": 3, "planned": 40})}
INSITU_EPOCHS = 20


def make(path):
    import numpy as np
    import zarr
    values = np.cumsum(np.random.default_rng(1).normal(size=SHAPE).astype("f4"), 0)
    zarr.open_group(str(path), mode="w").create_array("z", data=values, chunks=CHUNK, dimension_names=DIMS)


# ---- contenders: each reads EPOCHS epochs


def ours(store, how, case):
    import numpy as np
    from chunkmill import Loader
    loader = Loader(store, variables="z", sample=case.sample, batch=case.batch, batches=case.batches, workers=WORKERS, loader=how)
    while True:
        for batch in loader:
            np.from_dlpack(batch["z"])
        yield


def list_of_starts(store, case):
    return Path(f"{store}.{case.batch}.json")


def starts(store, case):
    """Where the package's samples of each epoch begin."""
    return json.loads(list_of_starts(store, case).read_text())


def write_starts(store, case):
    from chunkmill import Loader
    with Loader(store, variables="z", sample=case.sample, batch=case.batch, batches=case.batches) as loader:
        epochs = [[row for batch in loader for row in batch.index.tolist()] for _ in range(PEER_EPOCHS)]
    list_of_starts(store, case).write_text(json.dumps(epochs))


def data_loader(dataset, case, **more):
    from torch.utils.data import DataLoader
    return DataLoader(dataset, batch_size=case.batch, num_workers=WORKERS, **more)


def zarr_python(store, _, case):
    import torch
    import zarr

    class Samples(torch.utils.data.Dataset):
        def __init__(self, at):
            self.at, self.array = at, None

        def __len__(self):
            return len(self.at)

        def __getitem__(self, i):
            self.array = self.array or zarr.open_group(store, mode="r")["z"]
            return torch.from_numpy(self.array[tuple(slice(s, s + n) for s, n in zip(self.at[i], case.sample.values()))])

    for at in starts(store, case):
        for _ in data_loader(Samples(at), case):
            pass
        yield


def xarray_isel(store, _, case):
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
            cut = {d: slice(s, s + n) for (d, n), s in zip(case.sample.items(), self.at[i])}
            return torch.from_numpy(self.array.isel(cut).values)

    for at in starts(store, case):
        for _ in data_loader(Samples(at), case):
            pass
        yield


def xbatcher_grid(store, _, case):
    import torch
    import xarray
    import xbatcher
    from xbatcher.loaders.torch import MapDataset
    field = xarray.open_zarr(store, chunks=None)["z"]
    while True:
        batches, n = MapDataset(xbatcher.BatchGenerator(field, case.sample)), case.batch * case.batches
        some = torch.utils.data.RandomSampler(batches, num_samples=n, replacement=len(batches) < n)
        for _ in data_loader(batches, case, sampler=some):
            pass
        yield


def insitubatch(store, _, case):
    from insitubatch import InSituDataset, as_torch, obstore_store, open_geometries, split_by_chunk
    from torch.utils.data import DataLoader
    opened = obstore_store(f"file://{store}")
    geometries = open_geometries(opened)
    parts = split_by_chunk(geometries["z"], fractions=(1.0, 0.0, 0.0))
    data = InSituDataset(opened, parts, batch_size=case.batch, block_chunks=2)
    epoch = 0
    while True:
        data.set_epoch(epoch)
        for _ in DataLoader(as_torch(data.train), batch_size=None, num_workers=0):
            pass
        # Two blocks of the five are resident: the others were decoded in this epoch.
        assert data.cache_misses >= 6, data.cache_misses
        epoch += 1
        yield


CONTENDERS = {"package": ours, "zarr-python": zarr_python, "xarray": xarray_isel, "xbatcher": xbatcher_grid,
              "insitubatch": insitubatch}


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


def of_batch(argv, build, epochs, case):
    """CPU and wall seconds of a batch, once everything is open."""
    a, b = once(argv(1), build), once(argv(epochs), build)
    return [(y - x) / ((epochs - 1) * case.batches) for x, y in zip(a, b)]


def command(who, how, store, name):
    return lambda epochs: [sys.executable, str(HERE), "--contender", who, how, str(store), name, str(epochs)]


def readbench(build, how, store, case):
    shape = ",".join(f"{d}={n}" for d, n in case.sample.items())
    return lambda epochs: [str(build / "bin/readbench"), "--no-out", "--quiet", "--variable", "z", "--sample", shape, "--batch",
                           str(case.batch), "--batches", str(case.batches), "--epochs", str(epochs), "--step-time", "0ms", "--mode",
                           "threads", "--workers", str(WORKERS), "--worker-threads", "1", "--loader", how, str(store)]


def compare(build, one, other, pairs, epochs, case):
    """Medians of OTHER / ONE, and of both."""
    seen = []
    for i in range(pairs):
        both = {}
        for k in (0, 1) if i % 2 == 0 else (1, 0):
            both[k] = of_batch((one, other)[k], build, epochs[k], case)
        seen.append((*both[0], *both[1]))
    median = statistics.median
    return {"cpu_us": [1e6 * median(s[0] for s in seen), 1e6 * median(s[2] for s in seen)],
            "cpu": median(s[2] / s[0] for s in seen), "wall": median(s[3] / s[1] for s in seen)}


def installed(who):
    needs = ["torch", "zarr", "xarray"] + ([who] if who in ("xbatcher", "insitubatch") else [])
    return all(importlib.util.find_spec(name) for name in needs)


def rows(build, store, peers):
    """Name, who is divided by, who is divided, their epochs, what is read."""
    for name, case in CASES.items():
        for how, epochs in case.epochs.items():
            package, at = command("package", how, store, name), f"{how}, {name}"
            yield f"package / readbench, {at}", readbench(build, how, store, case), package, (epochs, epochs), case
            for who in peers:
                if who == "insitubatch" and case.sample != FIELD:
                    continue
                its = INSITU_EPOCHS if who == "insitubatch" else PEER_EPOCHS
                yield f"{who} / package, {at}", package, command(who, how, store, name), (epochs, its), case


def main():
    if sys.argv[1:2] == ["--contender"]:
        _, _, who, how, store, name, epochs = sys.argv
        reading = CONTENDERS[who](store, how, CASES[name])
        for _ in range(int(epochs)):
            next(reading)
        return
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--only", default="", help="rows, a regular expression")
    options = parser.parse_args()
    build = options.build.resolve()
    os.environ.update(environment(build))
    sys.path.insert(0, str(ROOT / "tools/python"))
    peers = [who for who in CONTENDERS if who != "package" and installed(who)]
    print(f"peers: {', '.join(peers) or 'none is installed'}", flush=True)
    result = {}
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "z.zarr"
        make(store)
        for case in CASES.values():
            write_starts(store, case)
        print(f"{'':46}{'CPU of a batch':>20}{'ratio':>8}{'wall':>8}", flush=True)
        for name, one, other, epochs, case in rows(build, store, peers):
            if not re.search(options.only, name):
                continue
            r = result[name] = compare(build, one, other, options.pairs, epochs, case)
            print(f"{name:46}{r['cpu_us'][0]:9.0f}{r['cpu_us'][1]:8.0f} us{r['cpu']:8.3f}{r['wall']:8.3f}", flush=True)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
