"""How NetCDF-4 stores: chunk shapes, filters, byte order, fill and no fill, dimensions without end."""

import itertools

import numpy as np

from .book import random, smooth, values, variable

SHAPES = [
    ((7,), (3,)),
    ((1000,), (1000,)),
    ((1000,), (1,)),
    ((1025,), (256,)),
    ((13, 17), (4, 5)),
    ((64, 64), (64, 64)),
    ((64, 64), (1, 64)),
    ((64, 64), (64, 1)),
    ((100, 3), (33, 3)),
    ((5, 6, 7), (2, 3, 4)),
    ((30, 4, 5), (1, 4, 5)),
    ((2, 3, 4, 5), (1, 2, 3, 4)),
    ((40, 1, 9), (7, 1, 2)),
    ((3, 2, 2, 3, 2), (2, 1, 2, 2, 1)),
]
FILTERS = {
    "raw": {},
    "zlib1": dict(zlib=True, complevel=1, shuffle=False),
    "zlib9": dict(zlib=True, complevel=9, shuffle=False),
    "zshuf": dict(zlib=True, complevel=4, shuffle=True),
    "flet": dict(fletcher32=True),
    "zflet": dict(zlib=True, shuffle=False, fletcher32=True),
    "zshufflet": dict(zlib=True, shuffle=True, fletcher32=True),
    "szipnn": dict(compression="szip", szip_coding="nn", szip_pixels_per_block=8),
    "szipec": dict(compression="szip", szip_coding="ec", szip_pixels_per_block=16),
    "zstd": dict(compression="zstd", complevel=3),
    "zstdshuf": dict(compression="zstd", complevel=1, shuffle=True),
    "bzip2": dict(compression="bzip2", complevel=5),
    "blosclz": dict(compression="blosc_lz", blosc_shuffle=1),
    "blosclz4": dict(compression="blosc_lz4", blosc_shuffle=2),
    "blosclz4hc": dict(compression="blosc_lz4hc", blosc_shuffle=0),
    "blosczlib": dict(compression="blosc_zlib", blosc_shuffle=1),
    "blosczstd": dict(compression="blosc_zstd", blosc_shuffle=2),
}
TYPES = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8")


def filtered(book):
    """Each filter with every shape of the table, types turning; one file for each pair of shapes."""
    turn = itertools.cycle(TYPES)
    for kind, storage in FILTERS.items():
        if kind.startswith("blosc"):
            continue
        for part in range(0, len(SHAPES), 3):
            name = f"filter_{kind}_{part // 3}.nc"
            rng = random(name)
            with book.nc(name) as ds:
                for i, (shape, chunk) in enumerate(SHAPES[part : part + 3]):
                    dims = [f"v{i}_d{j}" for j in range(len(shape))]
                    for d, n in zip(dims, shape):
                        ds.createDimension(d, n)
                    t = next(turn)
                    if "szip" in kind and np.prod(chunk) < 16:  # szip takes no chunk below its block
                        chunk = shape
                    if "szip" in kind and np.prod(chunk) < 16:
                        continue
                    data = smooth(shape, t) if i % 2 else values(t, shape, rng)
                    variable(ds, f"v{i}_{t}", t, dims, data, chunksizes=chunk, **storage)


def blosc(book):
    """netCDF's blosc filter fails on what does not get smaller, so these are steps."""
    for kind, storage in FILTERS.items():
        if kind.startswith("blosc"):
            with book.nc(f"filter_{kind}.nc") as ds:
                ds.createDimension("y", 70)
                ds.createDimension("x", 130)
                data = np.arange(70 * 130).reshape(70, 130) // 65
                for t in TYPES:
                    variable(ds, f"v_{t}", t, ("y", "x"), data % 100, chunksizes=(32, 128), **storage)


def big_endian(book):
    for kind in ("raw", "zshuf", "zshufflet", "zstd"):
        name = f"bigendian_{kind}.nc"
        rng = random(name)
        with book.nc(name) as ds:
            ds.createDimension("y", 21)
            ds.createDimension("x", 10)
            for t in ("i2", "u4", "i8", "f4", "f8"):
                variable(
                    ds,
                    f"b_{t}",
                    t,
                    ("y", "x"),
                    values(t, (21, 10), rng),
                    endian="big",
                    chunksizes=(8, 4),
                    **FILTERS[kind],
                )
                variable(
                    ds,
                    f"l_{t}",
                    t,
                    ("y", "x"),
                    values(t, (21, 10), rng),
                    endian="little",
                    chunksizes=(8, 4),
                    **FILTERS[kind],
                )
                variable(ds, f"f_{t}", t, ("y",), endian="big", fill_value=77)[3:5] = 5
            variable(ds, "contiguous", ">f8", ("y",), values("f8", (21,), rng), contiguous=True)


