"""A store whose removal was interrupted opens in no reader, and --overwrite brings it to its end."""

import netCDF4
import numpy as np
import pytest
import xarray as xr
import zarr

from support import failio, paths, tool

pytestmark = pytest.mark.skipif(paths.SANITIZED, reason="a sanitizer's library has to be the first one")


@pytest.mark.parametrize("nth", [3, 6, 9])
@pytest.mark.parametrize("zarr_format", ["2", "3"])
def test_no_reader_opens_it(tmp_path, zarr_format, nth):
    root = tmp_path.resolve() / "root"
    root.mkdir()
    path, out = root / "in.nc", root / "out.zarr"
    with netCDF4.Dataset(path, "w") as ds:
        ds.createDimension("x", 10)
        for name in ("x", "a", "g/b"):
            ds.createVariable(name, "f4", ("x",), chunksizes=(5,))[:] = np.arange(10)
    tool.nc2zarr("-q", "--zarr-format", zarr_format, path, out).ok()
    again = ["-q", "--overwrite", "--zarr-format", zarr_format, path, out]
    got = failio.inject("nc2zarr", *again, root=root, state=tmp_path / "state", kind="unlink", nth=nth, way="EIO+")
    assert got.nfailed > 0
    got.done.fails(1, "out.zarr", "Input/output error")
    for consolidated in (None, False):
        with pytest.raises((ValueError, FileNotFoundError)):  # the format is none of theirs
            zarr.open_group(str(out), mode="r", use_consolidated=consolidated)
        with pytest.raises((ValueError, FileNotFoundError)):
            xr.open_zarr(out, consolidated=consolidated)
    assert tool.run("rechunk", "--digest", out).status == 1
    tool.nc2zarr(*again).ok()
    assert (zarr.open_group(str(out), mode="r")["g/b"][...] == np.arange(10)).all()
