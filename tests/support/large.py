"""Files that decode to gigabytes and are made in a moment."""

import zlib

import h5py
import numpy as np


def large(path, shape, chunk, dtype="f4", variables=1, unlimited=False):
    """One compressed chunk, stored at every place of the grid of every variable."""
    with h5py.File(path, "w", libver=("earliest", "v108")) as f:
        plain = (np.arange(np.prod(chunk)) // 1000 % 100).astype(dtype).reshape(chunk)
        raw = zlib.compress(plain.tobytes(), 1)
        for i in range(variables):
            d = f.create_dataset(
                f"v{i:02}",
                shape,
                dtype,
                chunks=chunk,
                compression="gzip",
                maxshape=(None, *shape[1:]) if unlimited else None,
            )
            for at in np.ndindex(*(n // c for n, c in zip(shape, chunk))):
                d.id.write_direct_chunk(tuple(a * c for a, c in zip(at, chunk)), raw)
    return path