def fills(book):
    """Chunks that were never written, with every sort of fill value."""
    for t in TYPES:
        with book.nc(f"fill_{t}.nc") as ds:
            ds.createDimension("y", 20)
            ds.createDimension("x", 30)
            top = np.finfo(t).max if t[0] == "f" else np.iinfo(t).max
            for name, kw in {
                "default": {},
                "own": dict(fill_value=42),
                "zero": dict(fill_value=0),
                "top": dict(fill_value=top),
            }.items():
                v = variable(ds, name, t, ("y", "x"), chunksizes=(7, 8), zlib=name != "zero", **kw)
                v[3:9, 5:21] = smooth((6, 16), t)
            variable(ds, "nothing", t, ("y", "x"), fill_value=9, chunksizes=(7, 8), zlib=True)
            variable(ds, "all_fill", t, ("y", "x"), np.full((20, 30), 9, t), fill_value=9, chunksizes=(7, 8), zlib=True)
            variable(ds, "contiguous", t, ("y", "x"), contiguous=True)
            variable(ds, "nofill", t, ("y", "x"), smooth((20, 30), t), fill_value=False, chunksizes=(7, 8))
    for t in ("f4", "f8"):
        with book.nc(f"fill_nan_{t}.nc") as ds:
            ds.createDimension("x", 10)
            for name, x in (
                ("nan", np.nan),
                ("inf", np.inf),
                ("minus_inf", -np.inf),
                ("minus_zero", -0.0),
                ("tiny", 1e-40),
            ):
                v = variable(ds, name, t, ("x",), fill_value=np.array(x, t), chunksizes=(4,))
                v[5] = 1.5


def unlimited(book):
    for kind in ("raw", "zshuf"):
        name = f"unlimited_{kind}.nc"
        rng = random(name)
        with book.nc(name) as ds:
            for d in ("t", "level", "obs"):
                ds.createDimension(d, None)
            ds.createDimension("x", 6)
            variable(ds, "t", "f8", ("t",), np.arange(11), {"units": "hours since 1990-01-01"}, **FILTERS[kind])
            variable(ds, "two", "f4", ("obs", "level"), values("f4", (11, 4), rng), **FILTERS[kind])
            # Shorter than its dimension now is: the tail was never written.
            v = variable(ds, "short", "i4", ("t", "x"), **FILTERS[kind])
            v[:3] = 7
            variable(ds, "unwritten", "f4", ("t", "obs"), **FILTERS[kind])
        name = f"unlimited_tail_{kind}.nc"  # the same along a later dimension, where netCDF-C reads nonsense
        with book.nc(name, oracle="raw") as ds:
            ds.createDimension("t", None)
            ds.createDimension("level", None)
            ds.createDimension("x", 6)
            variable(ds, "two", "f4", ("t", "level"), values("f4", (11, 4), rng), **FILTERS[kind])
            variable(ds, "last", "i2", ("x", "t"), values("i2", (6, 11), rng), **FILTERS[kind])
            variable(ds, "t", "f8", ("t",), np.arange(14), **FILTERS[kind])
            variable(ds, "level", "f8", ("level",), np.arange(7), **FILTERS[kind])


def many_chunks(book):
    with book.nc("chunks_many.nc") as ds:
        ds.createDimension("t", 4000)
        ds.createDimension("x", 2)
        variable(ds, "v", "i2", ("t", "x"), np.arange(8000).reshape(4000, 2), chunksizes=(1, 2), zlib=True)
    with book.nc("chunks_default.nc") as ds:
        ds.createDimension("t", None)
        ds.createDimension("y", 30)
        ds.createDimension("x", 40)
        variable(ds, "v", "f4", ("t", "y", "x"), smooth((25, 30, 40)), zlib=True)
        variable(ds, "t", "f8", ("t",), np.arange(25))
    with book.nc("chunks_series.nc") as ds:
        for d, n in (("t", 365), ("y", 12), ("x", 12)):
            ds.createDimension(d, n)
        variable(ds, "v", "i2", ("t", "y", "x"), smooth((365, 12, 12), "i2"), chunksizes=(365, 2, 3), zlib=True)
    with book.nc("quantized.nc") as ds:
        ds.createDimension("x", 500)
        variable(ds, "v", "f4", ("x",), smooth((500,)), zlib=True, significant_digits=3, quantize_mode="BitGroom")


def write(book):
    filtered(book)
    blosc(book)
    big_endian(book)
    fills(book)
    unlimited(book)
    many_chunks(book)
