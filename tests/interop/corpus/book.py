"""The files made so far and what each must become."""

import zlib
from contextlib import contextmanager

import h5py
import hdf5plugin  # noqa: F401  before netCDF4: both bring an HDF5, and plugins bind to the first
import netCDF4
import numpy as np

FORMATS = ("NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA", "NETCDF4_CLASSIC", "NETCDF4")
SHORT = dict(zip(FORMATS, ("cdf1", "cdf2", "cdf5", "nc4c", "nc4")))
CLASSIC_TYPES = ("i1", "S1", "i2", "i4", "f4", "f8")
WIDE_TYPES = CLASSIC_TYPES + ("u1", "u2", "u4", "i8", "u8")


def types_of(fmt):
    return WIDE_TYPES if fmt in ("NETCDF3_64BIT_DATA", "NETCDF4") else CLASSIC_TYPES


class Book:
    """Each entry: file, and

    expect   "converts", "refused" (exit status 1, nothing left), "unsupported"
             (the same, but --skip-unsupported converts the rest), or "either"
             (converted right, or refused in one sentence)
    word     what the sentence of a refusal names
    warns    what a warning must name, where Zarr 3 is written
    oracle   False where netCDF4-python cannot say what is in the file; "own" where only
             support/nc_equals_zarr.py can, which asks h5py too; "raw" where xarray is
             shown nonsense as well, because it opens the file through netCDF-C
    args     options that the file needs
    """

    def __init__(self, folder):
        self.folder, self.entries = folder, []

    def path(self, name, expect="converts", word=None, warns=None, oracle=True, args=()):
        assert all(e["file"] != name for e in self.entries), name
        self.entries.append(
            {"file": name, "expect": expect, "word": word, "warns": warns, "oracle": oracle, "args": list(args)}
        )
        return self.folder / name

    @contextmanager
    def nc(self, name, fmt="NETCDF4", **says):
        with netCDF4.Dataset(self.path(name, **says), "w", format=fmt) as ds:
            yield ds

    @contextmanager
    def h5(self, name, libver=("earliest", "v110"), userblock_size=0, **says):
        with h5py.File(self.path(name, **says), "w", libver=libver, userblock_size=userblock_size) as f:
            yield f

    def raw(self, name, data, **says):
        self.path(name, **says).write_bytes(data)


def random(name):
    return np.random.default_rng(zlib.crc32(name.encode()))


WORDS = ["", "a", "tas", "ünïcödé", "日本", "x" * 300, " lead", "trail ", "tab\t", "new\nline", '"quoted"', "😀"]


def values(dtype, shape, rng):
    """Hard values of a type: extremes, then anything; floats with NaN payloads, -0 and denormals."""
    n = int(np.prod(shape, dtype=np.int64))
    if dtype is str:
        return np.array([WORDS[i] for i in rng.integers(0, len(WORDS), n)], object).reshape(shape)
    t = np.dtype(dtype)
    if t.kind == "S":
        return rng.integers(0, 256, n * t.itemsize, np.uint8).view(t).reshape(shape)
    if t.kind in "iu":
        limits = np.iinfo(t)
        a = rng.integers(limits.min, limits.max, n, t, endpoint=True)
        special = [limits.max, limits.min, 0, 1, limits.max - 1, limits.min + 1]
    else:
        a = rng.normal(0, 1, n).astype(t)
        bits = {
            4: [0x7FC00001, 0xFFA00000, 0x00000001, 0x7F800000, 0xFF800000, 0x80000000],
            8: [0x7FF8000000000123, 0xFFF4000000000000, 1, 0x7FF0000000000000, 0xFFF0000000000000, 1 << 63],
        }
        special = np.array(bits[t.itemsize], f"u{t.itemsize}").view(f"f{t.itemsize}").astype(t, copy=False)
    special = np.array(special, t)[:n]
    a[rng.permutation(n)[: len(special)]] = special
    return a.reshape(shape)


def smooth(shape, dtype="f4"):
    """A field as models make them."""
    a = sum(np.sin(x / (3.0 + i)) * (i + 1) for i, x in enumerate(np.indices(shape, sparse=True)))
    a = np.broadcast_to(a, shape)
    t = np.dtype(dtype)
    return (a * 1000).astype(t) if t.kind in "iu" else (280 + 10 * a).astype(t)


def variable(ds, name, dtype, dims, data=None, attrs=None, **storage):
    """A variable whose packing and masks nobody interprets."""
    v = ds.createVariable(name, dtype, dims, **storage)
    v.set_auto_maskandscale(False)
    v.set_auto_chartostring(False)
    v.setncatts(attrs or {})
    if data is not None:
        v[...] = data
    return v
