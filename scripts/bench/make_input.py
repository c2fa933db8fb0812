#!/usr/bin/env python3
"""make_input.py NAME OUT.nc [quick]: writes one of the inputs that inputs.py lists.

Chunks are shuffled and deflated by zlib here, on all CPUs, and handed to HDF5 as
they are: the file is what netCDF-C writes, made in a fraction of its time.
"""
import os
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor

import h5py
import netCDF4
import numpy as np

import inputs

LEVEL = 4
WAVES = 12
SCALE, OFFSET = 1 / 512, 273.15  # of packed variables


class Field:
    """One variable's maps.  The waves are separable, so that a map is a product of thin matrices."""

    def __init__(self, shape, dtype, seed):
        self.shape, self.dtype, self.seed = shape, np.dtype(dtype), seed
        rng = np.random.default_rng(seed)
        lat = np.deg2rad(np.linspace(90, -90, shape[1]))
        self.x = np.deg2rad(np.arange(shape[2]) * (360 / shape[2]))
        ky, self.kx = rng.integers(1, 30, WAVES), rng.integers(1, 30, WAVES)
        amplitude = 8 / np.sqrt(1 + ky + self.kx)
        phase, self.omega = rng.uniform(0, 2 * np.pi, WAVES), rng.uniform(-0.2, 0.2, WAVES)
        self.across = (amplitude * np.sin(2 * ky * lat[:, None] + phase)).astype("f4")
        self.base = (288 - 40 * np.sin(lat) ** 2).astype("f4")[:, None]

    def map(self, step):
        along = np.cos(self.kx[:, None] * self.x + self.omega[:, None] * step).astype("f4")
        field = self.base + self.across @ along
        noise = np.random.default_rng((self.seed, step)).standard_normal(field.shape, dtype="f4")
        field = np.round((field + np.float32(0.15) * noise) * 64) / 64
        if self.dtype.kind == "f":
            return field.astype(self.dtype)
        if self.dtype.kind == "u":
            return np.clip(field - 180, 0, 250).astype(self.dtype)
        return np.clip(np.round((field - OFFSET) / SCALE), -32766, 32767).astype(self.dtype)

    def maps(self, lo, hi):
        return np.stack([self.map(step) for step in range(lo, hi)])


def define(out, spec, shape):
    """The file with its coordinates; data variables are defined and empty."""
    classic = spec.layout == "classic"
    nc = netCDF4.Dataset(out, "w", format="NETCDF3_64BIT_OFFSET" if classic else "NETCDF4")
    nc.title, nc.Conventions = "synthetic near-surface air temperature", "CF-1.8"
    nc.set_fill_off()
    nc.createDimension("time", shape[0] if spec.layout == "contiguous" else None)
    nc.createDimension("latitude", shape[1])
    nc.createDimension("longitude", shape[2])
    t = nc.createVariable("time", "f8", ("time",))
    t.units, t.calendar, t.standard_name = "hours since 1979-01-01 00:00:00", "standard", "time"
    y = nc.createVariable("latitude", "f4", ("latitude",))
    y.units, y.standard_name = "degrees_north", "latitude"
    x = nc.createVariable("longitude", "f4", ("longitude",))
    x.units, x.standard_name = "degrees_east", "longitude"
    storage = dict(zlib=True, complevel=LEVEL, shuffle=True, chunksizes=spec.chunk)
    if spec.layout == "contiguous":
        storage = dict(contiguous=True)
    elif classic:
        storage = {}
    for name, dtype in spec.variables():
        fill = {"i2": np.int16(-32767), "u1": np.uint8(255)}.get(dtype, np.float32(9.969209968386869e36))
        v = nc.createVariable(name, dtype, ("time", "latitude", "longitude"), fill_value=fill, **storage)
        v.units, v.standard_name, v.long_name = "K", "air_temperature", "2 metre temperature"
        if dtype == "i2":
            v.scale_factor, v.add_offset = SCALE, OFFSET
        v.set_auto_maskandscale(False)
    y[:], x[:] = np.linspace(90, -90, shape[1]), np.arange(shape[2]) * (360 / shape[2])
    t[:] = np.arange(shape[0])
    return nc


def write_slabs(nc, spec, shape, fields):
    """Through netCDF-C, for layouts without filters and for chunks so small that a call for each would cost more."""
    step = max(spec.chunk[0], 4)
    for name, _ in spec.variables():
        if spec.layout != "classic":
            nc[name].set_var_chunk_cache(1 << 28, 1 << 20, 0.75)
    for lo in range(0, shape[0], step):
        hi = min(lo + step, shape[0])
        for (name, _), field in zip(spec.variables(), fields):
            nc[name][lo:hi] = field.maps(lo, hi)


def encode(block, origin, chunk):
    """The chunk at ORIGIN of BLOCK as HDF5 stores it; edge chunks are padded."""
    part = block[tuple(slice(o, o + c) for o, c in zip(origin, chunk))]
    if part.shape != chunk:
        part = np.pad(part, [(0, c - n) for c, n in zip(chunk, part.shape)])
    raw = np.ascontiguousarray(part).view(np.uint8).reshape(-1, block.itemsize)
    return zlib.compress(np.ascontiguousarray(raw.T), LEVEL)


def write_chunks(path, spec, shape, fields, threads):
    depth = spec.chunk[0]
    with h5py.File(path, "r+") as h5, ThreadPoolExecutor(threads) as pool:

        def blocks():
            for (name, _), field in zip(spec.variables(), fields):
                h5[name].resize(shape)
                for lo in range(0, shape[0], depth):
                    yield name, field, lo

        def make(item):
            name, field, lo = item
            block = field.maps(lo, min(lo + depth, shape[0]))
            origins = [(0, y, x) for y in range(0, shape[1], spec.chunk[1]) for x in range(0, shape[2], spec.chunk[2])]
            return [(name, (lo, *o[1:]), encode(block, o, spec.chunk)) for o in origins]

        # A few blocks at a time: what is made waits in memory until it is written.
        todo, queue = blocks(), []
        for item in todo:
            queue.append(pool.submit(make, item))
            if len(queue) > threads:
                store(h5, queue.pop(0).result())
        for future in queue:
            store(h5, future.result())


def store(h5, chunks):
    for name, origin, data in chunks:
        h5[name].id.write_direct_chunk(origin, data)


def main():
    spec, out, quick = inputs.find(sys.argv[1]), sys.argv[2], sys.argv[3:] == ["quick"]
    shape = spec.dims(quick)
    fields = [Field(shape, dtype, seed) for seed, (_, dtype) in enumerate(spec.variables(), 1)]
    part = out + ".part"
    nc = define(part, spec, shape)
    if spec.layout != "deflate":
        write_slabs(nc, spec, shape, fields)
    nc.close()
    if spec.layout == "deflate":
        write_chunks(part, spec, shape, fields, len(os.sched_getaffinity(0)))
    os.rename(part, out)


if __name__ == "__main__":
    main()
