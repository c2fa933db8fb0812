#!/usr/bin/env python3
"""A loader for `readbench --engine exec:CMD` that reads with zarr-python."""

import numpy as np

import engine


def open_store(greeting):
    import zarr

    root = zarr.open(greeting["store"], mode="r")
    arrays = {
        name: root if isinstance(root, zarr.Array) else root[name] for name in greeting["variables"]
    }

    def read(variable, start, shape):
        return np.asarray(arrays[variable][engine.slices(start, shape)])

    return read


if __name__ == "__main__":
    engine.serve(open_store, engine.options(__doc__).checksum)
