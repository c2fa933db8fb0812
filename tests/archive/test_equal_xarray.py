"""The store is what xarray.open_mfdataset makes of the same files, where that joins them correctly."""

import warnings

import numpy as np
import pytest
import xarray as xr

from . import files as F
from . import kinds, stores


def archives():
    yield "clean", F.clean(7)
    yield "cmip6", [kinds.cmip6("tas", y, "standard") for y in range(1850, 1875, 5)]
    yield "cmip6 noleap", [kinds.cmip6("tas", y) for y in range(1850, 1875, 5)]
    yield "cmip6 merged", [kinds.cmip6(v, y, "standard", s) for s, v in enumerate(("tas", "pr")) for y in range(1850, 1865, 5)]
    yield "era5", [kinds.era5(m) for m in range(1, 5)]
    yield "classic", [F.half_days(i, format="NETCDF3_CLASSIC") for i in range(5)]
    yield "members", [kinds.member("tas", y, r, r) for y in (1850, 1855, 1860) for r in (1, 2, 10)]
    hourly = F.clean(4)
    for i, f in enumerate(hourly):
        f.vars.update(F.time_vars(2 * i, 2, units=f"hours since 2000-01-0{i + 1}"))
    yield "hours that drift", hourly


ARCHIVES = dict(archives())


@pytest.mark.parametrize("name", ARCHIVES)
def test_equal(name, tmp_path):
    paths = F.write_all(ARCHIVES[name], tmp_path / "in")
    out = tmp_path / "out.zarr"
    stores.convert(tmp_path / "in", out).ok()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        how = {"combine": "by_coords", "data_vars": "minimal", "coords": "minimal", "join": "exact", "combine_attrs": "drop_conflicts"}
        with xr.open_mfdataset([str(p) for p in paths], **how) as want, xr.open_zarr(out) as got:
            assert set(got.variables) == set(want.variables)
            for v in want.variables:
                a, b = want[v], got[v]
                assert a.dims == b.dims or v in got.dims, v
                if a.dtype.kind == "M":
                    # Where numbers are floating point xarray's nanoseconds are not exact.
                    assert np.abs((a.values - b.values).astype("i8")).max() < 1000, v
                else:
                    xr.testing.assert_equal(a.variable, b.variable)
            assert set(got.coords) == set(want.coords)
