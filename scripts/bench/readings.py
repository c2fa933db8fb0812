"""Inputs of readbench and its contenders: one entry for each kind of work, in full and quick size."""

import math
from dataclasses import dataclass

VERSION = 1  # of how the stores are made: those of another version are made again
CODEC = "blosc:zstd:2:shuffle"


@dataclass(frozen=True)
class Layout:
    """The standard input as a store that nc2zarr makes."""

    chunk: tuple
    shard: tuple = ()


LAYOUTS = {
    "chunks": Layout((16, 128, 128)),
    "shards": Layout((16, 128, 128), (64, 512, 512)),
    "small": Layout((16, 32, 32), (64, 256, 256)),
}


@dataclass(frozen=True)
class Peer:
    who: str
    title: str
    factor: float = 0  # times as long as readbench that it should take; 0: no target
    options: tuple = ()  # of readbench, where the peer is readbench
    quick: bool = True  # also in quick runs


BARE = Peer("bare", "roofline, bare loops", 0.95)
TENSORSTORE = Peer("tensorstore", "tensorstore", 1.2)
ZARRS = Peer("zarrs", "zarr-python with the zarrs pipeline", 1.2)


def zarr_python(factor):
    return (
        Peer("zarr", "zarr-python 3, its default pipeline", factor),
        Peer("zarr-fast", "zarr-python 3, its fastest setting: samples by threads of Python", factor, quick=False),
    )


def loaders(who):
    name = {"zarr": "zarr-python 3", "zarrs": "the zarrs pipeline"}[who]
    judged = who == "zarr"
    return Peer(f"loader-{who}", f"worker processes as DataLoader's over {name}", 3 if judged else 0, quick=judged)


@dataclass(frozen=True)
class Reading:
    """Batches are many and epochs few: an epoch ends when its last worker does, and bare loops have no epochs."""

    name: str
    title: str
    layout: str
    sample: tuple
    batch: int
    batches: tuple  # of an epoch, full and quick; 0: an epoch of all samples
    peers: tuple
    order: str = "random"
    mode: str = "threads"
    loader: str = "map"
    options: tuple = ()
    epochs: tuple = (3, 3)  # full, quick; the first is a warm-up
    quick_input: bool = False  # the short one also in full runs
    quick: bool = True  # also in quick runs

    def nbatches(self, quick, shape):
        whole = math.prod(n // s for n, s in zip(shape, self.sample))
        return self.batches[quick] or -(-whole // self.batch)


def tiles(name, sample, n, factor):
    """An epoch of all samples, N of them in each chunk, in random order."""
    peers = (Peer("map", "the map loader, whole batches per worker", factor, ("--loader", "map")),)
    return Reading(
        name, f"planned loader, {n} samples a chunk, each once, shuffled", "chunks", sample, 64, (0, 0), peers,
        order="block-shuffle:1000000000", loader="planned", epochs=(3, 2), quick_input=True, quick=n == 8,
    )  # fmt: skip


def beside_itself(name, title, options, plain, other_options, quick):
    """readbench with OPTIONS, which may take little longer than with OTHER_OPTIONS."""
    peers = (Peer("plain", plain, 0.95, other_options),)
    return Reading(name, title, "chunks", (16, 128, 128), 8, (24, 6), peers, options=options, quick=quick)


HOST = ("--device", "host", "--validate")

READINGS = [
    Reading("chunks", "samples as large as a chunk, anywhere", "chunks", (16, 128, 128), 8, (24, 4),
            (BARE, TENSORSTORE, *zarr_python(0), ZARRS), quick=False),
    Reading("shards", "the same from shards", "shards", (16, 128, 128), 8, (24, 4),
            (BARE, TENSORSTORE, *zarr_python(3), ZARRS), quick=False),
    Reading("small", "small chunks in shards", "small", (16, 64, 64), 32, (40, 8),
            (BARE, TENSORSTORE, *zarr_python(3), ZARRS)),
    Reading("loader-chunks", "whole batches by worker processes", "chunks", (16, 128, 128), 8, (24, 4),
            (loaders("zarr"), loaders("zarrs")), mode="processes", quick=False),
    Reading("loader-small", "whole batches by worker processes, small chunks in shards", "small", (16, 64, 64), 32,
            (40, 8), (loaders("zarr"), loaders("zarrs")), mode="processes"),
    tiles("planned-8", (2, 128, 128), 8, 4),
    tiles("planned-32", (1, 128, 64), 32, 12),
    beside_itself("device", "staged onto the device host", (*HOST, "none"), "not staged", ("--device", "none"), True),
    beside_itself("checksum", "staged, with checksums", (*HOST, "checksum"), "without checksums", (*HOST, "none"),
                  False),
    Reading("xbatcher", "samples in their order", "chunks", (16, 103, 120), 8, (24, 2),
            (Peer("xbatcher", "xbatcher over xarray"),), order="sequential", quick=False),
]  # fmt: skip
