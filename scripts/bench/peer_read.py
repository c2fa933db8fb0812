#!/usr/bin/env python3
"""peer_read.py WHO THREADS PLAN: reads the samples of PLAN with another library.

WHO: zarr, zarr-fast, zarrs, tensorstore or xbatcher.  It says "ready", and then does
what read_roofline.c does: "pass" reads all samples, batch by batch, and prints
{"seconds":, "cpu":}; "check FILE" also writes the CRC32C of each sample.
"""

import json
import math
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import read_plan


def zarr_array(plan, threads, pipeline=None):
    import numcodecs.blosc
    import zarr

    # numcodecs' Blosc uses threads of its own where it is called from the main thread alone.
    numcodecs.blosc.set_nthreads(1)
    zarr.config.set({"threading.max_workers": threads})
    if pipeline:
        zarr.config.set({"codec_pipeline.path": pipeline, "codec_pipeline.chunk_concurrent_maximum": threads})
    return zarr.open_array(plan.array, mode="r")


def zarr(plan, threads):
    a = zarr_array(plan, threads)
    return lambda boxes: [a[box] for box in boxes]


def by_threads(a, threads):
    """Whole samples by threads of Python."""
    pool = ThreadPoolExecutor(threads)
    return lambda boxes: list(pool.map(a.__getitem__, boxes))


def zarr_fast(plan, threads):
    """Of its settings (concurrency, batch_size, workers) the defaults are the fastest here; threads gain a little."""
    return by_threads(zarr_array(plan, threads), threads)


def zarrs(plan, threads):
    import zarrs  # noqa: F401

    return by_threads(zarr_array(plan, threads, "zarrs.ZarrsCodecPipeline"), threads)


def tensorstore(plan, threads):
    """A batch's samples at once; in shards as one of its batches, which is faster there and slower without."""
    import tensorstore as ts

    limit = {"limit": threads}
    context = ts.Context({"data_copy_concurrency": limit, "file_io_concurrency": limit})
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": plan.array + "/"}}
    a = ts.open(spec, open=True, read=True, context=context, recheck_cached_data=False).result()

    def read(boxes):
        if not plan.shard:
            reads = [a[box].read() for box in boxes]
        else:
            with ts.Batch() as batch:
                reads = [a[box].read(batch=batch) for box in boxes]
        return [read.result() for read in reads]

    return read


def xbatcher(plan, threads):
    """Its samples are numbered in C order; an Xarray without Dask, which reads what is asked for."""
    import xarray
    import xbatcher as package

    zarr_array(plan, threads)
    store, name = os.path.split(plan.array)
    data = xarray.open_zarr(store, chunks=None, consolidated=False, mask_and_scale=False)[name]
    generator = package.BatchGenerator(data, dict(zip(data.dims, plan.sample)), cache=None)
    counts = [n // s for n, s in zip(plan.shape, plan.sample)]
    if len(generator) != math.prod(counts):
        raise RuntimeError(f"xbatcher makes {len(generator)} samples, not {math.prod(counts)}")

    def number(box):
        n = 0
        for s, length, count in zip(box, plan.sample, counts):
            n = n * count + s.start // length
        return n

    return lambda boxes: [generator[number(box)].values for box in boxes]


WHO = {"zarr": zarr, "zarr-fast": zarr_fast, "zarrs": zarrs, "tensorstore": tensorstore, "xbatcher": xbatcher}


def crc32c(values):
    import google_crc32c

    return google_crc32c.value(values.astype("<f4", copy=False).tobytes())


def serve(read_batch, batches):
    print("ready", flush=True)
    for line in sys.stdin:
        if line.startswith("check "):
            with open(line[6:].rstrip("\n"), "w") as f:
                for boxes in batches:
                    f.writelines(f"{crc32c(sample):08x}\n" for sample in read_batch(boxes))
            print("{}", flush=True)
            continue
        cpu, start = time.process_time(), time.perf_counter()
        for boxes in batches:
            read_batch(boxes)
        answer = {"seconds": time.perf_counter() - start, "cpu": time.process_time() - cpu}
        print(json.dumps(answer), flush=True)


def main():
    who, threads, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    plan = read_plan.read(path)
    serve(WHO[who](plan, threads), plan.batches())


if __name__ == "__main__":
    main()
