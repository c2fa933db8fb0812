"""A file split at random is the archive whose store has the unsplit file's digest."""

import random

import numpy as np
import pytest

from support import paths, tool
from support.stores import digests

from . import files as F
from . import stores
from .files import File, Var

TYPES = ["f4", "f8", "i2", "u1", "i4", "u2", "i8", "S1"]
COUNT = paths.tries(8, 25, 100)


def values(r, dtype, shape):
    if dtype == "S1":
        return r.choice(np.frombuffer(b"abcxyz", "S1"), shape)
    if np.dtype(dtype).kind == "f":
        return r.normal(0, 100, shape).round(3).astype(dtype)
    info = np.iinfo(dtype)
    return r.integers(max(info.min, -500), min(info.max, 500), shape).astype(dtype)


def whole(rng, r):
    """A random file: some variables along time at any place of their dimensions, some without it."""
    n, ny, nx = rng.randrange(1, 60), rng.randrange(1, 9), rng.randrange(1, 9)
    units = rng.choice(["hours since 2000-01-01", "days since 1850-01-01", "seconds since 1970-01-01"])
    dtype = rng.choice(["f8", "i4", "i8"])
    start = rng.randrange(0, 1000)
    vars = {
        "time": Var(("time",), (start + np.cumsum(r.integers(1, 3, n))).astype(dtype), {"units": units, "calendar": rng.choice(["standard", "noleap", "360_day"])}),
        "lat": Var(("lat",), np.sort(r.normal(size=ny)).astype("f8")),
        "ground": Var(("lat", "lon"), values(r, "f4", (ny, nx))),
    }
    lengths = {"time": n, "lat": ny, "lon": nx, "len": 5}
    for i in range(rng.randrange(1, 6)):
        dims = rng.choice([("time", "lat", "lon"), ("time",), ("time", "lon"), ("lat", "time", "lon"), ("time", "lat", "lon", "len")])
        shape = tuple(lengths[d] for d in dims)
        dt = rng.choice(TYPES)
        chunks = tuple(rng.randrange(1, k + 1) for k in shape) if rng.random() < 0.6 else None
        fill = None if dt == "S1" or rng.random() < 0.5 else np.dtype(dt).type(7)
        vars[f"v{i}"] = Var(dims, values(r, dt, shape), {"units": "1"}, fill, chunks, rng.choice([0, 1]))
    if rng.random() < 0.3:
        vars["names"] = Var(("time",), np.array([f"step {i} " + "x" * (i % 9) for i in range(n)], object))
    classic = "names" not in vars and not any(v.data.dtype.str[1:] in ("u1", "u2", "i8") for v in vars.values())
    format = rng.choice(["NETCDF4", "NETCDF3_64BIT_OFFSET"]) if classic else "NETCDF4"
    leading = all("time" not in v.dims[1:] for v in vars.values())
    return File("whole.nc", vars, {"title": "random"}, ("time",) if leading and rng.random() < 0.7 else (), format)


def cuts(rng, n):
    """Where parts begin: uneven, of one step, empty."""
    inside = sorted(rng.randrange(0, n + 1) for _ in range(rng.randrange(0, 7)))
    return [0, *inside, n]


def part_of(f, a, b, names, name, rng):
    p = F.changed(f)
    p.name = name
    p.vars = {k: v for k, v in p.vars.items() if k in names}
    for v in p.vars.values():
        if "time" in v.dims:
            v.data = np.take(v.data, range(a, b), axis=v.dims.index("time"))
            if v.chunks:
                at = v.dims.index("time")
                most = max(1, b - a) if "time" not in p.unlimited else max(1, v.chunks[at])
                v.chunks = tuple(min(c, most) if i == at else c for i, c in enumerate(v.chunks))
    return p


def split(rng, f):
    n = f.steps()
    basic = [k for k in f.vars if k in ("time", "lat")]
    rest = [k for k in f.vars if k not in basic]
    groups = [rest]
    if rng.random() < 0.4 and len(rest) > 1:
        k = rng.randrange(1, len(rest))
        groups = [rest[:k], rest[k:]]
    parts = []
    for g, names in enumerate(groups):
        along_time = any("time" in f.vars[k].dims for k in names)
        edges = cuts(rng, n) if along_time else [0, n]
        for i, (a, b) in enumerate(zip(edges, edges[1:])):
            # netCDF takes a length of 0 for an unlimited dimension, which classic files have in front.
            if a == b and f.format != "NETCDF4" and not f.unlimited:
                continue
            parts.append(part_of(f, a, b, basic + names, f"part{g}_{i:02d}.nc", rng))
    return parts


@pytest.mark.parametrize("seed", range(COUNT))
def test_split(seed, tmp_path):
    rng, r = random.Random(seed), np.random.default_rng(seed)
    f = whole(rng, r)
    one = F.write(f, tmp_path)
    parts = split(rng, f)
    rng.shuffle(parts)
    F.write_all(parts, tmp_path / "in")
    layout = rng.choice([[], ["--zarr-format", "2"], ["--chunks", "time=5"], ["--chunks", "time=4", "--shards", "time=16"], ["--codec", "zstd"]])
    memory = rng.choice([[], ["--memory", "64MiB"]])
    a, b = tmp_path / "one.zarr", tmp_path / "many.zarr"
    tool.nc2zarr("-q", *layout, one, a).ok()
    tool.nc2zarr("-q", "--verify", "full", *layout, *memory, tmp_path / "in", b).ok()
    assert digests(a) and digests(a) == digests(b)
    for name in f.vars:
        assert stores.attributes(a, name) == stores.attributes(b, name), name
