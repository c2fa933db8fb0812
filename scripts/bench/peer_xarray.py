#!/usr/bin/env python3
"""peer_xarray.py INPUT.nc OUTPUT.zarr TARGET DEPTH THREADS [zarrs]

Converts with xarray, dask and zarr-python 3, whose codecs zarrs runs if asked:
the same chunks and codec as every other contender, TARGET (16x128x128) long, and
DEPTH time steps of whole maps a task, so that no source chunk is read twice.
The last line is the time from opening to the end, without the imports.
"""
import json
import sys
import time

import dask
import numcodecs.blosc
import xarray
import zarr
from zarr.codecs import BloscCodec


def main():
    source, output, target, depth, threads = sys.argv[1:6]
    target, threads = tuple(map(int, target.split("x"))), int(threads)
    # numcodecs' Blosc uses threads of its own where it is called from the main thread alone.
    numcodecs.blosc.set_nthreads(1)
    zarr.config.set({"threading.max_workers": threads})
    if sys.argv[6:] == ["zarrs"]:
        zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"})
    dask.config.set(scheduler="threads", num_workers=threads)

    start = time.perf_counter()
    chunks = {"time": int(depth), "latitude": -1, "longitude": -1}
    data = xarray.open_dataset(source, chunks=chunks, mask_and_scale=False, decode_times=False)
    encoding = {}
    for name, v in data.data_vars.items():
        codec = BloscCodec(typesize=v.dtype.itemsize, cname="zstd", clevel=2, shuffle="shuffle")
        encoding[name] = {"chunks": target, "compressors": (codec,)}
    data.to_zarr(output, zarr_format=3, encoding=encoding, consolidated=False)
    print(json.dumps({"seconds": time.perf_counter() - start}))


if __name__ == "__main__":
    main()
