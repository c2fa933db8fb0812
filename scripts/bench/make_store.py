#!/usr/bin/env python3
"""make_store.py NAME OUT.zarr 3|2 [quick]: writes one of the stores that stores.py lists, array v in a group."""

import os
import sys

import numcodecs
import zarr
from zarr.codecs import BloscCodec, ZstdCodec

import stores
from make_input import Field


def compressor(codec, version):
    if codec == "zstd":
        return ZstdCodec(level=3) if version == 3 else numcodecs.Zstd(3)
    if version == 3:
        return BloscCodec(typesize=4, cname="zstd", clevel=2, shuffle="shuffle")
    return numcodecs.Blosc("zstd", 2, numcodecs.Blosc.SHUFFLE)


def main():
    work, out, version, quick = stores.find(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4:] == ["quick"]
    shape, chunk = work.dims(quick), work.lengths(work.chunk, quick)
    field = Field(shape, "f4", 1)
    group = zarr.create_group(out + ".part", zarr_format=version)
    names = (
        {"dimension_names": ["z", "y", "x"]} if version == 3 else {"attributes": {"_ARRAY_DIMENSIONS": ["z", "y", "x"]}}
    )
    a = group.create_array(
        "v", shape=shape, chunks=chunk, dtype="f4", compressors=compressor(work.codec, version), fill_value=0, **names
    )
    depth = -(-16 // chunk[0]) * chunk[0]
    for lo in range(0, shape[0], depth):
        a[lo : lo + depth] = field.maps(lo, min(lo + depth, shape[0]))
    os.rename(out + ".part", out)


if __name__ == "__main__":
    main()
