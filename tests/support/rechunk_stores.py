"""Stores for the tests of rechunk."""

import numcodecs
import numpy as np
import zarr
from zarr.codecs import BloscCodec, ZstdCodec


def field(shape, dtype="f4"):
    values = (280 + 10 * np.sin(np.arange(np.prod(shape)) / 50)).reshape(shape).astype(dtype)
    values[3 % shape[0], 2 % shape[1]] = np.nan if values.dtype.kind == "f" else 0
    return values


def make_store(path, fmt):
    """A hierarchy with something of everything; coordinates named so that xarray opens it."""
    root = zarr.create_group(
        str(path), zarr_format=fmt, attributes={"title": "T", "n": 2**60, "x": 0.1, "list": [1, "ü", None]}
    )

    def add(group, name, values, chunks, dims, **kw):
        attributes = kw.pop("attributes", {})
        if fmt == 3:
            kw["dimension_names"] = dims
        else:
            attributes = {"_ARRAY_DIMENSIONS": list(dims), **attributes}
        a = group.create_array(name, shape=values.shape, chunks=chunks, dtype=values.dtype, attributes=attributes, **kw)
        a[...] = values
        return a

    add(root, "time", np.arange(40.0), (40,), ["time"], attributes={"units": "days since 2000-01-01"})
    add(root, "lat", np.linspace(80, -80, 9), (9,), ["lat"])
    add(root, "lon", np.arange(12, dtype="f4") * 30, (12,), ["lon"])
    add(root, "height", np.array(2.0), (), [])
    tas = add(
        root,
        "tas",
        field((40, 9, 12)),
        (7, 4, 5),
        ["time", "lat", "lon"],
        fill_value=np.float32(1e20),
        attributes={"units": "K", "coordinates": "height"},
        compressors=BloscCodec(cname="lz4", clevel=3, shuffle="shuffle") if fmt == 3 else numcodecs.Blosc("lz4", 3, 1),
    )
    tas[14:21] = np.float32(1e20)  # chunks that are not stored
    deep = root.create_group("model/run", attributes={"note": "deep"})
    add(deep, "count", (np.arange(108) % 50).reshape(9, 12).astype("i2"), (4, 4), ["lat", "lon"])
    add(deep, "flags", np.arange(108).reshape(9, 12) % 3 == 0, (9, 5), ["lat", "lon"])
    root.create_group("empty", attributes={"nothing": "inside"})
    zarr.consolidate_metadata(str(path))
    return path


def make_noise(path):
    """Many chunks that nothing compresses: long enough to be stopped in the middle."""
    rng = np.random.default_rng(5)
    root = zarr.create_group(str(path))
    for name, n in (("v", 24), ("w", 8)):
        a = root.create_array(
            name, shape=(n, 256, 256), chunks=(1, 256, 256), dtype="f4", compressors=ZstdCodec(level=1)
        )
        a[...] = rng.random((n, 256, 256), "f4")
    return path


SLOW = ["-j", "1", "--codec", "zstd:19", "--chunks", "4x64x64"]
