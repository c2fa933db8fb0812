"""Inputs to convert: one entry for each kind of input, in full and quick size.

All hold fields that vary like weather: travelling waves over a latitude
gradient with a little noise, rounded as archived analyses are.
"""
import math
from dataclasses import dataclass

VERSION = 1  # of what make_input.py writes: inputs of another version are made again


@dataclass(frozen=True)
class Input:
    name: str
    title: str
    layout: str  # deflate (chunks, shuffle, level 4), tiny (the same, written as slabs), contiguous, classic
    shape: tuple  # time, latitude, longitude
    quick_shape: tuple
    chunk: tuple  # of the file; contiguous and classic: what one read of the roofline takes
    target: tuple  # of the store
    types: tuple = ("f4",)  # of the variables
    peers: tuple = ("xarray", "zarrs")  # measured beside nc2zarr and the roofline

    def dims(self, quick):
        return self.quick_shape if quick else self.shape

    def variables(self):
        return [(f"v{i:02d}" if len(self.types) > 1 else "t2m", t) for i, t in enumerate(self.types)]

    def target_option(self):
        return "x".join(map(str, self.target))

    def decoded_nbytes(self, quick):
        n, m, k = self.dims(quick)
        return n * m * k * sum(int(t[1]) for t in self.types)

    def chunks(self, quick):
        return math.prod(-(-n // c) for n, c in zip(self.dims(quick), self.chunk))

    def depth(self, quick):
        """Steps of a block: the fewest that hold whole source and whole target chunks."""
        return min(math.lcm(self.chunk[0], self.target[0]), -(-self.dims(quick)[0] // self.target[0]) * self.target[0])

    def block_nbytes(self, quick):
        """Target chunks of a block, padded, of the largest type."""
        cells = self.depth(quick)
        for n, c in zip(self.dims(quick)[1:], self.target[1:]):
            cells *= -(-n // c) * c
        return cells * max(int(t[1]) for t in self.types)


INPUTS = [
    Input("standard", "one time step a chunk, float32, deflate 4 and shuffle", "deflate",
          (256, 721, 1440), (48, 721, 1440), (1, 721, 1440), (16, 128, 128),
          peers=("xarray", "zarrs", "gdal", "nccopy")),
    Input("chunked", "chunks of 24x73x144, float32, deflate 4 and shuffle", "deflate",
          (144, 721, 1440), (48, 721, 1440), (24, 73, 144), (16, 128, 128)),
    Input("packed", "one time step a chunk, int16 with scale and offset, deflate 4 and shuffle", "deflate",
          (256, 721, 1440), (48, 721, 1440), (1, 721, 1440), (16, 128, 128), ("i2",)),
    Input("contiguous", "contiguous float32", "contiguous",
          (128, 721, 1440), (32, 721, 1440), (1, 128, 1440), (16, 128, 128)),
    Input("classic", "NetCDF classic, 64-bit offsets, two record variables of float32", "classic",
          (64, 721, 1440), (16, 721, 1440), (1, 128, 1440), (16, 128, 128), ("f4", "f4")),
    Input("tiny", "chunks of 4x4x8 float32, deflate 4 and shuffle", "tiny",
          (800, 200, 400), (240, 200, 400), (4, 4, 8), (16, 128, 128)),
    Input("sixty", "60 variables, float32 and int16, one time step a chunk, deflate 4 and shuffle", "deflate",
          (24, 181, 360), (12, 181, 360), (1, 181, 360), (12, 91, 120), ("f4", "i2") * 30),
]  # fmt: skip

# Opened, planned, not converted: what reading the index of a million chunks costs.
INDEX = Input("index", "1,000,000 chunks of 1x1x8", "tiny",
              (1000, 1000, 8), (200, 1000, 8), (1, 1, 8), (1000, 1000, 8), ("u1",))  # fmt: skip


def find(name):
    return next(i for i in [*INPUTS, INDEX] if i.name == name)
