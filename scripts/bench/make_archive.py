#!/usr/bin/env python3
"""make_archive.py FOLDER FILES STEPS NY NX [one]: an archive as centres hand them out.

One NetCDF-4 file for each STEPS hours, deflated with shuffle, a map a chunk.  Each file counts
its hours from its own first step, has a history of its own and the same static orography.
With `one` all of it is one file instead, FOLDER/all.nc, with the same chunks.
"""
import datetime
import os
import sys
from multiprocessing import Pool

import netCDF4
import numpy as np

FOLDER, (FILES, STEPS, NY, NX) = sys.argv[1], map(int, sys.argv[2:6])
ONE = sys.argv[6:] == ["one"]
START = datetime.datetime(1979, 1, 1)
LAT, LON = np.linspace(90, -90, NY, dtype="f4"), (np.arange(NX) * (360 / NX)).astype("f4")


def ground():
    return np.round(1000 * np.maximum(0, np.sin(np.deg2rad(LAT * 3))[:, None] * np.cos(np.deg2rad(LON * 2)))).astype("f4")


def maps(first):
    """Waves that travel, and noise, rounded as model output is."""
    rng = np.random.default_rng(first)
    y, x = np.deg2rad(LAT)[:, None], np.deg2rad(LON)
    out = np.empty((STEPS, NY, NX), "f4")
    for k in range(STEPS):
        t = first + k
        field = 288 - 40 * np.sin(y) ** 2
        for wave in range(1, 9):
            field = field + 12 / wave * np.sin(wave * y + wave) * np.cos(wave * x + 0.07 * wave * t)
        out[k] = np.round((field + rng.normal(0, 0.15, (NY, NX))) * 64) / 64
    return out


def create(path, first):
    nc = netCDF4.Dataset(path, "w")
    nc.setncatts({"title": "made-up weather", "Conventions": "CF-1.8", "history": f"step {first} on"})
    nc.createDimension("time", None)
    nc.createDimension("lat", NY)
    nc.createDimension("lon", NX)
    since = START + datetime.timedelta(hours=first)
    t = nc.createVariable("time", "f8", ("time",), chunksizes=(512,))
    t.setncatts({"units": f"hours since {since:%Y-%m-%d %H:%M:%S}", "calendar": "standard", "standard_name": "time"})
    for name, values, units in (("lat", LAT, "degrees_north"), ("lon", LON, "degrees_east")):
        v = nc.createVariable(name, "f4", (name,))
        v.units = units
        v[:] = values
    deflated = {"zlib": True, "complevel": 4, "shuffle": True}
    v = nc.createVariable("orography", "f4", ("lat", "lon"), **deflated)
    v.units, v[:] = "m", ground()
    v = nc.createVariable("t2m", "f4", ("time", "lat", "lon"), chunksizes=(1, NY, NX), fill_value=np.float32(9e36), **deflated)
    v.setncatts({"units": "K", "standard_name": "air_temperature"})
    return nc


def add(nc, at, first):
    nc["time"][at : at + STEPS] = np.arange(at, at + STEPS)
    nc["t2m"][at : at + STEPS] = maps(first)


def daily(i):
    first = i * STEPS
    name = START + datetime.timedelta(hours=first)
    with create(f"{FOLDER}/t2m_{name:%Y%m%d%H}.nc", first) as nc:
        add(nc, 0, first)


def main():
    os.makedirs(FOLDER, exist_ok=True)
    if ONE:
        with create(f"{FOLDER}/all.nc", 0) as nc:
            for i in range(FILES):
                add(nc, i * STEPS, i * STEPS)
        return
    with Pool(min(2, len(os.sched_getaffinity(0)))) as pool:
        pool.map(daily, range(FILES), chunksize=16)


if __name__ == "__main__":
    main()
