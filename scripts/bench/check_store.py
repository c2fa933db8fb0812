#!/usr/bin/env python3
"""check_store.py INPUT.nc NAME,NAME... STORE...: do the stores hold the file's values?

The file is read by netCDF4, the stores by zarr-python with the codecs of zarrs,
which is quick where chunks are tiny.  What the file holds is kept as digests
beside it.  Prints one JSON object: for each store null, or what
differs.
"""
import hashlib
import json
import os
import sys
import warnings

import netCDF4
import numpy as np
import zarr

STEP_NBYTES = 64 << 20


def digests(get, shape, dtype):
    """One for each slab of whole maps, after the shape and the type."""
    step = max(1, STEP_NBYTES // max(1, int(np.prod(shape[1:])) * dtype.itemsize))
    little = dtype.newbyteorder("<")
    out = [f"{list(shape)} {little.str}"]
    for lo in range(0, shape[0], step):
        slab = np.ascontiguousarray(get(lo, min(lo + step, shape[0])), little)
        out.append(hashlib.blake2b(slab.data.cast("B")).hexdigest()[:32])
    return out


def source_digests(path, names):
    kept = path + ".digests"
    if os.path.exists(kept):
        with open(kept) as f:
            return json.load(f)
    found = {}
    with netCDF4.Dataset(path) as nc:
        nc.set_auto_maskandscale(False)
        for name in names:
            v = nc[name]
            found[name] = digests(lambda lo, hi: v[lo:hi], v.shape, v.dtype)
    with open(kept, "w") as f:
        json.dump(found, f)
    return found


def difference(store, expected):
    group = zarr.open_group(store, mode="r", use_consolidated=False)
    for name, want in expected.items():
        a = group[name]
        have = digests(lambda lo, hi: a[lo:hi], a.shape, a.dtype)
        if have[0] != want[0]:
            return f"{name} is {have[0]}, in the file {want[0]}"
        for i, (x, y) in enumerate(zip(want[1:], have[1:], strict=True)):
            if x != y:
                return f"{name}: values differ in slab {i} of {len(want) - 1}"
    return None


def main():
    warnings.simplefilter("ignore")  # codecs that Zarr's specification does not list
    zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"})
    path, names, stores = sys.argv[1], sys.argv[2].split(","), sys.argv[3:]
    expected = source_digests(path, names)
    verdict = {}
    for store in stores:
        try:
            verdict[store] = difference(store, expected)
        except Exception as e:
            verdict[store] = f"cannot be read: {type(e).__name__}: {e}"
    print(json.dumps(verdict))


if __name__ == "__main__":
    main()
