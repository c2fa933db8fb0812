"""Valid files that have nothing to do with each other, or nearly: whatever is joined, nothing crashes."""

import os

import netCDF4
import numpy as np
import pytest

from support import tool

NAMES = ("time", "t", "x", "lat", "obs", "b")
OTHERS = ("a", "c", "time_bnds", "name")
UNITS = ("days since 2000-01-01", "months since 2000-01-01", "days since 0000-00-00", "hours since start", "hours since 2000-01-02", "K", "", None)
CALENDARS = ("standard", "noleap", "weird", None, None)
TYPES = ("f8", "f4", "i4", "i2", "u1", "S1", str)
OPTIONS = (
    (),
    (),
    ("--along", "time"),
    ("--along", "obs"),
    ("--new-dim", "time=@t"),
    ("--new-dim", "n=*.nc"),
    ("--promote", "a,c"),
    ("--packing", "unpack"),
    ("--missing", "fill", "--static", "first"),
    ("--overlap", "last", "--order", "name"),
    ("--time-units", "days since 1990-01-01"),
    ("--gaps", "fill"),
    ("--tolerance", "1"),
    ("--rename", "t=time"),
    ("--attrs", "first"),
)


def attributes(r, dtype):
    found = {"units": r.choice(UNITS), "calendar": r.choice(CALENDARS)}
    for name, values in (("bounds", ("time_bnds", "a", "x")), ("coordinates", ("x lat", "time", "c")), ("climatology", ("c", "time_bnds")), ("standard_name", ("time", "latitude"))):
        found[name] = r.choice(values) if r.random() < 0.2 else None
    if dtype not in (str, "S1"):
        found["scale_factor"] = r.choice((0.5, 2.0, 0.0, np.inf)) if r.random() < 0.15 else None
        found["missing_value"] = np.dtype(dtype).type(r.integers(0, 4)) if r.random() < 0.2 else None
    return {k: v for k, v in found.items() if v is not None}


def values(r, dtype, shape):
    if dtype is str:
        return np.array([r.choice(("", "p", "qq")) for _ in range(int(np.prod(shape)))], object).reshape(shape)
    if dtype == "S1":
        return r.choice(np.array([b"\0", b"p", b" "], "S1"), shape)
    plain = np.arange(int(np.prod(shape))).reshape(shape) + r.integers(0, 3)
    return (plain if r.random() < 0.7 else r.integers(0, 4, shape)).astype(dtype)


def write(r, path, base):
    """A file, of the dimensions BASE mostly."""
    lengths = {n: (int(r.integers(0, 4)) if r.random() < 0.3 else base[n]) for n in NAMES}
    form = r.choice(["NETCDF4", "NETCDF4", "NETCDF3_CLASSIC"])
    with netCDF4.Dataset(path, "w", format=form) as nc:
        unlimited = r.choice(["time", "obs", ""])
        for n in NAMES:
            nc.createDimension(n, None if n == unlimited else max(lengths[n], int(form != "NETCDF4")))
        for name in r.permutation(NAMES + OTHERS)[: r.integers(1, 7)]:
            dtype = TYPES[r.integers(0, len(TYPES) - (form != "NETCDF4"))]
            dtype = "i1" if form != "NETCDF4" and dtype == "u1" else dtype
            dims = (name,) if name in NAMES and r.random() < 0.5 else tuple(r.permutation(NAMES)[: r.integers(0, 4)])
            if form != "NETCDF4" and unlimited in dims[1:]:
                dims = (unlimited,) + tuple(d for d in dims if d != unlimited)
            fill = np.dtype(dtype).type(r.integers(0, 3)) if dtype not in (str, "S1") and r.random() < 0.3 else None
            v = nc.createVariable(name, dtype, dims, fill_value=fill)
            v.set_auto_maskandscale(False)
            v.set_auto_chartostring(False)
            v.setncatts(attributes(r, dtype))
            shape = tuple(lengths[d] if d == unlimited else len(nc.dimensions[d]) for d in dims)
            if np.prod(shape):
                v[...] = values(r, dtype, shape)


def survives(seed, folder):
    r = np.random.default_rng([31, seed])
    base = {n: int(r.integers(0, 4)) for n in NAMES}
    paths = [folder / f"{seed}-{i}.nc" for i in range(r.integers(2, 4))]
    for p in paths:
        write(r, p, base)
    out = folder / f"{seed}.zarr"
    verb = ("--survey", *paths) if r.random() < 0.5 else ("--verify", "none", *paths, out)
    result = tool.nc2zarr("-q", *OPTIONS[r.integers(0, len(OPTIONS))], *verb)
    assert result.status in (0, 1, 2, 4), f"seed {seed}: {result}"
    for p in paths:
        p.unlink()


@pytest.mark.long(ci=1)
def test_pairs(tmp_path):
    for seed in range(60):
        survives(seed, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("part", range(10))
def test_many_pairs(part, tmp_path):
    n = 500 if os.environ.get("CHUNKMILL_FULL") == "1" else 40
    for seed in range(1000 * (part + 1), 1000 * (part + 1) + n):
        survives(seed, tmp_path)
