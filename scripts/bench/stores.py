"""Stores to rechunk: one entry for each kind of work, in full and quick size."""

import math
from dataclasses import dataclass

VERSION = 1  # of what make_store.py writes: stores of another version are made again
MIB = 1 << 20


@dataclass(frozen=True)
class Work:
    name: str
    title: str
    shape: tuple
    quick_shape: tuple
    chunk: tuple  # 0: as long as the array
    target: tuple
    shards: tuple = ()
    codec: str = "blosc"  # of the source; targets are blosc zstd 2 with byte shuffle
    scarce: bool = False  # in a memory of a twentieth of the array
    store: str = ""  # whose source it shares
    peers: tuple = ("dask", "tensorstore", "tensorstore-sync", "zarr-python", "zarrs", "rechunker")

    def dims(self, quick):
        return self.quick_shape if quick else self.shape

    def lengths(self, which, quick):
        return tuple(c or n for c, n in zip(which, self.dims(quick)))

    def nbytes(self, quick):
        return 4 * math.prod(self.dims(quick))

    def source(self):
        return self.store or self.name

    def contenders(self, quick):
        """In quick runs most of the time would go into starting Python."""
        if not quick or self.name == "series":
            return self.peers
        return tuple(p for p in self.peers if p == "tensorstore" or self.scarce)

    def memory(self, quick):
        """For the whole process; in quick runs a twentieth would not hold the libraries."""
        return max(self.nbytes(quick) // 20, 48 * MIB) if self.scarce else None


WORKS = [
    Work("series", "maps to series, unbounded memory", (256, 721, 1440), (64, 361, 720), (1, 0, 0), (0, 32, 32)),
    Work("cubes", "100x100x100 to 128x128x128", (400, 400, 400), (300, 300, 300), (100, 100, 100), (128, 128, 128)),
    Work("shards", "the same chunks, gathered in shards", (256, 721, 1440), (64, 361, 720), (16, 64, 64), (16, 64, 64),
         (64, 256, 256), peers=("dask", "tensorstore", "tensorstore-sync", "zarr-python", "zarrs")),
    Work("recode", "the same chunks, from zstd 3 to blosc zstd 2 with shuffle", (256, 721, 1440), (64, 361, 720),
         (16, 128, 128), (16, 128, 128), codec="zstd"),
    Work("scarce", "maps to series in a twentieth of the array's memory", (256, 721, 1440), (64, 361, 720), (1, 0, 0),
         (0, 32, 32), scarce=True, store="series", peers=("rechunker",)),
]  # fmt: skip


def find(name):
    return next(w for w in WORKS if w.name == name)
