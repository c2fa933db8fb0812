#!/usr/bin/env python3
"""check_archive.py FOLDER STORE...: do stores, or references (.json), hold values and times of FOLDER's files?

Prints one JSON object: for each store null, or what differs.
"""
import glob
import json
import sys

import cftime
import netCDF4
import numpy as np
import zarr

EPOCH = "microseconds since 1970-01-01"


def instants(values, attrs):
    dates = cftime.num2date(values, attrs["units"], attrs.get("calendar", "standard"))
    return np.asarray(cftime.date2num(dates, EPOCH, "standard"), "i8")


def difference(files, store):
    where = {"store": store}
    if store.endswith(".json"):
        where = {"store": "reference://", "storage_options": {"fo": store, "remote_protocol": "file"}}
    group, at = zarr.open_group(**where, mode="r", use_consolidated=False), 0
    # The roofline makes the field alone.
    whole = "time" in group
    times = instants(group["time"][...], dict(group["time"].attrs)) if whole else ()
    for path in files:
        with netCDF4.Dataset(path) as nc:
            nc.set_auto_maskandscale(False)
            t, n = nc["time"], len(nc["time"])
            if whole and not np.array_equal(instants(t[:], {"units": t.units, "calendar": t.calendar}), times[at : at + n]):
                return f"other times than in {path}"
            if not np.array_equal(nc["t2m"][:], group["t2m"][at : at + n]):
                return f"t2m: other values than in {path}"
            if whole and at == 0 and not np.array_equal(nc["orography"][:], group["orography"][...]):
                return "orography: other values"
        at += n
    return None if at == group["t2m"].shape[0] else f"{group['t2m'].shape[0]} steps, in the files {at}"


def main():
    zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"})
    files, verdict = sorted(glob.glob(f"{sys.argv[1]}/*.nc")), {}
    for store in sys.argv[2:]:
        try:
            verdict[store] = difference(files, store)
        except Exception as e:
            verdict[store] = f"cannot be read: {type(e).__name__}: {e}"
    print(json.dumps(verdict))


if __name__ == "__main__":
    main()
