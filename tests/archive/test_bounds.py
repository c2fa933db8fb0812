"""Bounds and climatology of steps that no file has and that are filled, held against cftime."""

import cftime
import numpy as np
import pytest

from . import files as F
from . import stores

MONTHS = [(2000, m) for m in range(1, 13)]


def months(calendar, dtype, units="days since 2000-01-01", middle=False, names=("bounds", "time_bnds"), span=None):
    """A file a month; SPAN gives the two edges of a month instead of its own."""
    date = lambda y, m: cftime.datetime(y + (m - 1) // 12, (m - 1) % 12 + 1, 1, calendar=calendar)  # noqa: E731
    number = lambda d, u: np.asarray(cftime.date2num(d, u, calendar)).astype(dtype)  # noqa: E731
    files = []
    for i, (y, m) in enumerate(MONTHS):
        own = units(y, m) if callable(units) else units
        edges = span(date, m) if span else [date(y, m), date(y, m + 1)]
        at = edges[0] + (edges[1] - edges[0]) / 2 if middle else date(y, m)
        attrs = {"units": own, "calendar": calendar, "standard_name": "time", names[0]: names[1]}
        time = F.Var(("time",), number([at], own), attrs)
        bounds = F.Var(("time", "bnds"), number([edges], own))
        files.append(F.File(f"{y}{m:02d}.nc", {"time": time, names[1]: bounds, "v": F.Var(("time",), np.array([i], "f4"), fill=np.float32(np.nan))}))
    return files


CASES = {
    "months": dict(calendar="standard", dtype="f8"),
    "middles": dict(calendar="noleap", dtype="f8", middle=True),
    "360_day": dict(calendar="360_day", dtype="f8"),
    "integers": dict(calendar="standard", dtype="i4", units="hours since 1999-12-01"),
    "units of their own": dict(calendar="noleap", dtype="f8", units=lambda y, m: f"days since {y}-{m:02d}-01"),
    "float32": dict(calendar="standard", dtype="f4"),
    "climatology": dict(
        calendar="standard",
        dtype="f8",
        names=("climatology", "climatology_bnds"),
        span=lambda date, m: [date(1961, m), date(1990, m + 1)],
    ),
}


@pytest.mark.parametrize("gone", [(6,), (2, 3, 9)])
@pytest.mark.parametrize("name", CASES)
def test_bounds_of_filled_months(tmp_path, name, gone):
    case = CASES[name]
    files = months(**case)
    F.write_all([f for i, f in enumerate(files) if i + 1 not in gone], tmp_path / "in")
    stores.convert("--gaps", "fill", "--verify", "full", tmp_path / "in", tmp_path / "out.zarr").ok()
    for f in files:
        if int(f.name[4:6]) in gone:
            f.vars["v"].data = np.array([np.nan], "f4")
    want = F.joined(files)
    stores.same(tmp_path / "out.zarr", want, case["calendar"])


def test_bounds_of_a_coordinate_that_is_no_time(tmp_path):
    """Files of one level each."""
    files = []
    for i in (0, 1, 2, 4, 5):
        z = F.Var(("z",), np.array([10.0 * i + 5]), {"units": "m", "bounds": "z_bnds"})
        files.append(F.File(f"z{i}.nc", {"z": z, "z_bnds": F.Var(("z", "b"), np.array([[10.0 * i, 10.0 * i + 10]])), "v": F.Var(("z",), np.array([i], "f8"), fill=np.nan)}, unlimited=()))
    F.write_all(files, tmp_path / "in")
    stores.convert("--gaps", "fill", "--verify", "full", tmp_path / "in", tmp_path / "out.zarr").ok()
    from support import readers

    got = readers.arrays(tmp_path / "out.zarr")
    np.testing.assert_array_equal(got["z"][...], np.arange(6) * 10.0 + 5)
    np.testing.assert_array_equal(got["z_bnds"][...], np.stack([np.arange(6) * 10.0, np.arange(6) * 10.0 + 10], 1))
    np.testing.assert_array_equal(got["v"][...], [0, 1, 2, np.nan, 4, 5])


def test_a_file_without_bounds_keeps_them_missing(tmp_path):
    """Its step is there: nothing is made up for it."""
    files = months("standard", "f8")
    del files[3].vars["time_bnds"]
    F.write_all([f for i, f in enumerate(files) if i != 7], tmp_path / "in")
    stores.convert("--gaps", "fill", "--missing", "fill", tmp_path / "in", tmp_path / "out.zarr").ok()
    import xarray as xr

    with xr.open_zarr(tmp_path / "out.zarr", decode_times=False) as made:
        got, time = made["time_bnds"].values, made["time"].values
    assert np.isnan(got[3]).all() and np.isfinite(np.delete(got, 3, 0)).all()
    np.testing.assert_array_equal(got[7], [time[7], time[8]])


def test_members_are_no_steps(tmp_path):
    """Between member 1 and member 10 nothing is missing."""
    files = []
    for r in (1, 2, 3, 10):
        f = F.half_days(0)
        f.name = f"tas_r{r}i1p1_2000.nc"
        files.append(f)
    F.write_all(files, tmp_path / "in")
    _, doc = stores.survey("--new-dim", "member=r*i1p1", tmp_path / "in", status=0)
    assert not [f for f in doc["findings"] if f["kind"] == "gap"], doc["findings"]
    stores.convert("--new-dim", "member=r*i1p1", "--gaps", "fill", tmp_path / "in", tmp_path / "out.zarr").ok()
    from support import readers

    assert list(readers.arrays(tmp_path / "out.zarr")["member"][...]) == [1, 2, 3, 10]
