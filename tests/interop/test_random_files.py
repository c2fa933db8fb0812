"""Files made at random, of every type, layout, filter and fill value: the store holds what h5py reads."""

import random

import h5py
import hdf5plugin
import numpy as np
import pytest
import zarr

from support import paths, tool

FILES = paths.tries(12, 60, 300)
ENUM = h5py.enum_dtype({"A": 0, "B": 1, "C": 77}, basetype="<i2")
NUMBERS = ["i1", "u1", "<i2", ">i2", "<u2", "<i4", ">u4", "<i8", "<u8", ">i8", "<f4", ">f4", "<f8", ">f8"]
OPTIONS = [
    [], ["--zarr-format", "2"], ["--codec", "keep"], ["--codec", "keep", "--zarr-format", "2"], ["--shards", "auto"],
    ["--chunks", "auto:1KiB", "-j", "3"], ["--codec", "gzip", "--chunks", "source"], ["--codec", "none"],
]


def pipeline(rng):
    how = {}
    if rng.random() < 0.4:
        how["shuffle"] = True
    if rng.random() < 0.3:
        how["fletcher32"] = True
    how |= rng.choice([
        {}, {"compression": "gzip"}, {"compression": "lzf"}, dict(hdf5plugin.Zstd()), dict(hdf5plugin.Blosc()),
        dict(hdf5plugin.BZip2()), dict(hdf5plugin.LZ4()), dict(hdf5plugin.Bitshuffle()),
    ])
    return how


def add(rng, f, name):
    """A dataset, and what it holds."""
    draw = np.random.default_rng(rng.randrange(2**32))
    shape = tuple(rng.choice([1, 2, 3, 5, 8, 13, 21]) for _ in range(rng.randrange(4)))
    kind = rng.choice(["number"] * 6 + ["bool", "enum", "text"])
    if kind == "text":
        values = np.array([rng.choice(["", "a", "grün", "long " * 9]) for _ in range(int(np.prod(shape)))], object)
        f.create_dataset(name, data=values.reshape(shape), dtype=h5py.string_dtype())
        return values.reshape(shape)
    if kind == "bool":
        dtype, values = np.dtype(bool), draw.random(shape) < 0.5
    elif kind == "enum":
        dtype, values = ENUM, draw.choice(np.array([0, 1, 77], "<i2"), shape)
    else:
        dtype = np.dtype(rng.choice(NUMBERS))
        values = draw.integers(0, 100, shape).astype(dtype)
        if rng.random() < 0.5:
            values = np.frombuffer(draw.bytes(max(1, values.size) * dtype.itemsize), dtype)[: values.size].reshape(shape)
    how = {}
    if shape and rng.random() < 0.7:
        how = dict(chunks=tuple(rng.randint(1, n) for n in shape), **pipeline(rng))
        if rng.random() < 0.3:
            how["maxshape"] = tuple(rng.choice([None, n]) for n in shape)
    if rng.random() < 0.4 and kind == "number":
        how["fillvalue"] = dtype.type(rng.randrange(100))
    v = f.create_dataset(name, shape, dtype=dtype, **how)
    written = rng.choice(["all", "all", "some", "none"])
    if written == "all" or not shape:
        v[...] = values
    elif written == "some":
        v[: (shape[0] + 1) // 2] = values[: (shape[0] + 1) // 2]
    return v[...]


@pytest.mark.long
def test_random_files(tmp_path):
    rng = random.Random("files")
    path, out = tmp_path / "random.h5", tmp_path / "out.zarr"
    for number in range(FILES):
        made = {}
        block, libver = rng.choice([0, 0, 512, 1024]), rng.choice(["earliest", "v110"])
        with h5py.File(path, "w", userblock_size=block, libver=(libver, "v110")) as f:
            for i in range(rng.randrange(1, 9)):
                name = rng.choice(["", "g/", "g/h/"]) + f"v{i}"
                made[name] = add(rng, f, name)
        options = rng.choice(OPTIONS)
        # libhdf5 lacks some of the filters here, and what it reads is compared below
        done = tool.nc2zarr("--overwrite", "--verify", "none", *options, path, out).ok()
        store = zarr.open_group(str(out), mode="r")
        for name, want in made.items():
            got, want = store[name][...], np.asarray(want)
            if want.dtype.kind == "O":
                want = np.array([t.decode() if isinstance(t, bytes) else t for t in want.ravel()], object).reshape(want.shape)
                assert np.asarray(got, object).tolist() == want.tolist(), f"file {number}, {name}\n{done}"
                continue
            # bit for bit: NaNs too
            want = want.astype(want.dtype.newbyteorder("<"))
            got = np.asarray(got).astype(np.asarray(got).dtype.newbyteorder("<"))
            assert (got.dtype, got.shape, got.tobytes()) == (want.dtype, want.shape, want.tobytes()), f"file {number}, {name}\n{done}"
