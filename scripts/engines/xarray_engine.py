#!/usr/bin/env python3
"""A loader for `readbench --engine exec:CMD` that reads with xarray: Zarr, or what open_dataset opens.

Values are those that are stored: without unpacking, and without dask.
"""

import os

import numpy as np

import engine


def open_group(store, group):
    import xarray

    if os.path.isdir(store):
        return xarray.open_zarr(store, group=group or None, chunks=None, decode_cf=False)
    return xarray.open_dataset(store, group=group or None, chunks=None, decode_cf=False, cache=False)


def open_store(greeting):
    datasets, arrays = {}, {}
    for variable in greeting["variables"]:
        group, _, name = variable.rpartition("/")
        if group not in datasets:
            datasets[group] = open_group(greeting["store"], group)
        if name not in datasets[group].variables:
            raise engine.Refusal(f"xarray sees no variable {variable}")
        arrays[variable] = datasets[group].variables[name]

    def read(variable, start, shape):
        return np.asarray(arrays[variable][engine.slices(start, shape)].values)

    return read


if __name__ == "__main__":
    engine.serve(open_store, engine.options(__doc__).checksum)
