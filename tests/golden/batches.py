"""Rows of batches: bytes, places and coordinates of the first ones of two epochs, under many settings of the loader."""

import hashlib
import os

import numpy as np

from golden import inputs, rows
from golden.rows import Row
from support import cdf, paths, tool

SHAPE, NAMES = (14, 23, 30), ("time", "lat", "lon")
SAMPLE = {"time": 2, "lat": 6, "lon": 9}
MOST = 6  # batches of an epoch
STORES = {
    "v3.zarr": ["--chunks", "time=5,lat=7,lon=8"],
    "v2.zarr": ["--zarr-format", "2", "--chunks", "time=5,lat=7,lon=8", "--codec", "gzip:1"],
    "shards.zarr": ["--chunks", "time=2,lat=7,lon=8", "--shards", "time=8,lat=14,lon=16"],
    "series.zarr": ["--chunks", "time=14,lat=3,lon=3", "--codec", "none"],
    "stacked.zarr": ["--stack", "x=a,b", "--chunks", "time=5,lat=7,lon=8"],
}
ALL = ("a", "b", "c", "d")
PLANNED = {"loader": "planned", "window": 4}
# Options of a Loader beside the usual ones; `store` is one of STORES, or a file.
SETTINGS = {
    "usual": {},
    **{f"order {o}": {"order": o} for o in ("random", "sequential", "strided:3", "block-shuffle:4", "chunks")},
    **{f"planned, order {o}": {**PLANNED, "order": o} for o in ("random", "sequential", "strided:3", "block-shuffle:4", "chunks")},
    **{f"store {s}": {"store": s} for s in ("v2.zarr", "shards.zarr", "series.zarr", "classic.nc")},
    **{f"planned, store {s}": {**PLANNED, "store": s} for s in ("v2.zarr", "shards.zarr", "series.zarr")},
    "stacked": {"store": "stacked.zarr", "variables": ["x"]},
    "planned, stacked": {**PLANNED, "store": "stacked.zarr", "variables": ["x"]},
    "seed": {"seed": 9},
    "planned, seed": {**PLANNED, "seed": 9},
    "window": {**PLANNED, "window": 9},
    "batch of 1": {"batch": 1},
    "batch of 13": {"batch": 13, "batches": None},
    "drop last": {"batch": 13, "batches": None, "drop_last": True, "order": "chunks"},
    "all": {"order": "all", "batches": None, "sample": {"time": 7, "lat": 23, "lon": 10}},
    "lags": {"variables": ["b", "c"], "lags": [0, 3, 5]},
    "history": {"variables": ["b", "c"], "lags": [-4, 0, 2]},
    "planned, history": {**PLANNED, "variables": ["b", "c"], "lags": [-4, 0]},
    "planned, lags": {**PLANNED, "variables": ["b", "c"], "lags": [0, 3]},
    "maps": {"order": "map", "sample": None},
    "series": {"order": "series", "sample": None},
    "whole dimensions": {"sample": {"time": 3}, "variables": ["a", "c"]},
    "strided rank": {"world_size": 3, "rank": 1},
    "planned rank": {**PLANNED, "world_size": 3, "rank": 2},
    "float16": {"cast": "float16", "variables": ["b", "d"]},
    "unpacked": {"unpack": True, "cast": "float32", "variables": ["c"], "sample": {"time": 2, "lon": 9}},
    "fill to NaN": {"fill_to_nan": True, "variables": ["d"], "sample": {"lat": 6, "lon": 9}},
    "in this thread": {"sync": True, "workers": 0},
    "planned, in this thread": {**PLANNED, "sync": True, "workers": 0},
    "one worker": {"workers": 1, "worker_threads": 2},
    "three workers": {"workers": 3, "prefetch": 1},
    "cached": {"cache": "1MiB", "cache_policy": "fifo", "order": "block-shuffle:4"},
    "mmap": {"io": "mmap"},
    "one variable": {"variables": ["c"], "sample": "4x9"},
    "workers in this thread": {"sync": True},
    "negative rank": {"rank": -1},
    "no such variable": {"variables": ["nosuch"]},
    "sample too large": {"sample": {"time": 99}},
    "no such order": {"order": "sideways"},
    "decoded": {"decode": True},
    "planned, decoded, version 2": {**PLANNED, "decode": True, "store": "v2.zarr"},
}
USUAL = {"store": "v3.zarr", "variables": ALL, "sample": SAMPLE, "batch": 7, "batches": MOST, "seed": 3, "workers": 2, "memory": "128MiB", "world_size": 1, "rank": 0, "decode": False}


def write(path):
    dims = dict(zip(NAMES, SHAPE))
    axes = [("time", "f8", ("time",), np.arange(14) * 6.0 + 100), ("lat", "f4", ("lat",), np.linspace(-60, 60, 23).astype("f4"))]
    field = inputs.field
    fields = [
        ("a", "i1", NAMES, field(SHAPE, "i1")),
        ("b", "f8", NAMES, field(SHAPE, "f8")),
        ("c", "i2", ("time", "lon"), field((14, 30), "i2"), {"scale_factor": ("f4", 0.5), "add_offset": ("f4", 3)}),
        ("d", "f4", ("lat", "lon"), field((23, 30)), {"_FillValue": ("f4", 12.5)}),
    ]
    path.write_bytes(cdf.Cdf(2, dims, axes + fields).build())


class Bench(rows.Bench):
    def __init__(self, folder):
        super().__init__(folder)
        self.names = list(SETTINGS)
        os.environ["CHUNKMILL_LIBRARY"] = str(paths.BUILD / "lib" / "libchunkmill_loader.so.1")
        write(folder / "classic.nc")
        for name, options in STORES.items():
            tool.nc2zarr("-q", *rows.USUAL, *options, folder / "classic.nc", folder / name).ok()

    def run(self, name, facts, blessed):
        import chunkmill

        options = {**USUAL, **SETTINGS[name]}
        store, h, counts = self.folder / options.pop("store"), hashlib.sha256(), []
        try:
            with chunkmill.Loader(store, **options) as loader:
                for _ in range(2):
                    counts.append(self.epoch(loader, h))
                about = [f"{k}: {v.dtype} {v.shape}" for k, v in loader._keys.items()]
        except (chunkmill.ChunkmillError, ValueError) as problem:
            return {"batches": Row(1, text=f"{problem}\n".replace(str(self.folder), "."))}
        text = "".join(f"{x}\n" for x in (*about, f"batches of each epoch: {counts}, samples: {loader.nsamples}"))
        return {"batches": Row(0, document=h.hexdigest()[:16], text=text)}

    def epoch(self, loader, h):
        """Adds the batches of one; how many the epoch has."""
        n = 0
        for batch in loader:
            n += 1
            if n > MOST:
                continue
            h.update(batch.index.tobytes() + batch.samples.tobytes())
            for dim, values in sorted(batch.coords.items()):
                h.update(dim.encode() + (values.tobytes() if values.dtype.kind != "U" else repr(values.tolist()).encode()))
            for key in loader.keys():
                h.update(repr(key).encode() + np.from_dlpack(batch[key]).tobytes())
        return n
