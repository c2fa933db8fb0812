#!/usr/bin/env python3
"""Programs that scripts/bench/replay.py records: replay_programs.py PROGRAM STORE [LOG] prints the seconds that reading took.

xbatcher walks over windows that overlap, a DataLoader of PyTorch draws random windows by two worker
processes, and dask reduces blocks by two threads.
"""

import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools" / "python"))


def dataset(store, log, **options):
    import xarray as xr

    if log is None:
        return xr.open_zarr(store, consolidated=False, **options)
    import chunkmill

    return xr.open_zarr(chunkmill.record(store, log), consolidated=False, **options)


def xbatcher(store, log):
    import xbatcher as xb

    ds = dataset(store, log, chunks=None)[["msl"]]
    sizes, overlap = {"time": 4, "lat": 48, "lon": 48}, {"time": 2, "lat": 16, "lon": 16}
    batches = xb.BatchGenerator(ds, input_dims=sizes, input_overlap=overlap, preload_batch=False)
    numbers = list(range(len(batches)))
    random.Random(3).shuffle(numbers)
    start = time.perf_counter()
    for i in numbers[:300]:
        batches[i].load()
    return time.perf_counter() - start


class Windows:
    """A map-style dataset of random windows: 24 steps of 16 by 16."""

    def __init__(self, store, log, n):
        self.store, self.log, self.n, self.data = store, log, n, None

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        import torch

        if self.data is None:
            self.data = dataset(self.store, self.log, chunks=None).msl
        at = random.Random(i)
        t, y, x = (at.randrange(n - k + 1) for n, k in zip(self.data.shape, (24, 16, 16)))
        return torch.from_numpy(self.data[t : t + 24, y : y + 16, x : x + 16].values)


def loader(store, log):
    from torch.utils.data import DataLoader

    batches = DataLoader(Windows(store, log, 400), batch_size=8, num_workers=2, multiprocessing_context="spawn")
    stream = iter(batches)
    next(stream)  # the workers have started
    start = time.perf_counter()
    for _ in stream:
        pass
    return time.perf_counter() - start


def dask(store, log):
    import dask

    ds = dataset(store, log, chunks={"time": 2, "lat": 181, "lon": 90})
    start = time.perf_counter()
    with dask.config.set(scheduler="threads", num_workers=2):
        ds.msl.max(("lat", "lon")).compute()
    return time.perf_counter() - start


PROGRAMS = {"xbatcher": xbatcher, "loader": loader, "dask": dask}

if __name__ == "__main__":
    print(PROGRAMS[sys.argv[1]](sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None))
