#!/usr/bin/env python3
"""check_rechunk.py SOURCE.zarr CHUNKS SHARDS TARGET...: do the targets hold the source's values in those chunks?

All are read by zarr-python with the codecs of zarrs.  Prints one JSON object: for
each target null, or what differs.
"""

import hashlib
import json
import sys
import warnings

import numpy as np
import zarr


def read(store):
    return zarr.open_group(store, mode="r", use_consolidated=False)["v"]


def digest(a):
    return hashlib.blake2b(np.ascontiguousarray(a[...]).data.cast("B")).hexdigest()


def difference(target, want, shape, chunks, shards):
    a = read(target)
    have = list(a.shape), str(a.dtype), "x".join(map(str, a.chunks)), "x".join(map(str, a.shards or ())) or "none"
    if have != (list(shape), "float32", chunks, shards):
        return f"shape, type, chunks and shards are {have}"
    return None if digest(a) == want else "values differ"


def main():
    warnings.simplefilter("ignore")
    zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"})
    source, chunks, shards = sys.argv[1:4]
    a = read(source)
    want, verdict = digest(a), {}
    for target in sys.argv[4:]:
        try:
            verdict[target] = difference(target, want, a.shape, chunks, shards)
        except Exception as e:
            verdict[target] = f"cannot be read: {type(e).__name__}: {e}"
    print(json.dumps(verdict))


if __name__ == "__main__":
    main()
