"""Missing elements: statistics, the loader, unpacked numbers and xarray agree on them."""

import os

import netCDF4
import numpy as np
import pytest
import xarray as xr
import zarr

from support import paths, tool

pytestmark = pytest.mark.skipif(paths.SANITIZED, reason="a sanitizer's library cannot be loaded into a plain Python")

os.environ["CHUNKMILL_LIBRARY"] = str(paths.BUILD / "lib" / "libchunkmill_loader.so.1")
os.environ["CHUNKMILL_BIN"] = str(paths.BUILD / "bin")
import chunkmill  # noqa: E402


# Type, _Unsigned, _FillValue, missing_value and its type, scale and offset, elements.
MASKS = [
    ("i1", "true", None, (255, "i2"), (2.0, 0.0), [1, -1, 3]),
    ("i1", "true", None, (-1, "i1"), (2.0, 0.0), [1, -1, 3]),
    ("i1", "true", None, (-1, "i1"), None, [1, -1, 3]),
    ("u1", "false", None, (-1, "i1"), None, [1, 255, 3]),
    ("u1", "false", 255, (3, "u1"), (2.0, 1.0), [1, 255, 3]),
    ("i1", "true", -1, ([255, 3], "i2"), (2.0, 0.0), [1, -1, 3]),
    ("f4", None, None, (0.1, "f8"), None, [0.1, 2, 3]),
    ("f4", None, None, (0.1, "f8"), (2.0, 1.0), [0.1, 2, 3]),
    ("f4", None, None, (0.1, "f4"), (2.0, 1.0), [0.1, 2, 3]),
    ("f4", None, None, (1e20, "f8"), None, [1e20, 2, 3]),
    ("f4", None, None, (2**31 - 1, "i4"), None, [2**31, 2, 3]),
    ("f4", None, 0.0, (-9, "i2"), None, [0.0, -0.0, -9, 3]),
    ("i4", None, 1, ([2, 3, 4, 5], "i4"), None, [1, 2, 3, 4, 5, 6, 7, 8]),
]  # fmt: skip


@pytest.mark.every
@pytest.mark.filterwarnings("ignore:variable 'v' has multiple fill values")
@pytest.mark.parametrize("row", MASKS, ids=str)
def test_all_ways_agree_on_what_is_missing(row, tmp_path):
    """Statistics, the loader and --unpack, of the file and of a store, beside xarray."""
    dtype, unsigned, fill, (missing, missing_type), packing, data = row
    nc = tmp_path / "in.nc"
    with netCDF4.Dataset(nc, "w") as ds:
        ds.createDimension("x", len(data))
        v = ds.createVariable("v", dtype, ("x",), fill_value=False if fill is None else fill)
        v.set_auto_maskandscale(False)
        v.missing_value = np.array(missing, missing_type)
        if unsigned:
            v.setncattr("_Unsigned", unsigned)
        if packing:
            v.scale_factor, v.add_offset = packing
        v[:] = np.array(data, dtype)
    with xr.open_dataset(nc) as ds:
        want = ds.v.values.astype("f8")
    tool.run("nc2zarr", "-q", "--statistics", "--verify", "full", nc, tmp_path / "s.zarr").ok()
    statistics = zarr.open_group(str(tmp_path / "s.zarr.statistics.zarr"))
    assert (statistics["count/v"][()], statistics["missing/v"][()]) == (np.count_nonzero(~np.isnan(want)), np.count_nonzero(np.isnan(want)))
    assert statistics["maximum/v"][()] == np.nanmax(want)
    sources = {"file": nc, "store": tmp_path / "s.zarr"}
    for name, source in sources.items():
        if packing:
            out = tmp_path / f"{name}.zarr"
            tool.run("rechunk" if name == "store" else "nc2zarr", "-q", "--unpack", "v", "--verify", "full", source, out).ok()
            with xr.open_zarr(out, consolidated=False) as ds:
                np.testing.assert_array_equal(ds.v.values, want)
        if np.size(missing) < 4:  # the loader refuses more
            with chunkmill.Loader(source, variables=["v"], sample={"x": len(data)}, batch=1) as loader:
                np.testing.assert_array_equal(next(iter(loader))["v"].numpy()[0].astype("f8"), want)


@pytest.mark.parametrize("mark", [np.nan, np.inf])
def test_the_loader_casts_beside_a_missing_value_that_is_no_number(mark, tmp_path):
    nc = tmp_path / "in.nc"
    with netCDF4.Dataset(nc, "w") as ds:
        ds.createDimension("x", 3)
        v = ds.createVariable("v", "f4", ("x",))
        v.set_auto_maskandscale(False)
        v.missing_value = np.float32(mark)
        v[:] = [1, np.nan, 3]
    tool.run("nc2zarr", "-q", nc, tmp_path / "s.zarr").ok()
    with chunkmill.Loader(tmp_path / "s.zarr", variables=["v"], sample={"x": 3}, batch=1, cast="float64") as loader:
        np.testing.assert_array_equal(next(iter(loader))["v"].numpy()[0], [1, np.nan, 3])
