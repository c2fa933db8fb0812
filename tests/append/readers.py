"""A reader in a loop: python -m append.readers KIND STORE STOP.  Prints the lengths that it saw, in order, as JSON."""

import json
import os
import sys
import warnings

import numpy as np

from . import files as F

warnings.filterwarnings("ignore")


def by_xarray(store, scratch):
    import xarray as xr

    with xr.open_zarr(store, consolidated=True, chunks=None, decode_times=False) as ds:
        ds = ds.load()
        return {name: ds[name].values for name in ("tas", "time", "time_bnds")}


def by_zarr(store, scratch):
    import zarr

    g = zarr.open_group(store, mode="r", use_consolidated=True)
    return {name: g[name][...] for name in ("tas", "time", "time_bnds")}


def by_tensorstore(store, scratch):
    """It knows no consolidated metadata: of each array by itself."""
    import tensorstore as ts

    def read(name):
        return ts.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{store}/{name}"}}, read=True).result().read().result()

    return {name: read(name) for name in ("tas", "time", "time_bnds")}


def by_ours(store, scratch):
    """Reads through the library, from a copy that it makes."""
    import shutil
    import subprocess

    from support import paths

    shutil.rmtree(scratch, ignore_errors=True)
    subprocess.run([paths.BUILD / "tests" / "bin" / "zarr_cat", "--copy-all", store, scratch], check=True)
    return by_zarr(scratch, None)


def check(kind, found):
    """The length that was seen; every element of it is what it is to be."""
    n = {name: len(a) for name, a in found.items()}
    if kind != "tensorstore":
        assert len(set(n.values())) == 1, n
    np.testing.assert_array_equal(found["tas"], F.values(0, n["tas"]))
    np.testing.assert_array_equal(np.diff(found["time"]), 1)
    np.testing.assert_array_equal(found["time_bnds"][:, 1] - found["time_bnds"][:, 0], 1)
    assert found["time_bnds"][0, 0] == found["time"][0]
    return n["tas"]


def tell(path, n):
    with open(f"{path}.new", "w") as f:
        f.write(str(n))
    os.replace(f"{path}.new", path)


def main(kind, store, stop):
    read = {"xarray": by_xarray, "zarr": by_zarr, "tensorstore": by_tensorstore, "ours": by_ours}[kind]
    seen, last = [], False
    while not last:
        tell(f"{stop}.{kind}.begun", len(seen) + 1)
        last = os.path.exists(stop)  # the state at the end is read too
        seen.append(check(kind, read(store, f"{stop}.{kind}.zarr")))
    print(json.dumps(seen))


if __name__ == "__main__":
    main(*sys.argv[1:])
