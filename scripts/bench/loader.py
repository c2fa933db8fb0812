#!/usr/bin/env python3
"""loader.py BUILD [--pairs N]: what the Python package costs beside readbench, and beside other loaders.

Each contender is a process that reads epochs of the same samples of the same store; it runs
once for one epoch and once for more, and the difference, by batch, is what a batch costs: CPU
seconds of the process and its workers, and wall time.  The package and readbench run in turn, PAIRS
times, and so does each other loader beside the package; a ratio is the median over the pairs.
On a machine that does something else, only the CPU seconds say something.

Others, as far as they are installed: PyTorch's DataLoader with as many workers, over zarr-python and
over xarray, which cut the very samples that the package gave; xbatcher with DataLoader, whose
batches lie on a grid.  requirements-loader.txt installs them all.
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
WORKERS = 2
BATCHES = {16: 60, 256: 15}  # of an epoch, by samples of a batch
SIZE = {16: "256 KiB", 256: "4 MiB"}
EPOCHS = {("map", 16): 6, ("planned", 16): 80, ("map", 256): 2, ("planned", 256): 25}
PEER_EPOCHS = 2


def make(path):
    import numpy as np
    import zarr
    values = np.cumsum(np.random.default_rng(1).normal(size=SHAPE).astype("f4"), 0)
    zarr.open_group(str(path), mode="w").create_array("z", data=values, chunks=CHUNK, dimension_names=tuple(SAMPLE))


# ---- contenders: each reads EPOCHS epochs


def ours(store, how, size):
    import numpy as np
    from chunkmill import Loader
    loader = Loader(store, variables="z", sample=SAMPLE, batch=size, batches=BATCHES[size], workers=WORKERS, loader=how)
    while True:
        for batch in loader:
            np.from_dlpack(batch["z"])
        yield


def starts(store, size):
    """Where the package's samples of each epoch begin."""
    return json.loads(Path(f"{store}.{size}.json").read_text())


def write_starts(store, size):
    from chunkmill import Loader
    with Loader(store, variables="z", sample=SAMPLE, batch=size, batches=BATCHES[size]) as loader:
        epochs = [[row for batch in loader for row in batch.index.tolist()] for _ in range(PEER_EPOCHS)]
    Path(f"{store}.{size}.json").write_text(json.dumps(epochs))


def data_loader(dataset, size, **more):
    from torch.utils.data import DataLoader
    return DataLoader(dataset, batch_size=size, num_workers=WORKERS, **more)


def zarr_python(store, _, size):
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

    for at in starts(store, size):
        for _ in data_loader(Samples(at), size):
            pass
        yield


def xarray_isel(store, _, size):
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

    for at in starts(store, size):
        for _ in data_loader(Samples(at), size):
            pass
        yield


def xbatcher_grid(store, _, size):
    import torch
    import xarray
    import xbatcher
    from xbatcher.loaders.torch import MapDataset
    field = xarray.open_zarr(store, chunks=None)["z"]
    while True:
        batches = MapDataset(xbatcher.BatchGenerator(field, SAMPLE))
        some = torch.utils.data.RandomSampler(batches, num_samples=size * BATCHES[size], replacement=len(batches) < size * BATCHES[size])
        for _ in data_loader(batches, size, sampler=some):
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


def of_batch(argv, build, epochs, size):
    """CPU and wall seconds of a batch, once everything is open."""
    a, b = once(argv(1), build), once(argv(epochs), build)
    return [(y - x) / ((epochs - 1) * BATCHES[size]) for x, y in zip(a, b)]


def command(who, how, store, size):
    return lambda epochs: [sys.executable, str(HERE), "--contender", who, how, str(store), str(size), str(epochs)]


def readbench(build, how, store, size):
    shape = ",".join(f"{d}={n}" for d, n in SAMPLE.items())
    return lambda epochs: [str(build / "bin/readbench"), "--no-out", "--quiet", "--variable", "z", "--sample", shape, "--batch",
                           str(size), "--batches", str(BATCHES[size]), "--epochs", str(epochs), "--step-time", "0ms", "--mode",
                           "threads", "--workers", str(WORKERS), "--worker-threads", "1", "--loader", how, str(store)]


def compare(build, one, other, pairs, epochs, size):
    """Medians of OTHER / ONE, and of both."""
    seen = []
    for i in range(pairs):
        both = {}
        for k in (0, 1) if i % 2 == 0 else (1, 0):
            both[k] = of_batch((one, other)[k], build, epochs[k], size)
        seen.append((*both[0], *both[1]))
    median = statistics.median
    return {"cpu_us": [1e6 * median(s[0] for s in seen), 1e6 * median(s[2] for s in seen)],
            "cpu": median(s[2] / s[0] for s in seen), "wall": median(s[3] / s[1] for s in seen)}


def installed(who):
    needs = ["torch", "zarr", "xarray"] + (["xbatcher"] if who == "xbatcher" else [])
    return all(importlib.util.find_spec(name) for name in needs)


def rows(build, store, peers):
    """Name, who is divided by, who is divided, their epochs, samples of a batch."""
    for size in BATCHES:
        for how in ("map", "planned"):
            package, epochs = command("package", how, store, size), EPOCHS[how, size]
            at = f"{how}, batch of {SIZE[size]}"
            yield f"package / readbench, {at}", readbench(build, how, store, size), package, (epochs, epochs), size
            for who in peers:
                yield f"{who} / package, {at}", package, command(who, how, store, size), (epochs, PEER_EPOCHS), size


def main():
    if sys.argv[1:2] == ["--contender"]:
        _, _, who, how, store, size, epochs = sys.argv
        reading = CONTENDERS[who](store, how, int(size))
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
        for size in BATCHES:
            write_starts(store, size)
        print(f"{'':46}{'CPU of a batch':>20}{'ratio':>8}{'wall':>8}", flush=True)
        for name, one, other, epochs, size in rows(build, store, peers):
            if not re.search(options.only, name):
                continue
            r = result[name] = compare(build, one, other, options.pairs, epochs, size)
            print(f"{name:46}{r['cpu_us'][0]:9.0f}{r['cpu_us'][1]:8.0f} us{r['cpu']:8.3f}{r['wall']:8.3f}", flush=True)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
